#include "support/log.hpp"

// The level's names as UCUDNN_LOG_LEVEL spells them; spdlog's own has "warning".
#define SPDLOG_LEVEL_NAMES \
  { "trace", "debug", "info", "warn", "error", "critical", "off" }

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include "support/fork.hpp"
#include "support/log_file.hpp"
#include "support/names.hpp"
#include "support/text.hpp"

namespace ucudnn {
namespace {

/// Writes each line with one write(2), so that the lines of threads and processes that share a file
/// do not mix. The caller locks.
class DescriptorSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  DescriptorSink(int descriptor, bool owned) : descriptor_(descriptor), owned_(owned) {}
  ~DescriptorSink() override {
    if (owned_) ::close(descriptor_);
  }
  DescriptorSink(const DescriptorSink&) = delete;
  DescriptorSink& operator=(const DescriptorSink&) = delete;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    writeLog(descriptor_, line.data(), line.size());
  }
  void flush_() override {}

 private:
  int descriptor_;
  bool owned_;
};

std::unique_ptr<spdlog::logger> makeLogger(int descriptor, bool owned) {
  auto sink = std::make_shared<DescriptorSink>(descriptor, owned);
  auto logger = std::make_unique<spdlog::logger>("ucudnn", std::move(sink));
  logger->set_pattern("[%Y-%m-%d %H:%M:%S.%e] [%n] [%l] %v");
  logger->set_level(
      spdlog::level::trace);  // The level is decided by `currentLevel`, before formatting.
  return logger;
}

/// The state that threads share, except the level. `mutex` guards all of it.
struct State {
  ForkMutex mutex;
  std::unique_ptr<spdlog::logger> logger = makeLogger(STDERR_FILENO, false);
  std::set<std::string> files{""};  ///< all that it has written to; pointers to them are given away
  const std::string* file = &*files.begin();  ///< where `logger` writes; empty: stderr
  bool environmentSeen = false;
  LogLevel environmentLevel =
      LogLevel::kWarn;  ///< with `environmentFile`, the environment's last values
  std::string environmentFile;
  std::string refusedFile;  ///< the last file that could not be opened; logged only once
};

/// Constant-initialized and trivially destroyed: readable before main and in static destructors.
std::atomic<LogLevel> currentLevel{LogLevel::kWarn};

/// Never destroyed, because static destructors may log. Throws std::bad_alloc.
State& state() {
  static State& instance = *new State;
  return instance;
}

spdlog::level::level_enum toSpdlog(LogLevel value) {
  using namespace spdlog::level;
  constexpr level_enum kLevels[] = {off, err, warn, info, debug};
  return kLevels[static_cast<std::size_t>(value)];
}

constexpr const char* kLevelNames[] = {"off", "error", "warn", "info", "debug"};

/// Points the logger at `file`. If the file cannot be opened, throws std::runtime_error and leaves
/// the logger as it is. REQUIRES: the mutex is held.
void redirect(State& shared, const std::string& file) {
  if (file == *shared.file) return;
  const std::string& kept = *shared.files.insert(file).first;
  shared.logger =
      file.empty() ? makeLogger(STDERR_FILENO, false) : makeLogger(openLogFile(file), true);
  shared.file = &kept;
}

/// Sets level and file. Returns why the file cannot be opened, or "". REQUIRES: the mutex is held.
std::string configureLocked(State& shared, LogLevel level, const std::string& file) {
  currentLevel.store(level, std::memory_order_relaxed);
  try {
    redirect(shared, file);
    return {};
  } catch (const std::runtime_error& reason) {
    return reason.what();
  }
}

}  // namespace

const char* toText(LogLevel value) noexcept {
  return nameOf(value, kLevelNames);
}

LogLevel logLevelFromText(const std::string& text) {
  return named<LogLevel>(text, kLevelNames, "it is no log level");
}

Log& Log::instance() noexcept {
  static Log log;  // It has no members, so it needs no guard and no destructor.
  return log;
}

bool Log::configure(LogLevel newLevel, const std::string& file) noexcept {
  try {
    std::string reason;
    {
      State& shared = state();
      const std::lock_guard lock(shared.mutex);
      reason = configureLocked(shared, newLevel, file);
      const bool isSaid = shared.refusedFile == file;
      shared.refusedFile = reason.empty() ? std::string() : file;
      if (reason.empty()) return true;
      if (isSaid) return false;
    }
    logError("UCUDNN_LOG_FILE=\"{}\": {}; the log goes on where it was", excerpt(file), reason);
  } catch (...) {  // Out of memory: the log stays as it was.
  }
  return false;
}

std::string Log::configureFromEnvironment(LogLevel newLevel, const std::string& file) noexcept {
  try {
    State& shared = state();
    const std::lock_guard lock(shared.mutex);
    if (shared.environmentSeen && shared.environmentLevel == newLevel &&
        shared.environmentFile == file)
      return {};
    std::string reason = configureLocked(shared, newLevel, file);
    shared.environmentSeen = reason.empty();  // A refused file is tried, and refused, again.
    shared.environmentLevel = newLevel;
    shared.environmentFile = file;
    return reason;
  } catch (...) {  // Out of memory: the log stays as it was.
    return {};
  }
}

LogLevel Log::level() const noexcept {
  return currentLevel.load(std::memory_order_relaxed);
}

const char* Log::file() const noexcept {
  try {
    State& shared = state();
    const std::lock_guard lock(shared.mutex);
    return shared.file->c_str();
  } catch (...) {  // Out of memory.
    return "";
  }
}

bool Log::enabled(LogLevel wanted) const noexcept {
  return wanted != LogLevel::kOff && wanted <= currentLevel.load(std::memory_order_relaxed);
}

void Log::write(LogLevel wanted, std::string_view message) noexcept {
  if (!enabled(wanted)) return;
  const int callersErrno = errno;  // A log line must not change what its caller is about to report.
  constexpr std::size_t kBeginningBytes = 44;  // of the pattern, and the line's end
  try {
    const std::string line = excerpt(message, kMostMessageBytes - kBeginningBytes);
    State& shared = state();
    const std::lock_guard lock(shared.mutex);
    shared.logger->log(toSpdlog(wanted), spdlog::string_view_t(line.data(), line.size()));
  } catch (...) {  // Out of memory: a log line is not worth failing a call.
  }
  errno = callersErrno;
}

}  // namespace ucudnn
