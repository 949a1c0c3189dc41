// Descriptions are found by their descriptors' addresses, while threads make and destroy other
// descriptors.
#include "graph/tracked.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace ucudnn {
namespace {

cudnnBackendDescriptor_t at(std::uintptr_t address) {
  return reinterpret_cast<cudnnBackendDescriptor_t>(address);
}

/// Those of a test, which never end by themselves.
class Tracked {
 public:
  ~Tracked() {
    for (const auto descriptor : added_) all_.remove(descriptor);
  }
  void add(cudnnBackendDescriptor_t descriptor, cudnnBackendDescriptorType_t type) {
    added_.push_back(descriptor);
    all_.add(descriptor, type);
  }
  TrackedDescriptors* operator->() { return &all_; }

 private:
  TrackedDescriptors all_;
  std::vector<cudnnBackendDescriptor_t> added_;
};

TEST(TrackedDescriptors, AreFoundByTheirKind) {
  Tracked all;
  EXPECT_EQ(all->find(at(16)), nullptr);
  all.add(at(16), CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  all.add(at(32), CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_NE(all->findKind<TensorDescription>(at(16)), nullptr);
  EXPECT_EQ(all->findKind<PlanDescription>(at(16)), nullptr);
  EXPECT_NE(all->findKind<PlanDescription>(at(32)), nullptr);
  EXPECT_NE(all->findKind<GraphsDescription>(at(32)), nullptr);
  EXPECT_EQ(all->find(at(48)), nullptr);
}

TEST(TrackedDescriptors, AreGoneOnceRemoved) {
  Tracked all;
  all.add(at(16), CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  all->remove(at(16));
  EXPECT_EQ(all->find(at(16)), nullptr);
  all->remove(at(16));
  all->remove(at(32));
}

TEST(TrackedDescriptors, AnAddressMayComeAgain) {
  Tracked all;
  all.add(at(16), CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  all.add(at(16), CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_NE(all->findKind<PlanDescription>(at(16)), nullptr);
  all.add(at(16), CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);  // nothing is noted of such
  EXPECT_EQ(all->find(at(16)), nullptr);
}

// Tables grow, and close their gaps.
TEST(TrackedDescriptors, ManyAreKeptApart) {
  Tracked all;
  constexpr std::uintptr_t kMany = 20000;
  for (std::uintptr_t i = 1; i <= kMany; ++i)
    all.add(at(16 * i), CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  std::vector<const Description*> kept;
  for (std::uintptr_t i = 1; i <= kMany; ++i) kept.push_back(all->find(at(16 * i)));
  for (std::uintptr_t i = 1; i <= kMany; ++i)
    if (i % 3 != 0) all->remove(at(16 * i));
  for (std::uintptr_t i = 1; i <= kMany; ++i)
    ASSERT_EQ(all->find(at(16 * i)), i % 3 != 0 ? nullptr : kept[i - 1]) << i;
}

TEST(TrackedDescriptors, AreFoundWhileOthersComeAndGo) {
  Tracked all;
  constexpr std::uintptr_t kKept = 64;
  for (std::uintptr_t i = 1; i <= kKept; ++i)
    all.add(at(16 * i), CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  std::atomic<bool> isOver{false};
  std::vector<std::thread> others;
  for (std::uintptr_t other = 1; other <= 2; ++other)
    others.emplace_back([&, other] {
      for (int round = 0; round < 30; ++round) {
        for (std::uintptr_t i = 1; i <= 500; ++i)
          all->add(at((other << 32) + 16 * i), CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
        for (std::uintptr_t i = 1; i <= 500; ++i) all->remove(at((other << 32) + 16 * i));
      }
      isOver = true;
    });
  int lost = 0;
  while (!isOver)
    for (std::uintptr_t i = 1; i <= kKept; ++i)
      if (all->findKind<PlanDescription>(at(16 * i)) == nullptr) ++lost;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace ucudnn
