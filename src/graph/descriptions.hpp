// The values that a client has set on its descriptors of cuDNN's graph API. cuDNN (9.19) returns
// neither a graph's operations nor a variant pack's pointers, so they are noted when they are set.
#pragma once

#include "kernels/backend.hpp"

#if UCUDNN_HAS_ENGINES

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/proposals.hpp"
#include "problem/problem.hpp"
#include "support/fork.hpp"

namespace ucudnn {

struct ClientGraph;
struct ClientConvolution;

/// The arguments of one call of cudnnBackendSetAttribute.
struct AttributeValue {
  cudnnBackendAttributeType_t type;
  std::int64_t count;
  const void* elements;

  /// Empty if the value has another type, or isn't exactly one.
  template <typename Value>
  std::optional<Value> one(cudnnBackendAttributeType_t wanted) const noexcept {
    if (type != wanted || count != 1) return std::nullopt;
    return *static_cast<const Value*>(elements);
  }
  template <typename Value>
  std::vector<Value> all(cudnnBackendAttributeType_t wanted) const {
    if (type != wanted || count < 0) return {};
    const auto* const values = static_cast<const Value*>(elements);
    return {values, values + count};
  }
};

class Description;

/// Finds the description of a descriptor; null: there is none. It exists until the descriptor is
/// destroyed, which cuDNN forbids while a call uses it.
class Descriptions {
 public:
  virtual Description* find(cudnnBackendDescriptor_t descriptor) const = 0;

 protected:
  ~Descriptions() = default;
};

/// Describes one descriptor. For one thread at a time until it is finalized, as with cuDNN.
class Description {
 public:
  virtual ~Description() = default;

  /// Whether it is of this class itself, not of one that derives from it. Executions ask this, so
  /// it doesn't use typeid, which lies in two more cache lines.
  template <typename Kind>
  bool is() const noexcept {
    return kind_ == &kMark<Kind>;
  }
  template <typename Kind, typename... Arguments>
  static std::unique_ptr<Description> make(Arguments... arguments) {
    std::unique_ptr<Description> made = std::make_unique<Kind>(arguments...);
    made->kind_ = &kMark<Kind>;
    return made;
  }

  /// Called after cuDNN has accepted the value. Throws std::bad_alloc.
  void set(cudnnBackendAttributeName_t name,
           const AttributeValue& value,
           const Descriptions& others) {
    const bool wasPlain = std::exchange(isPlain_, false);  // it is, if reading throws
    isPlain_ = read(name, value, others) && wasPlain;
  }
  /// False: something has been set that we don't understand.
  bool isPlain() const noexcept { return isPlain_; }
  /// Called after cuDNN has finalized the descriptor. Throws std::bad_alloc.
  virtual void finalized() {}

 protected:
  virtual bool read(cudnnBackendAttributeName_t name,
                    const AttributeValue& value,
                    const Descriptions& others) = 0;

 private:
  template <typename Kind>
  static constexpr char kMark = 0;

  const char* kind_ = nullptr;
  bool isPlain_ = true;
};

/// Null for a type that isn't described. Throws std::bad_alloc.
std::unique_ptr<Description> describe(cudnnBackendDescriptorType_t type);

/// Null if it is of another kind. A final class is found without a search.
template <typename Kind>
Kind* asKind(Description* description) noexcept {
  if constexpr (std::is_final_v<Kind>)
    return description != nullptr && description->is<Kind>() ? static_cast<Kind*>(description)
                                                             : nullptr;
  else
    return dynamic_cast<Kind*>(description);
}

// Values of descriptors. Setting a descriptor on another copies its value, as cuDNN does.

struct TensorValue {
  std::int32_t type = CUDNN_DATA_FLOAT;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t id = 0;
  std::int64_t alignment = 1;  ///< of what a pack points to, bytes
  bool isVirtual = false, isPlain = false;
};

struct ConvolutionValue {
  std::int32_t computeType = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
  std::vector<std::int64_t> dilations, strides, pads, endPads;
  bool isPlain = false;
};

struct OperationValue {
  Operation operation = Operation::kForward;
  ConvolutionValue convolution;
  TensorValue x, w, y;
  double alpha = 1, beta = 0;
  bool isPlain = false;
};

struct PointwiseValue {
  std::int32_t mode = CUDNN_POINTWISE_ADD;
  std::int32_t computeType = CUDNN_DATA_FLOAT;
  bool keepsNans = false;                                      ///< RELU's
  double upperClip = std::numeric_limits<double>::infinity();  ///< RELU's
  double slope = 0;                                            ///< RELU's, below 0
  double eluAlpha = 1;
  bool isPlain = false;
};

/// y = alpha1 x + alpha2 b, or the activation of x.
struct FollowerValue {
  PointwiseValue pointwise;
  TensorValue x, b, y;
  double alpha1 = 1, alpha2 = 1;
  bool isPlain = false;
};

/// The operations of a graph, before it is finalized.
struct GraphValue {
  std::vector<OperationValue> operations;  ///< the convolutions
  std::vector<FollowerValue> followers;
  cudnnHandle_t handle = nullptr;
  bool isPlain = true;  ///< there is nothing else in it
};

/// A descriptor that is copied into others.
template <typename Value>
class ValueDescription : public Description {
 public:
  Value value() const {
    Value value = value_;
    value.isPlain = isPlain();
    return value;
  }

 protected:
  Value value_;
};

class TensorDescription final : public ValueDescription<TensorValue> {
 private:
  bool read(cudnnBackendAttributeName_t name,
            const AttributeValue& value,
            const Descriptions& others) override;
};

class ConvolutionDescription final : public ValueDescription<ConvolutionValue> {
 private:
  bool read(cudnnBackendAttributeName_t name,
            const AttributeValue& value,
            const Descriptions& others) override;
};

class OperationDescription final : public ValueDescription<OperationValue> {
 public:
  explicit OperationDescription(Operation operation) { value_.operation = operation; }

 private:
  bool read(cudnnBackendAttributeName_t name,
            const AttributeValue& value,
            const Descriptions& others) override;
};

class PointwiseDescription final : public ValueDescription<PointwiseValue> {
 private:
  bool read(cudnnBackendAttributeName_t name,
            const AttributeValue& value,
            const Descriptions& others) override;
};

class FollowerDescription final : public ValueDescription<FollowerValue> {
 private:
  bool read(cudnnBackendAttributeName_t name,
            const AttributeValue& value,
            const Descriptions& others) override;
};

class GraphDescription final : public Description {
 public:
  /// Null: not finalized, or without a convolution.
  const std::shared_ptr<const ClientGraph>& graph() const noexcept { return graph_; }
  void finalized() override;

 private:
  bool read(cudnnBackendAttributeName_t name,
            const AttributeValue& value,
            const Descriptions& others) override;
  GraphValue value_;
  std::shared_ptr<const ClientGraph> graph_;
};

/// A descriptor that is made for a graph.
class GraphsDescription : public Description {
 public:
  /// Null: there is no convolution in it.
  const std::shared_ptr<const ClientGraph>& graph() const noexcept { return graph_; }
  /// Copies from a descriptor that is set on this one, or from which cuDNN has filled this one.
  void fill(const GraphsDescription& from) {
    graph_ = from.graph_;
    isFromPlain_ = from.isUnderstood();
    proposals_ = from.proposals_;
    place_ = from.place_;
  }
  /// It is one of the proposals of cuDNN's heuristics.
  void proposed(std::shared_ptr<Proposals> proposals, int place) noexcept {
    proposals_ = std::move(proposals);
    place_ = place;
  }
  /// The client has read this engine's notes.
  void show(Proposals::Notes notes) const noexcept {
    if (proposals_) proposals_->show(place_, notes);
  }
  /// The client makes a plan of it; `take`: it has made it.
  void tryOut() const noexcept {
    if (proposals_) proposals_->tryOut(place_);
  }
  void take() const noexcept {
    if (proposals_) proposals_->take(place_);
  }
  /// False: this descriptor, or one that it comes from, has something set that we don't understand.
  bool isUnderstood() const noexcept { return isFromPlain_ && isPlain(); }

 protected:
  std::shared_ptr<const ClientGraph> graph_;

 private:
  bool isFromPlain_ = true;
  std::shared_ptr<Proposals> proposals_;  ///< null: not proposed by heuristics
  int place_ = 0;
};

/// Heuristics, an engine or its configuration.
class ChoiceDescription final : public GraphsDescription {
 private:
  bool read(cudnnBackendAttributeName_t name,
            const AttributeValue& value,
            const Descriptions& others) override;
};

class PlanDescription final : public GraphsDescription {
 public:
  ~PlanDescription() override;
  cudnnHandle_t handle() const noexcept { return handle_; }

  /// How the plan is run, once the client has asked for its workspace; null: cuDNN runs it. Set at
  /// most once; from then on threads may run the plan.
  const ClientConvolution* convolution() const noexcept {
    return convolution_.load(std::memory_order_acquire);
  }
  /// The first answer stays, even if it is null or `make` throws: the client may have allocated the
  /// workspace that it was told of.
  template <typename Make>
  const ClientConvolution* answer(Make make) {
    const std::lock_guard lock(answering_);
    if (!std::exchange(isAnswered_, true))
      convolution_.store(make().release(), std::memory_order_release);
    return convolution();
  }

  /// Lets an execution of the plan find what the last one found. 0: nothing yet.
  std::atomic<std::uint64_t>& ticket() const noexcept { return ticket_; }

  /// The additions to GrantedWorkspaces that it was looked up among. 0: never.
  std::atomic<std::uint64_t>& lookedUpAmong() noexcept { return lookedUpAmong_; }

  /// Why cuDNN runs it (a string that lives for ever), and its workspace as far as it is known.
  const char* why() const noexcept { return why_.load(std::memory_order_relaxed); }
  std::size_t neededBytes() const noexcept { return neededBytes_.load(std::memory_order_relaxed); }
  void leave(const char* why, std::size_t neededBytes) noexcept {
    why_.store(why, std::memory_order_relaxed);
    neededBytes_.store(neededBytes, std::memory_order_relaxed);
  }

 private:
  bool read(cudnnBackendAttributeName_t name,
            const AttributeValue& value,
            const Descriptions& others) override;
  cudnnHandle_t handle_ = nullptr;
  // Together: each execution reads them.
  std::atomic<const ClientConvolution*> convolution_{nullptr};  ///< owned
  mutable std::atomic<std::uint64_t> ticket_{0};
  std::atomic<const char*> why_{nullptr};
  std::atomic<std::size_t> neededBytes_{0};
  std::atomic<std::uint64_t> lookedUpAmong_{0};
  LongForkMutex answering_;
  bool isAnswered_ = false;
};

class PackDescription final : public Description {
 public:
  /// Null: there is none, or we don't understand the pack.
  void* find(std::int64_t id) const noexcept;
  void* workspace() const noexcept { return workspace_; }

 private:
  bool read(cudnnBackendAttributeName_t name,
            const AttributeValue& value,
            const Descriptions& others) override;
  std::vector<std::int64_t> ids_;  ///< a client may bring more than its plan has
  std::vector<void*> data_;
  void* workspace_ = nullptr;
};

}  // namespace ucudnn

#endif
