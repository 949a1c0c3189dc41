// Every call of cuDNN goes through the table: the library built into this program, with wrappers
// that count in the table, against the simulator's own count of what has reached it.
#include <dlfcn.h>

#include <optional>
#include <thread>

#include "../support/simulator.hpp"
#include "cuda/cudnn.hpp"
#include "fixture.hpp"
#include "fused.hpp"
#include "small_tensors.hpp"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn::test {
namespace {

const Cudnn real = cudnn();

template <auto member, typename Function>
struct Counting;
template <auto member, typename Result, typename... Arguments>
struct Counting<member, Result (*)(Arguments...)> {
  inline static std::int64_t calls = 0;
  static Result call(Arguments... arguments) {
    ++calls;
    return (real.*member)(arguments...);
  }
};

struct Counted {
  const char* name;
  const std::int64_t* calls;
};

/// The table of wrappers, with a name and a counter for each.
Cudnn countingTable(std::vector<Counted>* counted) {
  Cudnn table = real;
#define UCUDNN_COUNT(NAME, FUNCTION)                               \
  {                                                                \
    using Wrapper = Counting<&Cudnn::NAME, decltype(Cudnn::NAME)>; \
    table.NAME = Wrapper::call;                                    \
    counted->push_back({#FUNCTION, &Wrapper::calls});              \
  }
  UCUDNN_FOR_EACH_CUDNN_FUNCTION(UCUDNN_COUNT)
#undef UCUDNN_COUNT
  return table;
}

class FunctionTableTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    if (!onSimulator()) GTEST_SKIP() << "the simulator counts what reaches it";
    setArithmetic(Arithmetic::kOff);
    setCudnn(countingTable(&counted_));
  }
  void TearDown() override {
    setCudnn(real);
    LibraryTest::TearDown();
  }

  std::vector<Counted> counted_;
};

struct BiasGradient {
  cudnnStatus_t run(UcudnnHandle_t handle) const {
    return cudnnConvolutionBackwardBias(handle,
                                        factors.alpha(),
                                        dy.desc(),
                                        memory.get(),
                                        factors.beta(),
                                        db.desc(),
                                        memory.get() + 512);
  }

  const Factors factors{CUDNN_DATA_FLOAT, 1, 0};
  const SmallTensor dy{CUDNN_DATA_FLOAT, {2, 3, 4, 5}, false, 0, 1};
  const SmallTensor db{CUDNN_DATA_FLOAT, {1, 3, 1, 1}, false, 0, 1};
  const DeviceBuffer memory{1024};
};

/// All of the library's functions, as a client would call them.
void train(Convolution& convolution,
           Fused& fused,
           const BiasGradient& bias,
           std::size_t totalBytes) {
  UcudnnHandle_t handle;
  ASSERT_CUDNN(cudnnCreate(&handle));
  ASSERT_CUDNN(handle.setTotalWorkspaceSize(totalBytes));
  const DeviceBuffer workspace(std::size_t{1} << 20);
  for (const ucudnnOperation_t operation : kOperations) {
    std::vector<Performance> results;
    for (const Query how : kQueries)
      ASSERT_CUDNN(convolution.query(
          handle, operation, how, 4, &results, {workspace.get(), workspace.bytes()}));
    int algorithm = 0;
    ASSERT_CUDNN(convolution.queryPreferred(
        handle, operation, CUDNN_CONVOLUTION_FWD_PREFER_FASTEST, 0, &algorithm));
    std::size_t bytes = 0;
    ASSERT_CUDNN(convolution.workspaceSize(handle, operation, algorithm, &bytes));
    ASSERT_CUDNN(
        convolution.run(handle, operation, algorithm, {workspace.get(), workspace.bytes()}));
  }
  const int algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  ASSERT_CUDNN(fused.run(handle, algorithm, {workspace.get(), workspace.bytes()}, 1, 0.5, false));
  ASSERT_CUDNN(bias.run(handle));
  ASSERT_CUDNN(cudnnDestroy(handle));
}

TEST_F(FunctionTableTest, NoCallEscapesIt) {
  const BiasGradient bias;
  // Where no kernel is known to be as exact, what a query gets is cuDNN's own answer.
  for (const bool isExact : {false, true}) {
    std::optional<EnvironmentGuard> setting;
    if (isExact) setting.emplace("UCUDNN_MAX_ERROR", "1e-30");
    Convolution convolution(fftCase(isExact ? 44 : 43));
    Fused fused(convolution, CUDNN_ACTIVATION_RELU);
    for (const std::size_t totalBytes : {std::size_t{0}, std::size_t{1} << 20}) {
      std::vector<std::int64_t> before;
      for (const Counted& row : counted_) before.push_back(callCount(row.name) - *row.calls);
      train(convolution, fused, bias, totalBytes);
      for (std::size_t i = 0; i < counted_.size(); ++i) {
        const std::string name = counted_[i].name;
        if (name == "cudnnGetVersion" || name == "cudnnGetErrorString") continue;  // not counted
        EXPECT_EQ(before[i], callCount(name.c_str()) - *counted_[i].calls) << name;
      }
    }
  }
  // The rest belongs to tests of equivalence and to helper devices.
  for (const Counted& row : counted_) {
    if (std::string(row.name).find("Convolution") == std::string::npos) continue;
    EXPECT_LT(0, *row.calls) << row.name;
  }
}

// For ThreadSanitizer: threads of a program look it up side by side, with their first calls.
TEST(LookUpTest, TableIsWholeForAllWhoLookItUp) {
  setCudnn({});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      EXPECT_TRUE(lookUpCudnn([](const char* name) { return ::dlsym(RTLD_DEFAULT, name); }));
      EXPECT_NE(nullptr, cudnn().create);
      EXPECT_NE(nullptr, cudnn().setTensorNdDescriptor);
    });
  for (std::thread& thread : threads) thread.join();
  setCudnn(real);
}

}  // namespace
}  // namespace ucudnn::test
