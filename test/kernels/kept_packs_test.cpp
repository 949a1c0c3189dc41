// Which variant packs an engine's plans are executed with. Nothing runs: the table has a
// cudnnBackendExecute that notes what it is given.
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "engines_fixture.hpp"
#include "kernels/built_engine.hpp"
#include "kernels/factor.hpp"

namespace ucudnn {
namespace {

using namespace test;

using Pointers = std::vector<const void*>;

struct Execution {
  cudnnHandle_t handle;
  cudnnBackendDescriptor_t plan, pack;
  Pointers data;  ///< x, w, y and the workspace
};

/// The calls of cuDNN, perhaps by several threads.
struct Asked {
  std::map<cudnnBackendDescriptor_t, Pointers> packs;  ///< that there are
  int made = 0;
  std::vector<Execution> executions;
  cudnnStatus_t answer = CUDNN_STATUS_SUCCESS;
  std::function<void()> meanwhile;  ///< is done once, in the midst of an execution
  std::set<cudnnBackendDescriptor_t> inUse;
  bool isShared = false;  ///< a call has used or ended another's pack
};
Asked asked;
std::mutex askedMutex;
const Cudnn real = cudnn();

cudnnStatus_t create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  const cudnnStatus_t status = real.backendCreateDescriptor(type, descriptor);
  const std::lock_guard lock(askedMutex);
  if (status == CUDNN_STATUS_SUCCESS && type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
    ++asked.made;
    asked.packs[*descriptor] = {};
  }
  return status;
}

cudnnStatus_t destroy(cudnnBackendDescriptor_t descriptor) {
  const std::lock_guard lock(askedMutex);
  asked.packs.erase(descriptor);
  asked.isShared = asked.inUse.count(descriptor) > 0 || asked.isShared;
  return real.backendDestroyDescriptor(descriptor);
}

cudnnStatus_t set(cudnnBackendDescriptor_t descriptor,
                  cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type,
                  std::int64_t count,
                  const void* values) {
  const std::lock_guard lock(askedMutex);
  if (type == CUDNN_TYPE_VOID_PTR)
    for (std::int64_t i = 0; i < count; ++i)
      asked.packs.at(descriptor).push_back(static_cast<const void* const*>(values)[i]);
  return real.backendSetAttribute(descriptor, name, type, count, values);
}

cudnnStatus_t execute(cudnnHandle_t handle,
                      cudnnBackendDescriptor_t plan,
                      cudnnBackendDescriptor_t pack) {
  std::unique_lock lock(askedMutex);
  asked.executions.push_back({handle, plan, pack, asked.packs.at(pack)});
  asked.isShared = !asked.inUse.insert(pack).second || asked.isShared;
  const auto meanwhile = std::exchange(asked.meanwhile, nullptr);
  const cudnnStatus_t answer = asked.answer;
  lock.unlock();
  if (meanwhile) meanwhile();
  std::this_thread::yield();
  lock.lock();
  asked.inUse.erase(pack);
  return answer;
}

class KeptPacksTest : public EnginesTest {
 protected:
  void SetUp() override {
    EnginesTest::SetUp();
    if (IsSkipped()) return;
    asked = {};
    const auto found = offers(problem_);
    ASSERT_FALSE(found.empty());
    const EngineConfiguration value = engineConfigurationOf(found.front().kernel.id);
    std::vector<OperationGraph> graphs;
    for (const double beta : {0, 1}) graphs.emplace_back(device_, problem_, beta, kEngineAlignment);
    ConfiguredEngine engine(device_, graphs, value);
    kernel_ = buildEngine(EnginePart(problem_, value), engine);
    Cudnn table = real;
    table.backendCreateDescriptor = create;
    table.backendDestroyDescriptor = destroy;
    table.backendSetAttribute = set;
    table.backendExecute = execute;
    setCudnn(table);
  }
  void TearDown() override {
    kernel_.reset();
    setCudnn(real);
    EXPECT_TRUE(asked.packs.empty());
  }

  static cudnnHandle_t handle(int i) { return reinterpret_cast<cudnnHandle_t>(&handles_[i]); }
  static const void* memory(int i) { return &memory_[i]; }

  /// By x, w, y and the workspace.
  cudnnStatus_t enqueue(cudnnHandle_t handle, const Pointers& data, bool adds = false) {
    const Factor& beta = adds ? Factor::one(problem_) : Factor::zero(problem_);
    return kernel_->enqueue(handle,
                            {Factor::one(problem_).get(),
                             beta.get(),
                             data[0],
                             data[1],
                             data[2],
                             const_cast<void*>(data[3]),
                             sizeof memory_[0]},
                            nullptr);
  }
  void run(cudnnHandle_t handle, const Pointers& data, bool adds = false) {
    const std::size_t before = asked.executions.size();
    EXPECT_EQ(enqueue(handle, data, adds), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(asked.executions.size(), before + 1);
    EXPECT_EQ(asked.executions.back().handle, handle);
    EXPECT_EQ(asked.executions.back().data, data);
  }

  static constexpr int kLines = 64;
  const Problem problem_ = convolution(Operation::kForward, 4, 8, 8, 14, 3);
  const Pointers data_ = {memory(0), memory(1), memory(2), memory(3)};
  std::shared_ptr<const BuiltKernel> kernel_;

 private:
  struct alignas(256) Line {
    char bytes[256];
  };
  inline static Line memory_[kLines];
  inline static char handles_[4];
};

TEST_F(KeptPacksTest, ACallThatRepeatsHasItsPack) {
  for (int i = 0; i < 3; ++i) run(handle(0), data_);
  EXPECT_EQ(asked.made, 1);
}

// Among many that differ in one pointer, some meet in one place.
TEST_F(KeptPacksTest, EachPointerIsTheCalls) {
  for (std::size_t changed = 0; changed < data_.size(); ++changed)
    for (int turn = 0; turn < 2; ++turn)
      for (int i = 4; i < kLines; ++i) {
        Pointers other = data_;
        other[changed] = memory(i);
        run(handle(0), other);
      }
  EXPECT_LE(asked.packs.size(), std::size_t{16});
  run(handle(0), {data_[2], data_[1], data_[0], data_[3]});
  run(handle(0), {data_[0], data_[1], data_[2], nullptr});
}

TEST_F(KeptPacksTest, EachHandleAndEachPlanHasItsOwn) {
  run(handle(0), data_);
  const Execution first = asked.executions.back();
  run(handle(1), data_);
  EXPECT_EQ(asked.made, 2);
  run(handle(1), data_, true);
  EXPECT_EQ(asked.made, 3);
  EXPECT_NE(asked.executions.back().plan, first.plan);
}

// As another thread's call with the same memory does.
TEST_F(KeptPacksTest, OneThatIsInUseIsNotUsedTwice) {
  run(handle(0), data_);
  asked.meanwhile = [&] { EXPECT_EQ(enqueue(handle(0), data_), CUDNN_STATUS_SUCCESS); };
  EXPECT_EQ(enqueue(handle(0), data_), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(asked.executions.size(), std::size_t{3});
  EXPECT_EQ(asked.executions[1].pack, asked.executions[0].pack);
  EXPECT_NE(asked.executions[2].pack, asked.executions[1].pack);
  EXPECT_EQ(asked.executions[2].data, data_);
  run(handle(0), data_);
  EXPECT_EQ(asked.executions[3].pack, asked.executions[0].pack);
}

TEST_F(KeptPacksTest, ThreadsShareNone) {
  constexpr int kThreads = 4, kCalls = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < kCalls; ++i) EXPECT_EQ(enqueue(handle(t), data_), CUDNN_STATUS_SUCCESS);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(asked.isShared);
  std::map<cudnnHandle_t, int> calls;
  for (const Execution& each : asked.executions) {
    ++calls[each.handle];
    EXPECT_EQ(each.data, data_);
  }
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(calls[handle(t)], kCalls);
}

TEST_F(KeptPacksTest, OneThatFailedIsNotUsedAgain) {
  asked.answer = CUDNN_STATUS_EXECUTION_FAILED;
  EXPECT_EQ(enqueue(handle(0), data_), CUDNN_STATUS_EXECUTION_FAILED);
  EXPECT_TRUE(asked.packs.empty());
  asked.answer = CUDNN_STATUS_SUCCESS;
  run(handle(0), data_);
  EXPECT_EQ(asked.made, 2);
}

}  // namespace
}  // namespace ucudnn
