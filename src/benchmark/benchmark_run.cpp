#include "benchmark/benchmark_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "benchmark/timing_limits.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

/// With fewer timings left (1 to 3 ms each), waking another device and giving it memory gains
/// nothing.
constexpr int kTimingsWorthSharing = 20;

/// The longest first, so that no device is left with a long one when the others have finished. A
/// kernel of unknown time may have to load its code.
bool takesLonger(const TimingTask& a, const TimingTask& b) {
  const auto expected = [](const TimingTask& task) {
    return task.expectedMs > 0 ? task.expectedMs : std::numeric_limits<double>::infinity();
  };
  return expected(a) > expected(b);
}

}  // namespace

BenchmarkRun::BenchmarkRun(cudnnHandle_t handle, const BenchmarkRequest& request)
    : handle_(handle),
      request_(request),
      question_(request),
      timer_(handle, request, request.buffers, question_),
      variants_(
          request,
          question_,
          findings_,
          [this](const KernelCall& call) {
            isWaiting_ = !timer_.isReady(call);
            return !isWaiting_;
          },
          [this](const TimingTask& task) {
            timer_.prepare();
            return time(task, 0, timer_);
          }) {
  if (request.worksAside) firstAnswer_.emplace(request);
}

BenchmarkRun::~BenchmarkRun() {
  queue_.close();
  for (const auto& invitation : invitations_) invitation->close();
}

bool BenchmarkRun::advance() {
  lastTimed_.reset();
  isWaiting_ = false;
  if (const auto task = takeReady()) {
    if (task->timing) lastTimed_ = {task->timing->call.batch, task->timing->call.offer.kernel};
    runTask(*task, 0, timer_, handle_);
    queue_.done();
    return true;
  }
  return isWaiting_ || beginStage();
}

std::optional<TaskQueue::Task> BenchmarkRun::takeReady() {
  queue_.add(std::exchange(beingBuilt_, {}));
  while (auto task = queue_.take(0)) {
    if (!task->timing || timer_.isReady(task->timing->call)) return task;
    beingBuilt_.push_back(*std::move(task->timing));
    queue_.done();
  }
  isWaiting_ = !beingBuilt_.empty();
  return std::nullopt;
}

bool BenchmarkRun::beginStage() {
  switch (stage_) {
    case Stage::kAsking:
      isWaiting_ = firstAnswer_ && !firstAnswer_->isThere();
      if (isWaiting_) return true;
      if (question_.askNext(handle_)) return true;
      if (!request_.devices.empty() && question_.expectedTimings() >= kTimingsWorthSharing)
        invite();
      stage_ = Stage::kAnchors;
      return true;
    case Stage::kAnchors:
      if (!measureNextAnchor()) stage_ = Stage::kRefining;
      return true;
    case Stage::kRefining:
      refineAnchors();
      stage_ = Stage::kAgain;
      return true;
    case Stage::kAgain:
      lookAgain();
      stage_ = Stage::kBetween;
      return true;
    case Stage::kBetween:
      if (request_.look != nullptr) {
        stage_ = Stage::kDone;
        return false;
      }
      queue_.addSizes(question_.between(handle_));
      stage_ = Stage::kVariants;
      return true;
    case Stage::kVariants:
      queue_.close();
      if (!variants_.step(handle_)) stage_ = Stage::kDone;
      return true;
    default:
      return false;
  }
}

std::string BenchmarkRun::lastStep() const {
  static constexpr const char* kStages[] = {"asking cuDNN what it has",
                                            "judging sizes",
                                            "timing the fastest again",
                                            "timing graphs of short kernels",
                                            "timing batch sizes in between",
                                            "a variant",
                                            "the end"};
  if (!lastTimed_) return kStages[static_cast<std::size_t>(stage_)];
  return fmt::format(
      "{} at N={}", toText(request_.problem.operation, lastTimed_->second), lastTimed_->first);
}

/// A kernel that is off the front stays so: kernels that are timed later only move the front on, if
/// they don't make its time doubtful.
Measurements BenchmarkRun::settled() {
  Measurements settled;
  for (const auto& [batch, all] : findings_.all())
    for (const Found& found : all)
      if (stage_ > Stage::kAgain || !question_.isWorthRefining(batch, found.measurement))
        settled[batch].kernels.push_back(found.measurement);
  return settled;
}

BenchmarkResult BenchmarkRun::finish() {
  queue_.close();
  if (stage_ != Stage::kDone || request_.look != nullptr) findings_.noteLate();
  if (stage_ < Stage::kRefining) findings_.noteIncomplete(request_.problem.batch());
  const double ownMs = timer_.finish();
  for (const auto& invitation : invitations_) invitation->close();
  findings_.noteDeviceTime(ownMs);
  const std::chrono::duration<double, std::milli> wall = Clock::now() - begin_;
  return findings_.result(request_, question_, wall.count());
}

double BenchmarkRun::pause() noexcept {
  return timer_.pause();
}

void BenchmarkRun::resume(cudnnHandle_t handle, const TensorBuffers* buffers) noexcept {
  handle_ = handle;
  timer_.resume(handle, buffers);
}

void BenchmarkRun::invite() {
  for (std::size_t i = 0; i < request_.devices.size(); ++i) {
    const int device = static_cast<int>(i) + 1;
    invitations_.push_back(std::make_shared<Invitation>(
        [this, device](cudnnHandle_t handle) { help(device, handle); }));
    HelperDevices::instance().invite(request_.devices[i], invitations_.back());
  }
}

/// Takes one timing of each kernel that may matter. One size follows another, because each decides
/// about the next. False: no size is left.
bool BenchmarkRun::measureNextAnchor() {
  if (anchorsBegun_ > 0) endAnchor();
  if (anchorsBegun_ == question_.anchors().size()) return false;
  const Question::Anchor& anchor = question_.anchors()[anchorsBegun_++];
  Question::Judgement judgement = question_.judge(anchor);
  anchorTasks_ = judgement.tasks.size();
  findings_.note(judgement);
  addTimings(std::move(judgement.tasks));
  return true;
}

void BenchmarkRun::endAnchor() {
  const Question::Anchor& anchor = question_.anchors()[anchorsBegun_ - 1];
  std::vector<Measurement> measured;
  for (const Found& found : findings_.at(anchor.batch)) measured.push_back(found.measurement);
  question_.addKnown(anchor);
  const bool isTried = anchorTasks_ == 0 || !findings_.lacksMemory() || !measured.empty();
  if (isTried) question_.add(anchor.batch, measured);
}

/// Times the kernels near the front of all anchors again.
void BenchmarkRun::refineAnchors() {
  std::vector<TimingTask> tasks;
  for (const Question::Anchor& anchor : question_.anchors())
    for (const Found& found : findings_.at(anchor.batch))
      if (question_.isWorthRefining(anchor.batch, found.measurement))
        tasks.push_back(question_.refinement(anchor, found.measurement, found.device));
  addTimings(std::move(tasks));
}

/// Times the kernels that the host was found to pace again, some time after the first timing.
void BenchmarkRun::lookAgain() {
  std::vector<TimingTask> tasks;
  for (const Question::Anchor& anchor : question_.anchors())
    for (const Found& found : findings_.at(anchor.batch)) {
      const Measurement& measured = found.measurement;
      const bool isPaced =
          !measured.isReplayTimed || measured.deviceMs < kHostPaced * measured.timeMs;
      if (measured.timeMs >= kSlowHostPacedMs || !isPaced) continue;
      if (request_.tuning == Tuning::kFast && !question_.isWorthRefining(anchor.batch, measured))
        continue;
      TimingTask task = question_.refinement(anchor, found.measurement, found.device);
      task.how = TimingTask::How::kAgain;
      task.limits = kHostPacedAgain;
      tasks.push_back(std::move(task));
    }
  addTimings(std::move(tasks));
}

void BenchmarkRun::addTimings(std::vector<TimingTask> tasks) {
  if (!invitations_.empty()) std::stable_sort(tasks.begin(), tasks.end(), takesLonger);
  queue_.add(std::move(tasks));
}

void BenchmarkRun::help(int device, cudnnHandle_t handle) noexcept {
  DeviceTimer timer(handle, request_, nullptr, question_);  // the caller's are on another device
  bool works = true;
  while (works) {
    const auto task = queue_.take(device);
    if (!task) break;
    try {
      runTask(*task, device, timer, handle);
    } catch (const std::exception& error) {  // left to the handle's own device
      works = false;
      logInfo("a device stops helping with the benchmark: {}", error.what());
      if (task->timing)
        giveBack(*task->timing);
      else
        queue_.addSizes({task->batch});
    }
    queue_.done();
  }
  const double spentMs = timer.finish();
  findings_.noteDeviceTime(spentMs);
}

void BenchmarkRun::giveBack(TimingTask task) {
  task.onlyOwn = true;
  queue_.add({std::move(task)});
}

void BenchmarkRun::runTask(const TaskQueue::Task& task,
                           int device,
                           DeviceTimer& timer,
                           cudnnHandle_t handle) {
  if (!task.timing) {
    Question::Judgement judgement = question_.judgeBetween(handle, task.batch);
    for (TimingTask& timing : judgement.tasks) timing.device = device;
    findings_.note(judgement);
    queue_.add(std::move(judgement.tasks));
    return;
  }
  timer.prepare();
  const TimingOutcome outcome = time(*task.timing, device, timer);
  using Status = TimingOutcome::Status;
  if (device != 0 && (outcome.status == Status::kFailed || outcome.status == Status::kNoMemory))
    giveBack(*task.timing);
  else
    findings_.note(*task.timing, outcome, device);
}

TimingOutcome BenchmarkRun::time(const TimingTask& task, int device, DeviceTimer& timer) const {
  try {
    return timer.run(task);
  } catch (const Error& error) {
    // cuDNN offers the kernel, but can't build it.
    const bool isRefused = isRefusalToBuild(error.status());
    if (device != 0 && !isRefused) throw;
    logInfo("{} N={} {}: {}",
            request_.problem.text(),
            task.call.batch,
            toText(request_.problem.operation, task.call.offer.kernel),
            error.what());
    return {isRefused ? TimingOutcome::Status::kRefused : TimingOutcome::Status::kFailed};
  }
}

}  // namespace ucudnn
