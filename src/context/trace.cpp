#include "context/trace.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <mutex>

#include "support/fork.hpp"
#include "support/log_file.hpp"
#include "support/settings.hpp"
#include "support/text.hpp"

namespace ucudnn {
namespace {

/// 0 if it is no file.
std::uint64_t identityOf(int descriptor) noexcept {
  struct stat file {};
  if (::fstat(descriptor, &file) != 0) return 0;
  return std::hash<std::uint64_t>()(file.st_dev) * 31 + file.st_ino;
}

}  // namespace

std::string CallRecord::splitText() const {
  if (steps.size() == 1 && steps.front().count == 1) return divided ? "in parts" : "undivided";
  std::string text;
  for (const Step& step : steps) {
    if (!text.empty()) text += " + ";
    if (step.count > 1) text += std::to_string(step.count) + " x ";
    text += std::to_string(step.batch);
  }
  return text;
}

TraceFile::TraceFile(std::string path)
    : path_(std::move(path)), ofProcess_(path_.find("%p") != std::string::npos) {
  try {
    open();
  } catch (const std::runtime_error& error) {
    throw BadSetting(
        fmt::format("UCUDNN_TRACE=\"{}\": {}; accepted: a path", excerpt(path_), error.what()));
  }
  process_ = ::getpid();
}

void TraceFile::open() {
  std::string file = path_;
  const std::string process = std::to_string(::getpid());
  for (std::size_t place = 0; (place = file.find("%p", place)) != std::string::npos;)
    file.replace(place, 2, process);
  const int descriptor = openLogFile(file);
  file_ = identityOf(descriptor);
  descriptor_ = descriptor;
}

/// Whether the descriptor is still our file's. A program that becomes a daemon closes all
/// descriptors, and the next file that it opens gets ours.
bool TraceFile::isOurs(int descriptor) const noexcept {
  return identityOf(descriptor) == file_;
}

void TraceFile::write(std::string_view line) noexcept {
  const int process = ::getpid();
  int known = process_.load(std::memory_order_acquire);
  // A forked child begins a file of its own. One of its threads opens it; the parent's stays open
  // there.
  const bool isChild =
      ofProcess_ && known != process && process_.compare_exchange_strong(known, process);
  const int before = descriptor_;
  if (isChild || (before >= 0 && !isOurs(before))) try {
      open();
    } catch (const std::exception&) {
      descriptor_ = -1;
    }
  if (const int descriptor = descriptor_; descriptor >= 0)
    writeLog(descriptor, line.data(), line.size());
}

TraceFile& traceFile(const std::string& path) {
  struct Files {
    ForkMutex mutex;
    std::map<std::string, std::unique_ptr<TraceFile>> files;
  };
  static Files& all = *new Files;  // never destroyed: static destructors use handles
  const std::lock_guard lock(all.mutex);
  auto& file = all.files[path];
  if (!file) file = std::make_unique<TraceFile>(path);
  return *file;
}

std::string traceLine(Operation operation,
                      const Problem* problem,
                      const CallRecord& record,
                      cudaStream_t stream,
                      cudnnStatus_t status) {
  std::string line = problem != nullptr ? fmt::format("{} N={}", problem->text(), problem->batch())
                                        : std::string(toText(operation));
  if (record.isPlanned())
    line += fmt::format("\t{}{}{}\t{}\tstream {}\t{} of {} bytes",
                        record.divided ? "split" : "undivided",
                        record.replayed ? ", replayed" : "",
                        record.measured ? "" : ", not measured yet",
                        record.planText(operation),
                        fmt::ptr(stream),
                        record.workspaceBytes,
                        record.grantedBytes);
  else
    line += fmt::format("\tcudnn\t{}\tstream {}\tup to {} bytes",
                        record.why,
                        fmt::ptr(stream),
                        record.grantedBytes);
  if (status != CUDNN_STATUS_SUCCESS) line += fmt::format("\t{}", cudnn().getErrorString(status));
  return line + '\n';
}

}  // namespace ucudnn
