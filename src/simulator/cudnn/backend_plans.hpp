// Descriptors of the backend API that say how a graph is computed: heuristics, engines, plans.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "simulator/cudnn/backend_descriptor.hpp"
#include "simulator/cudnn/engines.hpp"

namespace ucudnn::simulator {

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
  Cost cost() const;

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  cudnnHandle_t handle_ = nullptr;
  std::shared_ptr<const OperationGraph> graph_;
  EngineChoice choice_;
  Cost cost_;
  std::uint64_t timesVersion_ = 0;  ///< of cost_
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
