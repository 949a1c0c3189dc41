// The first question comes while a framework's allocator holds nearly all memory: what runs then is
// cuDNN's own choice or better, and the best plan once memory is there again.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>

#include "../library/fixture.hpp"
#include "../support/simulator.hpp"
#include "../support/slowness.hpp"
#include "forked.hpp"
#include "random.hpp"

namespace ucudnn::test {
namespace {

constexpr double kSlower = 1.02;
// A client calls until the best plan is there: what failed for want of memory is tried again ten
// times as late as it took, which a busy machine may draw out. This is for a plan that never comes.
constexpr unsigned kSecondsForAHang = 60;
constexpr std::chrono::seconds kPatience{kSecondsForAHang / 2 * kSlowness};
constexpr int kMeasuringCalls = 20;
constexpr std::size_t kAllMemory = std::size_t{64} << 30;
constexpr std::size_t kDefaultLimit = std::size_t{64} << 20;
constexpr int kPercents[] = {60, 30, 10, 5, 1, 0};
constexpr int kProblems = 9;

enum class Asking { kFindEx, kNamedLimit, kGet, kFind, kNot };
const char* const kAskings[] = {"FindEx", "named limit", "Get_v7", "Find", "no query"};

struct Question {
  ConvolutionCase convolution;
  ucudnnOperation_t operation = UCUDNN_FORWARD;
  Asking asking = Asking::kFindEx;
  std::size_t limitBytes = 0;
  std::string policy;
  std::string randomTimes;
};

Question questionOf(int number, Asking asking) {
  Random random(static_cast<std::uint64_t>(number) + 1234);
  Question question;
  ConvolutionCase& c = question.convolution;
  const int filter = random.pick({1, 3, 3, 5, 5});
  const int image = random.between(13, 28);
  c.batch = random.pick({32, 64, 100});
  c.channels = random.pick({16, 32, 64});
  c.filters = random.pick({16, 32, 64});
  c.input = {image, image};
  c.filter = {filter, filter};
  c.pad = {filter / 2, filter / 2};
  question.operation = kOperations[number % 3];
  question.asking = asking;
  const bool named = asking == Asking::kFindEx || asking == Asking::kNamedLimit;
  question.limitBytes = named ? random.pick<std::size_t>({1, 4, 16}) << 20 : kDefaultLimit;
  question.policy = number % 2 == 0 ? "powerOfTwo" : "all";
  question.randomTimes = number % 3 == 1 ? std::to_string(number) : "0";
  return question;
}

/// The client: it holds its workspace as frameworks do, whatever is free besides.
class Holder {
 public:
  explicit Holder(const Question& question)
      : question_(question),
        convolution_(question.convolution, Convolution::Contents::kAny),
        held_(question.limitBytes) {}

  std::size_t tensorBytes() { return convolution_.x().bytes() + convolution_.y().bytes(); }

  /// The time of what plain cuDNN's heuristics pick within the limit.
  double plainMs() {
    const int algorithm = picked();
    return timed(
        [&] { return convolution_.run(handles_.native, question_.operation, algorithm, whole()); });
  }

  /// Asks, follows the answer, calls; the time of the call alone.
  double askAndCallMs() {
    int algorithm = picked();
    Workspace granted = whole();
    if (ask(&algorithm)) {
      EXPECT_CUDNN(convolution_.workspaceSize(
          handles_.ours, question_.operation, algorithm, &granted.bytes));
      granted.bytes = std::min(granted.bytes, held_.bytes());
    }
    double ms = 0;
    for (int i = 0; i < kMeasuringCalls; ++i) {  // a call that also measured says nothing
      const long long measured = statistics().kernelsMeasured;
      ms = timed(
          [&] { return convolution_.run(handles_.ours, question_.operation, algorithm, granted); });
      if (statistics().kernelsMeasured == measured) break;
    }
    return ms;
  }

  /// The time under the best plan within the limit.
  double bestMs() {
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    EXPECT_CUDNN(convolution_.plan(
        handles_.ours, question_.operation, question_.limitBytes, &plan, &entries));
    // A deterministic algorithm that is named makes the plan deterministic.
    const int algorithm = question_.asking == Asking::kNot ? picked() : 0;
    const auto call = [&] {
      return convolution_.run(handles_.ours, question_.operation, algorithm, whole());
    };
    EXPECT_CUDNN(call());
    return timed(call);
  }

 private:
  Workspace whole() const { return {held_.get(), held_.bytes()}; }

  template <typename Call>
  double timed(Call call) {
    const double before = clockMs(nullptr);
    EXPECT_CUDNN(call());
    return clockMs(nullptr) - before;
  }

  int picked() {
    std::vector<Performance> answers;
    EXPECT_CUDNN(
        convolution_.query(handles_.native, question_.operation, Query::kGet, 8, &answers));
    for (const Performance& answer : answers)
      if (answer.status == CUDNN_STATUS_SUCCESS && answer.memory <= question_.limitBytes)
        return answer.algorithm;
    throw std::runtime_error("nothing fits the limit");
  }

  /// False: no answer, or none was asked for.
  bool ask(int* algorithm) {
    if (question_.asking == Asking::kNot) return false;
    if (question_.asking == Asking::kNamedLimit)
      return convolution_.queryPreferred(handles_.ours,
                                         question_.operation,
                                         CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT,
                                         question_.limitBytes,
                                         algorithm) == CUDNN_STATUS_SUCCESS;
    const Query how = question_.asking == Asking::kGet    ? Query::kGet
                      : question_.asking == Asking::kFind ? Query::kFind
                                                          : Query::kFindEx;
    std::vector<Performance> answers;
    const cudnnStatus_t status =
        convolution_.query(handles_.ours, question_.operation, how, 1, &answers, whole());
    if (status != CUDNN_STATUS_SUCCESS || answers.empty() ||
        answers.front().status != CUDNN_STATUS_SUCCESS)
      return false;  // Find allocates what there is not
    *algorithm = answers.front().algorithm;
    return true;
  }

  Question question_;
  Handles handles_;
  Convolution convolution_;
  DeviceBuffer held_;
};

struct Times {
  double plainMs = 0, shortMs = 0, laterMs = 0, bestMs = 0;
  int repetitions = 0;
};

void report(const Answer& answer, const Times& times) {
  std::ostringstream text;
  text.precision(9);
  text << times.plainMs << ' ' << times.shortMs << ' ' << times.laterMs << ' ' << times.bestMs
       << ' ' << times.repetitions << '\n';
  answer.write(text.str());
}

/// In a child: the first question with so little free, then with all of it.
void runShort(const Question& question, int percent, double bestMs, const Answer& answer) {
  setArithmetic(Arithmetic::kOff);
  Holder holder(question);
  Times times;
  times.plainMs = holder.plainMs();
  setMemory(0, holder.tensorBytes() * static_cast<std::size_t>(percent) / 100);
  for (int i = 0; i < 3; ++i) times.shortMs = std::max(times.shortMs, holder.askAndCallMs());
  setMemory(0, kAllMemory);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    times.laterMs = holder.askAndCallMs();
    ++times.repetitions;
  } while (times.laterMs > kSlower * bestMs && std::chrono::steady_clock::now() < end);
  report(answer, times);
}

Times run(const std::function<void(const Answer&)>& function) {
  const ForkResult result = runForked(function, kSecondsForAHang);
  Times times;
  EXPECT_EQ(5,
            std::sscanf(result.answer.c_str(),
                        "%lf %lf %lf %lf %d",
                        &times.plainMs,
                        &times.shortMs,
                        &times.laterMs,
                        &times.bestMs,
                        &times.repetitions))
      << "status " << result.status << ": " << result.answer << result.output;
  EXPECT_EQ("", result.output);
  return times;
}

class ShortMemoryTest : public ::testing::TestWithParam<std::tuple<int, Asking>> {};

TEST_P(ShortMemoryTest, NeverSlowerThanCudnnAndBestOnceMemoryIsThere) {
  if (!onSimulator()) GTEST_SKIP() << "children start on the simulator only";
  const auto& [number, asking] = GetParam();
  const Question question = questionOf(number, asking);
  const EnvironmentGuard environment({{"UCUDNN_BATCH_SIZE_POLICY", question.policy},
                                      {"UCUDNN_SIMULATOR_RANDOM_TIMES", question.randomTimes}});
  const Times all = run([&](const Answer& answer) {
    setArithmetic(Arithmetic::kOff);
    Times times;
    times.bestMs = Holder(question).bestMs();
    report(answer, times);
  });
  for (const int percent : kPercents) {
    SCOPED_TRACE(std::string(kAskings[static_cast<int>(asking)]) + " with " +
                 std::to_string(percent) + " % free, " + toText(question.operation) + " of \"" +
                 question.convolution.serialized() + "\" within " +
                 std::to_string(question.limitBytes) + ", " + question.policy + ", random times " +
                 question.randomTimes);
    const Times times =
        run([&](const Answer& answer) { runShort(question, percent, all.bestMs, answer); });
    EXPECT_LE(times.shortMs, kSlower * times.plainMs) << "slower than cuDNN while memory is short";
    EXPECT_LE(times.laterMs, kSlower * all.bestMs)
        << "not the best plan after " << times.repetitions << " calls with all memory";
  }
}

INSTANTIATE_TEST_SUITE_P(Problems,
                         ShortMemoryTest,
                         ::testing::Combine(::testing::Range(0, kProblems),
                                            ::testing::Values(Asking::kFindEx,
                                                              Asking::kNamedLimit,
                                                              Asking::kGet,
                                                              Asking::kFind,
                                                              Asking::kNot)));

}  // namespace
}  // namespace ucudnn::test
