// A pass: operations that are computed together on one part of their tensors after the other, so
// that each tensor crosses the link once.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cuda/owners.hpp"
#include "host/division.hpp"
#include "support/bounded_map.hpp"

namespace ucudnn {

/// A tensor of a pass.
struct PassTensor {
  Layout layout;
  std::int32_t type = 0;                              ///< cudnnDataType_t
  std::array<bool, Problem::kMaxDimensions> isCut{};  ///< along which dimensions parts differ
  std::optional<Place> place;  ///< empty: it is of the pass alone, and on the device
  bool isRead = false, isWritten = false;
  bool isFilter = false;  ///< never cut; has a descriptor of another kind
  bool isMoved = false;   ///< on the device, but kernels can't run on its parts where they are

  bool isCopied() const noexcept { return place && (*place != Place::kDevice || isMoved); }
  /// Whether its parts have slots; else it is used where it is.
  bool isStaged() const noexcept { return !place || isCopied(); }
  bool operator==(const PassTensor& other) const noexcept;
};

/// A convolution of a pass, and which tensors are its x and y.
struct PassConvolution {
  Problem problem;
  std::size_t x = 0, y = 0;

  bool operator==(const PassConvolution& other) const noexcept {
    return problem == other.problem && x == other.x && y == other.y;
  }
};

/// What a pass does, in numbers. REQUIRES: no tensor's elements overlap; along an axis either all
/// tensors are cut, or each that is not is also not cut along any other such axis.
struct Pass {
  std::vector<PassTensor> tensors;
  Problem::Sizes sizes{};         ///< along the axes
  std::vector<std::size_t> axes;  ///< dimensions that may be cut; the first is cut first
  std::vector<PassConvolution> convolutions;

  bool isOnHost() const noexcept;
  /// Whether a call waits until it is done.
  bool isPageable() const noexcept;
  std::size_t hash() const noexcept;
  bool operator==(const Pass& other) const noexcept {
    return tensors == other.tensors && sizes == other.sizes && axes == other.axes &&
           convolutions == other.convolutions;
  }
};
struct PassHash {
  std::size_t operator()(const Pass& pass) const noexcept { return pass.hash(); }
};

/// Sizes of parts along the axes; the last ones may be smaller.
struct PassTiling {
  Problem::Sizes size{};
  int slots = 1;  ///< for the parts of each tensor
};

/// A pass with all parts and their slots. Immutable once made; of one handle.
class PassPlan {
 public:
  /// A tensor in a step.
  struct Use {
    std::size_t offset = 0;      ///< of the part in the whole tensor, in bytes
    std::size_t slotOffset = 0;  ///< in the device memory
    std::size_t slot = 0;        ///< a number that no other tensor's slots have
    bool isNew = false;          ///< no earlier step has used the part
    bool isLast = false;         ///< nor will a later one
  };
  struct Step {
    std::size_t shape = 0;
    bool adds = false;  ///< to what earlier steps have written
    std::vector<Use> uses;
  };
  /// Parts of one size.
  struct Shape {
    Problem::Sizes box{};
    std::vector<Layout> parts;  ///< with the strides that kernels see
    std::vector<TensorDescriptor> descriptors;
  };

  /// Throws Error.
  PassPlan(Pass pass, const PassTiling& tiling, std::size_t workspaceBytes, double ms);
  PassPlan(const PassPlan&) = delete;
  PassPlan& operator=(const PassPlan&) = delete;

  const Pass& pass() const noexcept { return pass_; }
  const std::vector<Step>& steps() const noexcept { return steps_; }
  const Shape& shapeOf(const Step& step) const noexcept { return shapes_[step.shape]; }
  std::size_t slotCount() const noexcept { return slotCount_; }
  std::size_t slotBytes() const noexcept { return slotBytes_; }
  std::size_t workspaceBytes() const noexcept { return workspaceBytes_; }
  std::size_t bytes() const noexcept { return slotBytes_ + workspaceBytes_; }
  double predictedMs() const noexcept { return predictedMs_; }

 private:
  std::size_t findShape(const Problem::Sizes& box);

  const Pass pass_;
  std::vector<Shape> shapes_;
  std::vector<Step> steps_;
  std::size_t slotCount_ = 0, slotBytes_ = 0;
  const std::size_t workspaceBytes_;
  const double predictedMs_;
};
using PassPlans = BoundedMap<Pass, std::shared_ptr<const PassPlan>, PassHash>;

/// The plan whose pipeline is predicted to end first within the budget. Throws Error if no parts
/// fit; the message, about `name`, has the bytes that are needed.
std::shared_ptr<const PassPlan> planPass(const char* name,
                                         const Pass& pass,
                                         const Link& link,
                                         const DeviceBudget& budget,
                                         const TileKernels& kernels);

}  // namespace ucudnn
