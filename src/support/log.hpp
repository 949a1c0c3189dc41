// The library's log: five levels, to stderr or to one file. By default only warnings and errors.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace ucudnn {

enum class LogLevel { kOff, kError, kWarn, kInfo, kDebug };

/// "off", "error", "warn", "info", "debug".
const char* toText(LogLevel level) noexcept;

/// Throws std::invalid_argument.
LogLevel logLevelFromText(const std::string& text);

/// The process's log. Thread-safe; never destroyed, so that static destructors may still log;
/// never throws. Until `configure` is called, `warn` and above go to stderr. A line is printable
/// and has at most kMostMessageBytes.
class Log {
 public:
  static Log& instance() noexcept;

  /// Sets the level and the file that is appended to; empty: stderr. Returns whether the file could
  /// be opened. If not, the log stays where it was, and an error is logged, once for each file.
  /// Cheap if nothing changes.
  bool configure(LogLevel level, const std::string& file) noexcept;

  /// The same with the environment's values. Has no effect if they have not changed, so that a new
  /// handle does not undo what the client has set since. Returns why the file cannot be opened, and
  /// logs nothing.
  std::string configureFromEnvironment(LogLevel level, const std::string& file) noexcept;

  LogLevel level() const noexcept;
  const char* file() const noexcept;  ///< "": stderr. Stays valid.

  bool enabled(LogLevel level) const noexcept;
  void write(LogLevel level, std::string_view message) noexcept;

 private:
  Log() = default;
};

/// An argument that is made only if the log line is wanted. If that runs out of memory, only the
/// line is lost. For code that must not throw.
template <typename Make>
struct Late {
  Make make;
};
template <typename Make>
Late(Make) -> Late<Make>;

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (!Log::instance().enabled(level)) return;
  try {
    Log::instance().write(level, fmt::format(format, std::forward<Args>(args)...));
  } catch (...) {  // Out of memory while formatting: a log line is not worth failing a call.
  }
}

// A user who runs an unmodified program has asked for no log. So errors and warnings only say that
// a setting of the user's, or a file that a setting names, is not followed. Calls that are left to
// cuDNN, and errors that the caller learns from a status, are logged at `info`.
template <typename... Args>
void logError(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log(LogLevel::kError, format, std::forward<Args>(args)...);
}
template <typename... Args>
void logWarn(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log(LogLevel::kWarn, format, std::forward<Args>(args)...);
}
template <typename... Args>
void logInfo(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void logDebug(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log(LogLevel::kDebug, format, std::forward<Args>(args)...);
}

}  // namespace ucudnn

template <typename Make>
struct fmt::formatter<ucudnn::Late<Make>> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(const ucudnn::Late<Make>& late, Context& context) const {
    const std::string text = late.make();
    return fmt::formatter<fmt::string_view>::format(text, context);
  }
};
