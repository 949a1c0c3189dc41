// The descriptors of cuDNN's backend (graph) API. A descriptor copies what it is given: descriptors
// that were set as its attributes may be destroyed at once, as with cuDNN 9.19.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "simulator/cudnn/backend_attributes.hpp"
#include "simulator/cudnn/engines.hpp"

namespace ucudnn::simulator {

/// What a cudnnBackendDescriptor_t points to. Set, then finalized, then read; not for two threads
/// at once.
class BackendDescriptor {
 public:
  explicit BackendDescriptor(cudnnBackendDescriptorType_t type) : type_(type) {}
  virtual ~BackendDescriptor() = default;
  BackendDescriptor(const BackendDescriptor&) = delete;
  BackendDescriptor& operator=(const BackendDescriptor&) = delete;

  cudnnBackendDescriptorType_t type() const { return type_; }
  bool finalized() const { return finalized_; }

  void set(cudnnBackendAttributeName_t name, const AttributeInput& input);
  void get(cudnnBackendAttributeName_t name, const AttributeOutput& output) const;
  void finalize();

 protected:
  virtual void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) = 0;
  virtual void getAttribute(cudnnBackendAttributeName_t name,
                            const AttributeOutput& output) const = 0;
  /// Throws Refusal where something is missing or does not fit.
  virtual void complete() {}
  /// For what cuDNN itself completes, in a Get.
  void markFinalized() { finalized_ = true; }

 private:
  cudnnBackendDescriptorType_t type_;
  bool finalized_ = false;
};

/// Null for a type that the simulator does not know.
std::unique_ptr<BackendDescriptor> makeBackendDescriptor(cudnnBackendDescriptorType_t type);

/// The descriptor behind a handle, null unless it is of this class.
template <typename Descriptor>
Descriptor* backendCast(cudnnBackendDescriptor_t handle) {
  return dynamic_cast<Descriptor*>(static_cast<BackendDescriptor*>(handle));
}

/// As backendCast, for attributes: throws what cuDNN answers where it is none.
template <typename Descriptor>
const Descriptor& backendReference(const AttributeInput& input) {
  auto* const handle = input.scalar<cudnnBackendDescriptor_t>(CUDNN_TYPE_BACKEND_DESCRIPTOR);
  if (handle == nullptr) refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null descriptor");
  const auto* const descriptor = backendCast<Descriptor>(handle);
  if (descriptor == nullptr) {
    refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "a descriptor of another type");
  }
  return *descriptor;
}

/// CUDNN_BACKEND_TENSOR_DESCRIPTOR.
class BackendTensor : public BackendDescriptor {
 public:
  struct Value {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    std::vector<std::int64_t> dims;
    std::vector<std::int64_t> strides;
    std::int64_t uid = 0;
    std::int64_t alignment = 0;
    bool isVirtual = false;
    bool byValue = false;
    bool finalized = false;
  };

  BackendTensor() : BackendDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR) {}
  Value value() const;

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  Value value_;
};

/// CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR.
class BackendConvolution : public BackendDescriptor {
 public:
  struct Value {
    cudnnDataType_t computeType = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CONVOLUTION;
    std::int64_t spatialRank = 0;
    std::vector<std::int64_t> dilations;
    std::vector<std::int64_t> strides;
    std::vector<std::int64_t> prePaddings;
    std::vector<std::int64_t> postPaddings;
    bool finalized = false;
  };

  BackendConvolution() : BackendDescriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) {}
  Value value() const;

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  Value value_;
};

/// alpha or beta: a float or a double, and read as what it was set.
struct BackendFactor {
  double value;
  cudnnBackendAttributeType_t type = CUDNN_TYPE_FLOAT;
};

/// CUDNN_BACKEND_OPERATION_CONVOLUTION_*_DESCRIPTOR.
class BackendOperation : public BackendDescriptor {
 public:
  explicit BackendOperation(Operation operation);
  /// The operation as a graph of one node. REQUIRES: finalized.
  const OperationGraph& graph() const { return graph_; }

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  Operation operation_;
  BackendTensor::Value x_;
  BackendTensor::Value w_;
  BackendTensor::Value y_;
  BackendConvolution::Value convolution_;
  BackendFactor alpha_{1};
  BackendFactor beta_{0};
  OperationGraph graph_;
};

/// CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, of one convolution.
class BackendGraph : public BackendDescriptor {
 public:
  BackendGraph() : BackendDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {}
  /// Null until finalized.
  const std::shared_ptr<const OperationGraph>& graph() const { return graph_; }
  void fill(std::shared_ptr<const OperationGraph> graph);

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  std::vector<OperationGraph> operations_;
  cudnnHandle_t handle_ = nullptr;
  std::shared_ptr<const OperationGraph> graph_;
};

/// CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR: a device by its number, or by a text that stands for the
/// current one.
class BackendDeviceProperties : public BackendDescriptor {
 public:
  BackendDeviceProperties() : BackendDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {}
  int device() const { return device_; }

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  int device_ = 0;
  std::vector<char> text_;
};

/// The graph on the device that an attribute names. Null stays null.
std::shared_ptr<const OperationGraph> onDevice(std::shared_ptr<const OperationGraph> graph,
                                               std::optional<int> device);

/// CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR.
class BackendHeuristics : public BackendDescriptor {
 public:
  BackendHeuristics() : BackendDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {}

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  std::shared_ptr<const OperationGraph> graph_;
  bool graphSet_ = false;
  std::optional<int> device_;
  cudnnBackendHeurMode_t mode_ = CUDNN_HEUR_MODE_INSTANT;
  std::vector<EngineChoice> results_;
};

/// CUDNN_BACKEND_ENGINE_DESCRIPTOR.
class BackendEngine : public BackendDescriptor {
 public:
  BackendEngine() : BackendDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR) {}
  const std::shared_ptr<const OperationGraph>& graph() const { return graph_; }
  std::int64_t index() const { return index_; }
  void fill(std::shared_ptr<const OperationGraph> graph, std::int64_t index);

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  std::shared_ptr<const OperationGraph> graph_;
  bool graphSet_ = false;
  std::optional<int> device_;
  std::int64_t index_ = -1;
};

/// CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR: only ever filled by a Get of an engine's.
class BackendKnobInfo : public BackendDescriptor {
 public:
  BackendKnobInfo() : BackendDescriptor(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR) {}
  void fill(const KnobRange& range);

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  KnobRange range_{};
};

/// CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR.
class BackendKnobChoice : public BackendDescriptor {
 public:
  BackendKnobChoice() : BackendDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR) {}
  const KnobChoice& choice() const { return choice_; }
  void fill(const KnobChoice& choice);

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;

  KnobChoice choice_{CUDNN_KNOB_TYPE_SWIZZLE, -1};
};

/// CUDNN_BACKEND_ENGINECFG_DESCRIPTOR.
class BackendEngineConfig : public BackendDescriptor {
 public:
  BackendEngineConfig() : BackendDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) {}
  const std::shared_ptr<const OperationGraph>& graph() const { return graph_; }
  const EngineChoice& choice() const { return choice_; }
  /// False, and nothing changed, where the engine refuses.
  bool fill(const std::shared_ptr<const OperationGraph>& graph, const EngineChoice& choice);

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  std::shared_ptr<const OperationGraph> graph_;
  EngineChoice choice_;
  Cost cost_;
};

/// CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR.
class BackendPlan : public BackendDescriptor {
 public:
  BackendPlan() : BackendDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {}
  const std::shared_ptr<const OperationGraph>& graph() const { return graph_; }
  const EngineChoice& choice() const { return choice_; }

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  cudnnHandle_t handle_ = nullptr;
  std::shared_ptr<const OperationGraph> graph_;
  EngineChoice choice_;
  std::size_t workspaceBytes_ = 0;
};

/// CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR.
class BackendVariantPack : public BackendDescriptor {
 public:
  BackendVariantPack() : BackendDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {}
  void* workspace() const { return workspace_; }
  /// Null when there is no such id.
  void* const* find(std::int64_t uid) const;

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  std::vector<std::int64_t> uids_;
  std::vector<void*> pointers_;
  void* workspace_ = nullptr;
};

}  // namespace ucudnn::simulator
