// The library's log: five levels, to stderr or to one file; nothing above `warn` unless asked for.
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

  /// Sets the level and the file that is appended to; empty: stderr. A file that cannot be opened
  /// leaves the log where it was and is itself logged as an error, once; returns whether it could.
  /// Cheap when nothing changes.
  bool configure(LogLevel level, const std::string& file) noexcept;

  /// The same with what the environment says: has no effect when it says what it said before, so
  /// that a new handle does not undo what the client has set since. Returns why the file cannot be
  /// opened and logs nothing.
  std::string configureFromEnvironment(LogLevel level, const std::string& file) noexcept;

  LogLevel level() const noexcept;
  std::string file() const noexcept;  ///< empty: stderr

  bool enabled(LogLevel level) const noexcept;
  void write(LogLevel level, std::string_view message) noexcept;

 private:
  Log() = default;
};

/// An argument of a log line that is made when the line is: only if it is wanted, and where running
/// out of memory costs the line alone. For what is logged where nothing may be thrown.
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

// Who runs an unmodified program has asked for no line. So errors and warnings say that a setting
// of the user's, or a file that one names, is not followed; what is merely left to cuDNN, and what
// the caller learns from a status, is `info`.
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
