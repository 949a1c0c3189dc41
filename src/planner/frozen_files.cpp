// Files of plans: reads them, writes them, and fills them with a running program's plans.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "kernels/algorithms.hpp"
#include "planner/frozen_plans.hpp"
#include "support/files.hpp"
#include "support/fork.hpp"
#include "support/text.hpp"
#include "support/write_signals.hpp"

namespace ucudnn {
namespace {

/// The files that were read lately. A framework may create a handle for every layer.
struct ReadFiles {
  struct File {
    std::string path, content;
    std::shared_ptr<FrozenPlans> plans;
  };
  ForkMutex mutex;
  std::vector<File> files;  ///< the latest used last
};

ReadFiles& readFiles() noexcept {
  static ReadFiles& all = *new ReadFiles;  // static destructors use handles
  return all;
}

FrozenConfiguration toFrozenConfiguration(const Plan& plan) {
  FrozenConfiguration frozen;
  frozen.predictedMs = plan.predictedMs;
  const Operation operation = plan.problem.operation;
  if (plan.algorithm >= 0)
    frozen.algorithm =
        toText(operation, Kernel{plan.algorithm, plan.problem.mathType, kAlgorithms});
  for (const Plan::Step& step : plan.steps)
    frozen.microBatches.push_back({step.batch,
                                   step.count,
                                   toText(operation, step.kernel),
                                   step.timeMs,
                                   step.deviceMs,
                                   step.borrows});
  return frozen;
}

FrozenPair toFrozenPair(const Plan& plan) {
  FrozenPair pair{toFrozenConfiguration(plan), std::nullopt};
  if (plan.enqueued) pair.enqueued = toFrozenConfiguration(*plan.enqueued);
  return pair;
}

/// Returns false if it fails; errno says why.
bool writeAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t bytes = ::write(descriptor, text.data(), text.size());
    if (bytes >= 0)
      text.remove_prefix(static_cast<std::size_t>(bytes));
    else if (errno != EINTR)
      return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<FrozenPlans> frozenPlans(const std::string& path) {
  constexpr std::size_t kMostFiles = 8;
  try {
    expectFile(path);
    std::string content = readFile(path, kMostPlansBytes);
    ReadFiles& all = readFiles();
    const std::lock_guard lock(all.mutex);
    const auto known =
        std::find_if(all.files.begin(), all.files.end(), [&](const ReadFiles::File& file) {
          return file.path == path && file.content == content;
        });
    if (known != all.files.end()) {
      std::rotate(known, known + 1, all.files.end());
    } else {
      auto plans = std::make_shared<FrozenPlans>(path, frozenPlansFromJson(content));
      if (all.files.size() >= kMostFiles) all.files.erase(all.files.begin());
      all.files.push_back({path, std::move(content), std::move(plans)});
    }
    return all.files.back().plans;
  } catch (const std::runtime_error& error) {
    throw BadSetting(fmt::format("UCUDNN_PLANS=\"{}\": {}; accepted: a file of plans",
                                 excerpt(path),
                                 excerpt(error.what(), 250)));
  }
}

std::vector<FrozenPlan> usedFrozenPlans() {
  std::vector<std::shared_ptr<FrozenPlans>> files;
  {
    const std::lock_guard lock(readFiles().mutex);
    for (const ReadFiles::File& file : readFiles().files) files.push_back(file.plans);
  }
  std::vector<FrozenPlan> plans;
  for (const auto& file : files)
    for (FrozenPlan& plan : file->used()) plans.push_back(std::move(plan));
  return plans;
}

FrozenPlan toFrozen(const KnownPlan& known,
                    const QuestionKey& question,
                    const MachineKey& machine) {
  const Plan& plan = *known.plan;
  FrozenPlan frozen;
  frozen.device = printable(machine.deviceName);
  frozen.cudaVersion = machine.cudaVersion;
  frozen.cudnnVersion = machine.cudnnVersion;
  frozen.problem = plan.problem.text();
  frozen.miniBatch = plan.problem.batch();
  frozen.limitBytes = known.highBytes;
  frozen.deterministic = known.deterministic;
  frozen.policy = question.policy;
  frozen.kernels = question.kernels;
  frozen.workspaceBytes = plan.workspaceBytes;
  frozen.plan = toFrozenPair(plan);
  if (plan.general) frozen.general = toFrozenPair(*plan.general);
  return frozen;
}

void writeFrozenPlans(const std::string& path, const std::vector<FrozenPlan>& plans) {
  const std::string text = frozenPlansToJson(plans);
  const auto refuse = [&] {
    throw BadSetting(fmt::format("{}: {}", excerpt(path), std::strerror(errno)));
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw BadSetting(fmt::format("{}: it is no regular file", excerpt(path)));
  static auto& mutex = *new ForkMutex;  // one temporary file at a time
  const std::lock_guard lock(mutex);
  const WriteSignalsHeld held;
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  ::unlink(temporary.c_str());  // left by a process that ended while it wrote
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
  if (descriptor < 0) refuse();
  bool isThere = writeAll(descriptor, text);
  int why = errno;  // errno of the first call that fails
  const auto then = [&](int result) {
    if (isThere && result != 0) why = errno;
    isThere = isThere && result == 0;
  };
  then(::close(descriptor));
  if (isThere) then(::rename(temporary.c_str(), path.c_str()));
  if (isThere) return;
  ::unlink(temporary.c_str());
  errno = why;
  refuse();
}

}  // namespace ucudnn
