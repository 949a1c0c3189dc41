// Measurements that outlive a planner.
#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "cache/shared_databases.hpp"
#include "changed_database.hpp"
#include "cuda/calling_threads.hpp"
#include "planner/measurement_files.hpp"
#include "planner_fixture.hpp"
#include "support/host_clock.hpp"
#include "support/temporary_directory.hpp"
#include "support/waits.hpp"

namespace ucudnn {
namespace {

using namespace test;

class PlannerDatabaseTest : public PlannerTest {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    settings_.databasePath = directory_.file("ucudnn.db");
  }
  TemporaryDirectory directory_;
};

TEST_F(PlannerDatabaseTest, ASecondStartMeasuresNothing) {
  std::string expected;
  long long kernels = 0;
  {
    Planner planner;
    const auto plan = planner.plan(request(planner, kDividedLimit));
    ASSERT_TRUE(plan);
    expected = toText(*plan);
    kernels = measured(planner);
    EXPECT_EQ(planner.statistics().kernelsLoaded, 0);
  }
  Planner planner;
  const auto forwards = callCount("cudnnConvolutionForward");
  const auto plan = planner.plan(request(planner, kDividedLimit));
  ASSERT_TRUE(plan);
  EXPECT_EQ(toText(*plan), expected);
  EXPECT_EQ(measured(planner), 0);
  EXPECT_EQ(planner.statistics().kernelsLoaded, kernels);
  EXPECT_EQ(callCount("cudnnConvolutionForward"), forwards);
}

TEST_F(PlannerDatabaseTest, WhatIsHalfMeasuredAtTheEndGoesOnInTheNextProcess) {
  settings_.benchmarkStallMs = 1e-6;  // a step a call
  settings_.benchmarkShare = 1e6;
  hostClock() = hostClockMs;
  const auto callUntil = [&](Planner& planner, auto isEnough) {
    PlanRequest wanted = request(planner, kUndividedLimit);
    wanted.callsSince = 1000;
    PlanAnswer found;
    while (!found.isFinal && !isEnough()) found = planner.answer(wanted, Measuring::kWhenItPays);
    return found.plan;
  };
  const auto never = [] { return false; };
  const std::string path = settings_.databasePath;
  settings_.databasePath.clear();
  Planner alone;
  const auto expected = callUntil(alone, never);
  ASSERT_TRUE(expected);
  const long long mostMicroseconds = alone.statistics().sliceMicroseconds;
  settings_.databasePath = path;
  {
    Planner first;
    const auto isMost = [&] {
      return first.statistics().sliceMicroseconds > mostMicroseconds / 10 * 8;
    };
    EXPECT_FALSE(callUntil(first, isMost));
  }
  Planner next;
  const auto plan = callUntil(next, never);
  hostClock() = steadyMs;
  ASSERT_TRUE(plan);
  EXPECT_EQ(toText(*expected), toText(*plan));
  EXPECT_LT(0, measured(next));
  EXPECT_LT(measured(next), measured(alone) * 2 / 3);
  EXPECT_LT(next.statistics().sliceMicroseconds, mostMicroseconds * 2 / 3);
}

// For the shipped database.
TEST_F(PlannerDatabaseTest, OfAnotherVersionOnlyTheOrderIsTaken) {
  Planner planner;
  planner.plan(request(planner, kDividedLimit));
  const std::string shipped = settings_.databasePath;
  settings_.databasePath = directory_.path() + "/kept/";
  const PlanRequest asked = request(planner, kDividedLimit);
  const StoredKnowledge same = MeasurementFiles(planner.machines(), shipped).read(asked);
  EXPECT_FALSE(same.measurements.empty());
  EXPECT_FALSE(same.answered.empty());
  EXPECT_TRUE(same.elsewhere.empty());
  changeDatabase(shipped, "UPDATE machine SET driver_version = driver_version - 10");
  const StoredKnowledge other = MeasurementFiles(planner.machines(), shipped).read(asked);
  EXPECT_TRUE(other.measurements.empty());
  EXPECT_TRUE(other.answered.empty());
  EXPECT_TRUE(other.accurateFirst.empty());
  ASSERT_EQ(same.measurements.size(), other.elsewhere.size());
  const int batch = asked.problem.batch();
  EXPECT_EQ(same.measurements.at(batch).kernels.size(), other.elsewhere.at(batch).kernels.size());
  settings_.databasePath = shipped;  // by name, too
  const StoredKnowledge named =
      MeasurementFiles(planner.machines(), "").read(request(planner, kDividedLimit));
  EXPECT_TRUE(named.measurements.empty());
  EXPECT_EQ(same.measurements.size(), named.elsewhere.size());
}

// A question takes cuDNN 0.1 to 0.4 ms, its ranking longer.
TEST_F(PlannerDatabaseTest, ASecondStartAsksOnceAboutWhatItRunsAndNames) {
  Planner first;
  first.plan(request(first, kDividedLimit));
  constexpr auto kQuestion = "cudnnGetConvolutionForwardWorkspaceSize";
  constexpr auto kRanking = "cudnnGetConvolutionForwardAlgorithm_v7";
  const auto questions = callCount(kQuestion), rankings = callCount(kRanking);
  Planner planner;
  const auto plan = planner.plan(request(planner, kDividedLimit));
  ASSERT_TRUE(plan && plan->replayed);
  ASSERT_FALSE(plan->steps.front().accurate) << "its accuracy is asked about at both paces";
  const Kernel named{plan->algorithm, plan->problem.mathType};
  std::set<std::pair<int, Kernel>> kernels{{plan->problem.batch(), named}};
  for (const Plan* each = plan.get(); each != nullptr; each = each->enqueued.get())
    for (const Plan::Step& step : each->steps) kernels.emplace(step.batch, step.kernel);
  EXPECT_EQ(callCount(kQuestion) - questions, static_cast<std::int64_t>(kernels.size()));
  EXPECT_EQ(callCount(kRanking) - rankings, 1);
}

// A plan of 17 and 16 samples by one algorithm. A row may say too little of the smaller size: the
// plan has the workspace that the larger one needs.
TEST_F(PlannerDatabaseTest, ASecondStartAsksAboutAnAlgorithmAtItsLargestSizeAlone) {
  settings_.batchSizePolicy = BatchSizePolicy::kAll;
  settings_.graphMemoryBytes = 0;
  constexpr std::size_t kLimit = 36 * kMebibyte;
  const Problem problem = largeProblem(Operation::kForward, 33);
  Planner first;
  const auto expected = first.plan(request(first, kLimit, problem));
  ASSERT_TRUE(expected);
  ASSERT_EQ(expected->steps.size(), 2U) << toText(*expected);
  const Plan::Step &larger = expected->steps[0], &smaller = expected->steps[1];
  ASSERT_TRUE(larger.kernel == smaller.kernel && larger.batch > smaller.batch);
  for (const std::string& bytes : {std::string("workspace_bytes"), std::string("0")}) {
    changeDatabase(settings_.databasePath,
                   "UPDATE measurement SET workspace_bytes = " + bytes +
                       " WHERE size_id IN (SELECT id FROM size WHERE batch = " +
                       std::to_string(smaller.batch) + ")");
    constexpr auto kQuestion = "cudnnGetConvolutionForwardWorkspaceSize";
    const auto questions = callCount(kQuestion);
    Planner planner;
    const auto plan = planner.plan(request(planner, kLimit, problem));
    ASSERT_TRUE(plan);
    EXPECT_EQ(toText(*plan), toText(*expected));
    EXPECT_EQ(plan->workspaceBytes, larger.workspaceBytes);
    EXPECT_EQ(callCount(kQuestion) - questions, 2) << "of the larger size, and of the name";
  }
}

// An inaccurate kernel would be the fastest split, and cuDNN ranks an accurate one first.
TEST_F(PlannerDatabaseTest, ASecondStartDoesNotAskAgainForARankingThatKeptAKernelOut) {
  Problem problem = largeProblem();
  problem.xSizes[1] = problem.wSizes[1] = 16;
  problem.xStrides[0] = 16 * 27 * 27;
  constexpr auto kRanking = "cudnnGetConvolutionForwardAlgorithm_v7";
  std::string expected;
  for (const bool isSecond : {false, true}) {
    const auto rankings = callCount(kRanking);
    Planner planner;
    const auto plan = planner.plan(request(planner, kDividedLimit, problem));
    ASSERT_TRUE(plan);
    for (const Plan::Step& step : plan->steps) EXPECT_TRUE(step.accurate);
    if (!isSecond) expected = toText(*plan);
    EXPECT_EQ(toText(*plan), expected);
    EXPECT_EQ(callCount(kRanking) - rankings, isSecond ? 0 : 1);
  }
  changeDatabase(
      settings_.databasePath,
      "DELETE FROM size WHERE problem_id = (SELECT id FROM problem WHERE text LIKE '% accurate')");
  const auto rankings = callCount(kRanking);
  Planner planner;
  EXPECT_EQ(toText(*planner.plan(request(planner, kDividedLimit, problem))), expected);
  EXPECT_EQ(callCount(kRanking) - rankings, 1) << "what is not said is asked";
}

TEST_F(PlannerDatabaseTest, ALargerLimitAddsToWhatIsStored) {
  {
    Planner planner;
    planner.plan(request(planner, kMebibyte));
  }
  {
    Planner planner;
    planner.plan(request(planner, kUndividedLimit));
    EXPECT_GT(planner.statistics().kernelsLoaded, 0);
    EXPECT_GT(measured(planner), 0);
  }
  Planner planner;
  planner.plan(request(planner, kMebibyte));
  planner.plan(request(planner, kUndividedLimit));
  EXPECT_EQ(measured(planner), 0);
}

TEST_F(PlannerDatabaseTest, ForWhichLimitsThereWasALookIsStored) {
  constexpr std::size_t kFarBelow = 12 * kMebibyte;
  const auto measuredWithin = [&](std::size_t limit) {
    Planner planner;
    EXPECT_TRUE(planner.plan(request(planner, limit)));
    return measured(planner);
  };
  EXPECT_LT(0, measuredWithin(1024 * kMebibyte));
  EXPECT_EQ(0, measuredWithin(1024 * kMebibyte));
  EXPECT_LT(0, measuredWithin(kFarBelow));
  EXPECT_EQ(0, measuredWithin(kFarBelow));
  EXPECT_EQ(0, measuredWithin(1024 * kMebibyte));
}

TEST_F(PlannerDatabaseTest, AnotherModelOfDeviceIsMeasuredItself) {
  {
    Planner planner;
    planner.plan(request(planner, kMebibyte));
  }
  const DeviceScope scope(2);
  const CudnnHandle handle = makeOwned<CudnnHandle>(cudnnCreate);
  Planner planner;
  PlanRequest wanted = request(planner, kMebibyte);
  wanted.handle = handle.get();
  wanted.machine = planner.machines().ofDevice(2);
  EXPECT_TRUE(planner.plan(wanted));
  EXPECT_EQ(planner.statistics().kernelsLoaded, 0);
  EXPECT_GT(measured(planner), 0);
}

// Memory that was short once is no property of the machine.
TEST_F(PlannerDatabaseTest, WhatMemoryWasShortForIsTriedAgainByTheNextStart) {
  const Problem problem = largeProblem();
  setMemory(0, problem.xBytes() + problem.yBytes() + problem.wBytes() + 4 * kMebibyte);
  {
    Planner planner;
    EXPECT_FALSE(planner.plan(request(planner, kUndividedLimit)));
  }
  setMemory(0, SIZE_MAX);
  Planner planner;
  const auto plan = planner.plan(request(planner, kUndividedLimit));
  ASSERT_TRUE(plan);
  EXPECT_GT(measured(planner), 0);
  EXPECT_GT(plan->workspaceBytes, kDividedLimit);
}

// The database answers the question that was asked, and no other.
TEST_F(PlannerDatabaseTest, WhatOneQuestionLeftOutIsMeasuredForAnother) {
  const Problem whole = largeProblem(Operation::kForward, 32);
  const Problem last = largeProblem(Operation::kForward, 24);
  Planner alone;
  settings_.databasePath.clear();
  const auto expected = alone.plan(request(alone, kUndividedLimit, last));
  settings_.databasePath = directory_.file("ucudnn.db");
  {
    Planner planner;
    planner.plan(request(planner, kUndividedLimit, whole));
  }
  for (const bool isStored : {false, true}) {
    Planner planner;
    const auto plan = planner.plan(request(planner, kUndividedLimit, last));
    ASSERT_TRUE(plan && expected);
    EXPECT_LE(plan->predictedMs, expected->predictedMs * 1.05) << toText(*plan);
    EXPECT_EQ(measured(planner) == 0, isStored);
  }
}

TEST_F(PlannerDatabaseTest, AFileThatOthersHoldIsReadLater) {
  std::string expected;
  {
    Planner planner;
    expected = toText(*planner.plan(request(planner, kDividedLimit)));
  }
  Planner planner;
  const auto ask = [&] {
    return planner.answer(request(planner, kDividedLimit), Measuring::kIfKnown).plan;
  };
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(settings_.databasePath.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto begin = std::chrono::steady_clock::now();
  const auto before = waited();
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(ask());
  // 100 ms in all, and a hundredth of the time that passes.
  const auto passed = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(waited() - before, std::chrono::milliseconds(100) + passed / 100);
  EXPECT_LT(before, waited());
  EXPECT_EQ(sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(sqlite3_close(other), SQLITE_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  const auto plan = ask();
  ASSERT_TRUE(plan);
  EXPECT_EQ(toText(*plan), expected);
  EXPECT_EQ(measured(planner), 0);
}

TEST_F(PlannerDatabaseTest, ThreadsThatAskTogetherMeasureNothing) {
  {
    Planner planner;
    ASSERT_TRUE(planner.plan(request(planner, kDividedLimit)));
  }
  // A thread waits a second for another that reads the file; on a busy machine that may be too
  // short.
  constexpr std::chrono::milliseconds kPatience{1000};
  int judged = 0;
  for (int round = 0; round < 20; ++round) {
    Planner planner;
    const auto begin = std::chrono::steady_clock::now();
    std::atomic<int> waiting{4};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        const CudnnHandle handle = makeOwned<CudnnHandle>(cudnnCreate);
        PlanRequest wanted = request(planner, kDividedLimit);
        wanted.handle = handle.get();
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        EXPECT_TRUE(planner.plan(wanted));
      });
    for (std::thread& thread : threads) thread.join();
    if (std::chrono::steady_clock::now() - begin >= kPatience) continue;
    ++judged;
    EXPECT_EQ(measured(planner), 0) << "round " << round;
  }
  EXPECT_GT(judged, 0);
}

// Else it would never have a plan: nothing is left to be measured.
TEST_F(PlannerDatabaseTest, WhoLostPatienceWithTheReadingThreadGetsThePlanLater) {
  const Problem another = largeProblem(Operation::kBackwardData);
  {
    Planner planner;
    ASSERT_TRUE(planner.plan(request(planner, kDividedLimit)));
    ASSERT_TRUE(planner.plan(request(planner, kDividedLimit, another)));
  }
  Planner planner;
  ASSERT_TRUE(planner.plan(request(planner, kDividedLimit, another)));  // the file is open now
  const auto ask = [&] {
    return planner.answer(request(planner, kDividedLimit), Measuring::kIfKnown).plan;
  };
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  {
    const std::lock_guard reading(SharedDatabases::instance().mutex);
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([&] {
        ask();
        ++ended;
      });
    while (ended == 0) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(ask());
  EXPECT_EQ(measured(planner), 0);
}

TEST_F(PlannerDatabaseTest, AQueryThatNamesNoLimitReadsIt) {
  {
    Planner planner;
    planner.plan(request(planner, kUndividedLimit));
  }
  Planner planner;
  EXPECT_TRUE(planner.answer(request(planner, kUndividedLimit), Measuring::kIfKnown).plan);
  EXPECT_EQ(measured(planner), 0);
}

// Each kernel's time is known, but not what it takes in a graph, for which there was no memory.
TEST_F(PlannerDatabaseTest, WhatHadNoMemoryForReplayIsAnsweredWhereNothingIsReplayed) {
  const Problem problem = largeProblem(Operation::kForward, 4);
  const DeviceBuffer x(problem.xBytes()), w(problem.wBytes()), y(problem.yBytes());
  const DeviceBuffer workspace(kUndividedLimit);
  const TensorBuffers buffers{x.get(), w.get(), y.get(), workspace.get(), workspace.bytes()};
  const auto isAnswered = [&] {
    Planner planner;
    return planner.answer(request(planner, kUndividedLimit, problem), Measuring::kIfKnown).isFinal;
  };
  const auto measure = [&] {
    Planner planner;
    PlanRequest wanted = request(planner, kUndividedLimit, problem);
    wanted.buffers = &buffers;
    EXPECT_TRUE(planner.plan(wanted));
    EXPECT_GT(measured(planner), 0);
  };
  setMemory(0, 0);
  measure();
  setMemory(0, SIZE_MAX);
  EXPECT_FALSE(isAnswered());
  settings_.graphMemoryBytes = 0;
  EXPECT_TRUE(isAnswered());
  settings_.graphMemoryBytes = Settings().graphMemoryBytes;
  measure();
  EXPECT_TRUE(isAnswered());
}

// On a device of its own: other tests may capture.
TEST_F(PlannerDatabaseTest, WhereNothingMayBeCapturedReplaysAreNotAskedForAgain) {
  ASSERT_EQ(cudaSuccess, cudaSetDevice(1));
  handle_ = makeOwned<CudnnHandle>(cudnnCreate);
  CallingThreads& threads = callingThreads(1);
  threads.note();
  const auto ask = [&](Planner& planner) {
    PlanRequest wanted = request(planner, kDividedLimit);
    wanted.device = 1;
    return planner.plan(wanted);
  };
  std::thread([&] { threads.note(); }).join();
  Planner first;
  EXPECT_TRUE(ask(first));
  EXPECT_GT(measured(first), 0);
  Planner second;
  EXPECT_TRUE(ask(second));
  EXPECT_EQ(measured(second), 0);
  // A thread that is alone on its device asks.
  Planner alone;
  EXPECT_TRUE(alone.plan(request(alone, kDividedLimit)));
  EXPECT_GT(measured(alone), 0);
  ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
}

}  // namespace
}  // namespace ucudnn
