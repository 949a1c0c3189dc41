// The plan of a call on host tensors: which parts are copied and computed, and where they lie.
#pragma once

#include <memory>

#include "cuda/owners.hpp"
#include "host/division.hpp"
#include "kernels/descriptors.hpp"
#include "support/bounded_map.hpp"

namespace ucudnn {

/// All that a call does, with offsets. Immutable once made; of one handle.
struct HostPlan {
  /// Tiles of one size.
  struct Shape {
    Problem problem;
    std::unique_ptr<ProblemDescriptors> descriptors;
    TensorDescriptor bias;  ///< of bias_activation_forward, if filters are cut; else null
  };
  struct Load {
    Tensor tensor;
    bool isZ;
    int slot;
    std::vector<Rows> rows;
    std::vector<Rows> halo = {};  ///< from the neighbour's slot, whose tile is computed before
  };
  struct Step {
    std::size_t shape = 0;
    bool adds = false;
    Visit visit;
    std::size_t biasOffset = 0;  ///< in elements
    std::vector<Load> loads;
    std::vector<Rows> zeros;  ///< in slots
    std::vector<Rows> store;
  };

  /// Throws Error.
  HostPlan(const Problem& problem, const HostOperands& operands, const Division& division);
  HostPlan(const HostPlan&) = delete;
  HostPlan& operator=(const HostPlan&) = delete;

  /// Bytes of a bias that is copied to the device, behind the workspace; 0: it is there.
  static std::size_t biasBytes(const Problem& problem, const HostOperands& operands) noexcept;
  std::size_t bytes() const noexcept { return division.bytes() + biasBytes(whole, operands); }

  Problem whole;
  HostOperands operands;
  Division division;
  Tiles tiles;
  SlotLayout slots;
  std::vector<Shape> shapes;
  std::vector<Step> steps;

  /// "32 tiles of 1 x 32 rows x 2040 x 2040 in 2+1+2 slots": along each axis, for x, w and y.
  std::string text() const;
};

/// Describes a packed bias for so many filters. Throws Error.
TensorDescriptor makeBiasDescriptor(const Problem& problem,
                                    std::int32_t filters,
                                    std::int32_t type);

/// Identifies one of a handle's plans for host tensors.
struct HostPlanKey {
  Problem problem;
  HostOperands operands;

  bool operator==(const HostPlanKey& other) const noexcept {
    return problem == other.problem && operands == other.operands;
  }
};
struct HostPlanKeyHash {
  std::size_t operator()(const HostPlanKey& key) const noexcept { return key.problem.hash(); }
};
/// A plan that a handle has made.
struct KnownHostPlan {
  std::shared_ptr<const HostPlan> plan;  ///< null: not made yet
  bool measured = false;                 ///< its kernels' time is no estimate
  std::uint32_t calls = 0;
};
using HostPlans = BoundedMap<HostPlanKey, KnownHostPlan, HostPlanKeyHash>;
/// Few, because a plan has the offsets of thousands of copies.
constexpr std::size_t kMostHostPlans = 256;

}  // namespace ucudnn
