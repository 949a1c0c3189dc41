// Kernels that are wrong fail their check; kernels that are right pass it.
#include "benchmark/kernel_check.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <set>

#include "kernels/device_kernels.hpp"
#include "kernels/engines.hpp"
#include "support/simulator.hpp"

namespace ucudnn {
namespace {

using namespace test;

using Kind = KernelVerdict::Kind;

/// A problem that any client might have: small, so that a test has many.
class RandomProblems {
 public:
  explicit RandomProblems(unsigned seed) : random_(seed) {}

  Problem next() {
    const int types[] = {CUDNN_DATA_FLOAT,
                         CUDNN_DATA_FLOAT,
                         CUDNN_DATA_HALF,
                         CUDNN_DATA_BFLOAT16,
                         CUDNN_DATA_DOUBLE};
    const auto type = static_cast<cudnnDataType_t>(types[below(5)]);
    Problem p = sampleProblem(static_cast<Operation>(below(4)), 1 + below(5), 8, type);
    p.mathType = type == CUDNN_DATA_DOUBLE || below(2) == 0 ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
    for (std::size_t d = 0; d < 2; ++d) {
      const int taps = 1 + below(5);
      setLine(p, d, {taps + below(12), taps, below(taps), 1 + below(2)});
    }
    p.groups = below(4) == 0 ? 2 : 1;
    if (p.operation == Operation::kBiasActivationForward) {
      p.activation = below(2) == 0 ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY;
      p.addsZ = below(2) == 0 ? 0 : 1;
    }
    setSizes(p, p.groups * (1 + below(12)), p.groups * (1 + below(12)), below(3) == 0);
    return p;
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  std::mt19937 random_;
};

class KernelCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onSimulator()) GTEST_SKIP() << "needs kernels that lie";
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
  }
  void TearDown() override {
    setLie(Lie::kNone);
    setRounding(false);
    setArithmetic(Arithmetic::kFull);
    setMemory(0, SIZE_MAX);
  }

  struct Checked {
    std::string name;
    KernelVerdict verdict;
    bool mayLie = false;  ///< of the simulator's engines those of odd numbers do
    /// Its engine's output, or what lies behind its workspace, is workspace of ours.
    bool isCopied = false;
    bool deterministic = true;
    std::size_t workspaceBytes = 0;
  };

  /// All that cuDNN offers for the problem, each checked.
  std::vector<Checked> check(const Problem& problem,
                             bool mustRepeat = false,
                             bool adds = false,
                             const ScratchBound& memory = {}) const {
    std::vector<Checked> all;
    PreparedKernels prepared(handle_.get(), problem);
    KnownOutputs known;
    KernelChecker checker(handle_.get(), problem, memory, known);
    for (const KernelOffer& offer :
         offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), true)) {
      KernelToCheck checked;
      checked.batch = problem.batch();
      checked.kernel = prepared.build(problem.batch(), offer.kernel, Calls::kAll);
      checked.workspaceBytes = offer.workspaceBytes;
      checked.accurate = offer.accurate;
      checked.mustRepeat = mustRepeat && offer.deterministic;
      checked.adds = adds;
      const bool isEngine = offer.kernel.source == kEngines;
      EngineConfiguration engine;
      if (isEngine) engine = engineConfigurationOf(offer.kernel.id);
      all.push_back({toText(problem.operation, offer.kernel),
                     checker.check(checked),
                     isEngine && engine.engine % 2 == 1,
                     engine.folds != 1 || engine.sums != 1 || engine.blocks != 0,
                     offer.deterministic,
                     offer.workspaceBytes});
    }
    return all;
  }

  CudnnHandle handle_;
};

TEST_F(KernelCheckTest, RightKernelsPass) {
  const char* const asked = std::getenv("UCUDNN_TEST_PROBLEMS");
  const int problems = asked != nullptr ? std::atoi(asked) : 60;
  RandomProblems random(1);
  std::set<std::string> names;
  setRounding(true);  // as kernels of a GPU
  for (int i = 0; i < problems; ++i) {
    const Problem problem = random.next();
    SCOPED_TRACE(problem.text() + " N=" + std::to_string(problem.batch()));
    const bool adds = problem.operation == Operation::kBackwardFilter;
    for (const Checked& kernel : check(problem, true, adds)) {
      names.insert(kernel.name);
      EXPECT_EQ(kernel.verdict.kind, Kind::kRight) << kernel.name << ": " << kernel.verdict.why;
    }
  }
  EXPECT_GT(names.size(), 10U);
  EXPECT_EQ(violationCount(), 0);
}

/// Some of cuDNN's engines leave it to the tensor cores, which cut off the bits that TF32 does not
/// have. Where all products have one sign, the sum is too small by up to 2^-9 of itself.
TEST_F(KernelCheckTest, CutOffBitsOfTf32AreTolerated) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> values(1, 2);
  const auto cutOff = [](float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits &= ~((std::uint32_t{1} << 13) - 1);
    std::memcpy(&value, &bits, sizeof bits);
    return static_cast<double>(value);
  };
  double exact = 0, sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const float a = values(random), b = values(random);
    exact += static_cast<double>(a) * b;
    sum += cutOff(a) * cutOff(b);
  }
  const double error = (exact - sum) / exact;
  Problem problem = sampleProblem(Operation::kBackwardFilter, 12, 8);
  problem.mathType = CUDNN_DEFAULT_MATH;
  EXPECT_LT(error, toleranceOf(problem, true).ofItself);
  problem.mathType = CUDNN_FMA_MATH;
  EXPECT_GT(error, toleranceOf(problem, true).ofItself);
}

/// A filter gradient of so many pixels that the check's dy is mostly 0.
TEST_F(KernelCheckTest, RightKernelsOfALongSumPass) {
  for (const bool isNhwc : {false, true}) {
    Problem p = sampleProblem(Operation::kBackwardFilter, 12, 8);
    setLine(p, 0, {13, 3, 1, 1});
    setLine(p, 1, {15, 3, 1, 2});
    setSizes(p, 8, 6, isNhwc);
    for (const bool adds : {false, true})
      for (const Checked& kernel : check(p, true, adds))
        EXPECT_EQ(kernel.verdict.kind, Kind::kRight) << kernel.name << ": " << kernel.verdict.why;
  }
}

struct LieCase {
  const char* name;
  Lie lie;
  Kind kind;
};

std::ostream& operator<<(std::ostream& stream, const LieCase& lie) {
  return stream << lie.name;
}

class LiesTest : public KernelCheckTest, public ::testing::WithParamInterface<LieCase> {};

TEST_P(LiesTest, ThoseThatLieFailAndNoOthers) {
  const LieCase& lie = GetParam();
  int failed = 0;
  for (const Operation operation : {Operation::kForward,
                                    Operation::kBackwardData,
                                    Operation::kBackwardFilter,
                                    Operation::kBiasActivationForward}) {
    Problem p = sampleProblem(operation, 12, 8);
    setLine(p, 0, {13, 3, 1, 1});
    setLine(p, 1, {15, 3, 1, 1});
    p.mathType = CUDNN_DEFAULT_MATH;
    p.groups = lie.lie == Lie::kGroups ? 2 : 1;
    setSizes(p, 12, 8, false);
    if (operation == Operation::kBiasActivationForward) p.activation = CUDNN_ACTIVATION_RELU;
    SCOPED_TRACE(p.text());
    setLie(lie.lie);
    const bool isOfBits = lie.kind == Kind::kUnrepeatable;
    for (const Checked& kernel : check(p, isOfBits)) {
      const bool isOfWorkspace = lie.lie == Lie::kWorkspace || lie.lie == Lie::kMore;
      // A write there harms nobody, or it is seen in the output.
      if ((isOfWorkspace || lie.lie == Lie::kOutput) && kernel.mayLie && kernel.isCopied) continue;
      const bool lies = kernel.mayLie && (!isOfWorkspace || kernel.workspaceBytes > 0) &&
                        (!isOfBits || kernel.deterministic);
      EXPECT_EQ(kernel.verdict.kind, lies ? lie.kind : Kind::kRight)
          << kernel.name << ": " << kernel.verdict.why;
      failed += lies ? 1 : 0;
    }
    setLie(Lie::kNone);
  }
  EXPECT_GT(failed, 0) << "nothing was tested";
  EXPECT_EQ(violationCount(), 0) << "what lies has written within the check's own memory";
}

INSTANTIATE_TEST_SUITE_P(All,
                         LiesTest,
                         ::testing::Values(LieCase{"Channel", Lie::kChannel, Kind::kWrong},
                                           LieCase{"Row", Lie::kRow, Kind::kWrong},
                                           LieCase{"Odd", Lie::kOdd, Kind::kWrong},
                                           LieCase{"Groups", Lie::kGroups, Kind::kWrong},
                                           LieCase{"Output", Lie::kOutput, Kind::kWrong},
                                           LieCase{"Workspace", Lie::kWorkspace, Kind::kWrong},
                                           LieCase{"More", Lie::kMore, Kind::kWrong},
                                           LieCase{"Bits", Lie::kBits, Kind::kUnrepeatable},
                                           LieCase{"Unwritten", Lie::kUnwritten, Kind::kWrong}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(KernelCheckTest, WithoutMemoryNothingIsSaid) {
  const Problem problem = sampleProblem(Operation::kForward, 12, 8);
  setLie(Lie::kChannel);
  ScratchBound bound;
  bound.mostBytes = 1024;
  for (const Checked& kernel : check(problem, false, false, bound))
    EXPECT_EQ(kernel.verdict.kind, Kind::kUnchecked) << kernel.name;
  setMemory(0, 1024);
  for (const Checked& kernel : check(problem))
    EXPECT_EQ(kernel.verdict.kind, Kind::kUnchecked) << kernel.name;
}

TEST_F(KernelCheckTest, WhereTheSimulatorComputesNothingNothingIsSaid) {
  const Problem problem = sampleProblem(Operation::kForward, 12, 8);
  for (const Arithmetic arithmetic : {Arithmetic::kSampled, Arithmetic::kOff}) {
    setArithmetic(arithmetic);
    for (const Checked& kernel : check(problem))
      EXPECT_EQ(kernel.verdict.kind, Kind::kUnchecked) << kernel.name;
  }
}

/// Each call of CUDA's or cuDNN's: an error, or no verdict; never a wrong one, and no leak.
TEST_F(KernelCheckTest, AFailedCallCondemnsNothing) {
  const Problem problem = sampleProblem(Operation::kForward, 2, 8);
  PreparedKernels prepared(handle_.get(), problem);
  const auto offers =
      offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), false);
  ASSERT_FALSE(offers.empty());
  KernelToCheck checked;
  checked.batch = problem.batch();
  checked.kernel = prepared.build(problem.batch(), offers.front().kernel, Calls::kAll);
  checked.workspaceBytes = offers.front().workspaceBytes;
  const auto kindOfCheck = [&] {
    KnownOutputs known;
    return KernelChecker(handle_.get(), problem, {}, known).check(checked).kind;
  };
  const std::int64_t before = callCount();
  EXPECT_EQ(kindOfCheck(), Kind::kRight);
  const std::int64_t calls = callCount() - before;
  const std::int64_t live = liveResources();
  for (std::int64_t n = 1; n <= calls; ++n) {
    failCall(n);
    try {
      EXPECT_NE(kindOfCheck(), Kind::kWrong) << "call " << n;
    } catch (const Error&) {
    }
    failCall(0);
    EXPECT_EQ(liveResources(), live) << "call " << n;
  }
}

/// Kernels of several batch sizes, one after another in the same memory, as a plan has them. What
/// one of them does to it must not be held against the next.
TEST_F(KernelCheckTest, KernelsOfAPlanShareMemoryAndInputs) {
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
    Problem problem = sampleProblem(operation, 12, 16);
    problem.mathType = CUDNN_DEFAULT_MATH;
    SCOPED_TRACE(problem.text());
    std::vector<KernelToCheck> kernels;
    std::vector<bool> mayLie;
    for (const int batch : {12, 5, 1}) {
      const Problem part = problem.withBatch(batch);
      PreparedKernels prepared(handle_.get(), part);
      for (const KernelOffer& offer :
           offeredKernels(handle_.get(), part, ProblemDescriptors(part).get(), true)) {
        KernelToCheck checked;
        checked.batch = batch;
        checked.kernel = prepared.build(batch, offer.kernel, Calls::kAll);
        checked.workspaceBytes = offer.workspaceBytes;
        checked.accurate = offer.accurate;
        kernels.push_back(checked);
        mayLie.push_back(offer.kernel.source == kEngines &&
                         engineConfigurationOf(offer.kernel.id).engine % 2 == 1);
      }
    }
    for (const Lie lie : {Lie::kNone, Lie::kRow, Lie::kOutput, Lie::kWorkspace}) {
      setLie(lie);
      KnownOutputs known;
      KernelChecker checker(handle_.get(), problem, {}, known);
      for (const KernelToCheck& kernel : kernels) checker.reserve(kernel);
      const std::int64_t allocated = callCount("cudaMalloc");
      const std::int64_t before = callCount();
      std::size_t failed = 0;
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        const KernelVerdict verdict = checker.check(kernels[i]);
        failed += verdict.kind == Kind::kWrong ? 1 : 0;
        EXPECT_TRUE(mayLie[i] || verdict.kind == Kind::kRight) << verdict.why;
      }
      EXPECT_EQ(callCount("cudaMalloc"), allocated + 1);
      if (lie == Lie::kNone || lie == Lie::kRow) {
        EXPECT_EQ(failed > 0, lie == Lie::kRow);
      }
      // Some 20 copies of outputs and of what lies beside them, and the kernel's own calls.
      const auto count = static_cast<std::int64_t>(kernels.size());
      EXPECT_LT(callCount() - before, (lie == Lie::kNone ? 50 : 100) * count);
    }
    setLie(Lie::kNone);
  }
  EXPECT_EQ(violationCount(), 0);
}

/// As many as there are, each once, and in lines that one copy fetches.
TEST(OutputsToCheckTest, AreOnTheirLinesAndWithinTheOutput) {
  RandomProblems random(2);
  for (int i = 0; i < 200; ++i) {
    const Problem problem = random.next();
    SCOPED_TRACE(problem.text());
    const OutputsToCheck checked = outputsToCheck(problem);
    const std::size_t last = problem.outputBytes() / elementBytes(problem.outputType());
    std::size_t count = 0;
    for (const OutputLine& line : checked.lines)
      for (std::size_t j = 0; j < line.count; ++j, ++count) {
        ASSERT_LT(count, checked.outputs.size());
        EXPECT_EQ(checked.outputs[count].offset, line.first + j * line.step);
        EXPECT_LT(checked.outputs[count].offset, last);
      }
    EXPECT_EQ(count, checked.outputs.size());
    EXPECT_LE(count, std::size_t{kMostOutputs});
  }
}

TEST(OutputsToCheckTest, AreOfAllChannelsAndOfTheLastOfEachDimension) {
  Problem problem = sampleProblem(Operation::kForward, 40, 64);
  setLine(problem, 0, {30, 3, 1, 1});
  setLine(problem, 1, {50, 3, 1, 1});
  setSizes(problem, 64, 64, false);
  std::set<std::size_t> channels, places;
  std::array<std::size_t, 3> lasts{};
  for (const ExactOutput& output : outputsToCheck(problem).outputs) {
    const std::size_t column = output.offset % 50, row = output.offset / 50 % 30;
    const std::size_t channel = output.offset / 1500 % 64, sample = output.offset / 1500 / 64;
    channels.insert(channel);
    places.insert(output.offset);
    lasts[0] += sample == 39 ? 1 : 0;
    lasts[1] += row == 29 ? 1 : 0;
    lasts[2] += column == 49 ? 1 : 0;
  }
  EXPECT_EQ(channels.size(), 64U);
  EXPECT_GT(places.size(), 200U);
  for (const std::size_t last : lasts) EXPECT_GE(last, 32U);
}

/// Gigabytes from one to the next would be too far for a copy.
TEST(OutputsToCheckTest, OfALargeOutputAreWithinACopysReach) {
  Problem problem = sampleProblem(Operation::kForward, 4, 32);
  setLine(problem, 0, {30000, 3, 1, 1});
  setLine(problem, 1, {30000, 3, 1, 1});
  setSizes(problem, 1, 64, false);
  const OutputsToCheck checked = outputsToCheck(problem);
  EXPECT_GE(checked.outputs.size(), 64U);
  for (const OutputLine& line : checked.lines) {
    EXPECT_LT(line.step * sizeof(float), std::size_t{1} << 31);
    EXPECT_TRUE(line.step > 0 || line.count == 1);
  }
}

}  // namespace
}  // namespace ucudnn
