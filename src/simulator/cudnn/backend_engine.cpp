// Heuristics, engines, knobs and engine configurations of the backend API.
#include <algorithm>

#include "simulator/cudnn/backend_operations.hpp"
#include "simulator/cudnn/backend_plans.hpp"

namespace ucudnn::simulator {
namespace {

// The host's time for calls: the least of five, of the real library without a GPU, for the forward
// pass of AlexNet's second layer.
constexpr double kHeuristicsMicroseconds = 40;
constexpr double kHeuristicsBMicroseconds = 6300;
constexpr double kFallbackMicroseconds = 10000;
constexpr double kResultMicroseconds = 35;
constexpr double kEngineMicroseconds = 20;
constexpr double kConfigMicroseconds = 30;

void requireSuccess(cudnnStatus_t status, const char* message) {
  if (status != CUDNN_STATUS_SUCCESS) refuse(status, message);
}

void requireFinalized(bool finalized) {
  if (!finalized) refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a descriptor is not finalized");
}

}  // namespace

void BackendHeuristics::setAttribute(cudnnBackendAttributeName_t name,
                                     const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH:
      graph_ = backendReference<BackendGraph>(input).graph();
      graphSet_ = true;
      return;
    case CUDNN_ATTR_ENGINEHEUR_MODE:
      mode_ = input.scalar<cudnnBackendHeurMode_t>(CUDNN_TYPE_HEUR_MODE);
      return;
    case CUDNN_ATTR_ENGINEHEUR_DEVICEPROP:
      device_ = backendReference<BackendDeviceProperties>(input).device();
      return;
    case CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET:
      requireSupported(input.scalar<std::int32_t>(CUDNN_TYPE_INT32) == 0,
                       "the simulator knows no part of a device");
      return;
    default:
      refuseAttribute();
  }
}

void BackendHeuristics::getAttribute(cudnnBackendAttributeName_t name,
                                     const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_MODE:
      return output.scalar(CUDNN_TYPE_HEUR_MODE, mode_);
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      // Without descriptors, the count is that of the proposals. With descriptors it may be less,
      // because proposals that can't be configured are left out.
      return output.descriptors(results_.size(),
                                [&](std::size_t i, cudnnBackendDescriptor_t handle) {
                                  auto* const config = backendCast<BackendEngineConfig>(handle);
                                  if (config == nullptr || config->finalized()) return false;
                                  hostSpends(kResultMicroseconds);
                                  return config->fill(graph_, results_[i]);
                                });
    default:
      refuseAttribute();
  }
}

// Types are checked here and not by the operation, whose descriptor cuDNN finalizes all the same.
void BackendHeuristics::complete() {
  require(graphSet_, "heuristics without a graph");
  requireFinalized(graph_ != nullptr);
  graph_ = onDevice(graph_, device_);
  checkTypes(graph_->problem);
  require(mode_ >= CUDNN_HEUR_MODE_INSTANT && mode_ < CUDNN_HEUR_MODES_COUNT, "unknown mode");
  hostSpends(mode_ == CUDNN_HEUR_MODE_B          ? kHeuristicsBMicroseconds
             : mode_ == CUDNN_HEUR_MODE_FALLBACK ? kFallbackMicroseconds
                                                 : kHeuristicsMicroseconds);
  results_ = proposals(*graph_, mode_);
}

void BackendEngine::setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_ENGINE_OPERATION_GRAPH:
      graph_ = backendReference<BackendGraph>(input).graph();
      graphSet_ = true;
      return;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      index_ = input.scalar<std::int64_t>(CUDNN_TYPE_INT64);
      return;
    case CUDNN_ATTR_ENGINE_DEVICEPROP:
      device_ = backendReference<BackendDeviceProperties>(input).device();
      return;
    case CUDNN_ATTR_ENGINE_SM_COUNT_TARGET:
      requireSupported(input.scalar<std::int32_t>(CUDNN_TYPE_INT32) == 0,
                       "the simulator knows no part of a device");
      return;
    default:
      refuseAttribute();
  }
}

void BackendEngine::getAttribute(cudnnBackendAttributeName_t name,
                                 const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_ENGINE_OPERATION_GRAPH:
      return output.descriptor([&](cudnnBackendDescriptor_t handle) {
        auto* const graph = backendCast<BackendGraph>(handle);
        if (graph != nullptr) graph->fill(graph_);
        return graph != nullptr;
      });
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return output.scalar(CUDNN_TYPE_INT64, index_);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return output.array(CUDNN_TYPE_NUMERICAL_NOTE, numericalNotes(*graph_, index_));
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return output.array(CUDNN_TYPE_BEHAVIOR_NOTE, behaviorNotes(*graph_, index_));
    case CUDNN_ATTR_ENGINE_KNOB_INFO: {
      const std::vector<KnobRange> ranges = knobRanges(*graph_, index_);
      return output.descriptors(ranges.size(), [&](std::size_t i, cudnnBackendDescriptor_t handle) {
        auto* const info = backendCast<BackendKnobInfo>(handle);
        if (info != nullptr) info->fill(ranges[i]);
        return info != nullptr;
      });
    }
    case CUDNN_ATTR_ENGINE_LAYOUT_INFO:
      return output.descriptors(0, [](std::size_t, cudnnBackendDescriptor_t) { return false; });
    default:
      refuseAttribute();
  }
}

void BackendEngine::complete() {
  if (!graphSet_) refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "an engine without a graph");
  requireFinalized(graph_ != nullptr);
  graph_ = onDevice(graph_, device_);
  checkTypes(graph_->problem);
  hostSpends(kEngineMicroseconds);
  requireSuccess(engineStatus(*graph_, index_), "the engine does not compute this graph");
}

void BackendEngine::fill(std::shared_ptr<const OperationGraph> graph, std::int64_t index) {
  graph_ = std::move(graph);
  index_ = index;
  markFinalized();
}

void BackendKnobInfo::fill(const KnobRange& range) {
  range_ = range;
  markFinalized();
}

void BackendKnobInfo::setAttribute(cudnnBackendAttributeName_t, const AttributeInput&) {
  refuse(CUDNN_STATUS_NOT_SUPPORTED, "a knob's range can't be set");
}

void BackendKnobInfo::getAttribute(cudnnBackendAttributeName_t name,
                                   const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_KNOB_INFO_TYPE:
      return output.scalar(CUDNN_TYPE_KNOB_TYPE, range_.type);
    case CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE:
      return output.scalar(CUDNN_TYPE_INT64, range_.low);
    case CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE:
      return output.scalar(CUDNN_TYPE_INT64, range_.high);
    case CUDNN_ATTR_KNOB_INFO_STRIDE:
      return output.scalar(CUDNN_TYPE_INT64, std::int64_t{1});
    default:
      refuseAttribute();
  }
}

void BackendKnobInfo::complete() {
  require(false, "an engine gives a knob's range");
}

void BackendKnobChoice::fill(const KnobChoice& choice) {
  choice_ = choice;
  markFinalized();
}

void BackendKnobChoice::setAttribute(cudnnBackendAttributeName_t name,
                                     const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      choice_.type = input.scalar<int>(CUDNN_TYPE_KNOB_TYPE);
      return;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      choice_.value = input.scalar<std::int64_t>(CUDNN_TYPE_INT64);
      return;
    default:
      refuseAttribute();
  }
}

void BackendKnobChoice::getAttribute(cudnnBackendAttributeName_t name,
                                     const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return output.scalar(CUDNN_TYPE_KNOB_TYPE, choice_.type);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      return output.scalar(CUDNN_TYPE_INT64, choice_.value);
    default:
      refuseAttribute();
  }
}

void BackendEngineConfig::setAttribute(cudnnBackendAttributeName_t name,
                                       const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      const BackendEngine& engine = backendReference<BackendEngine>(input);
      requireFinalized(engine.finalized());
      graph_ = engine.graph();
      choice_.engine = engine.index();
      return;
    }
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES: {
      std::vector<KnobChoice> knobs;
      for (auto* const handle :
           input.array<cudnnBackendDescriptor_t>(CUDNN_TYPE_BACKEND_DESCRIPTOR)) {
        const auto* const knob = backendCast<BackendKnobChoice>(handle);
        require(knob != nullptr, "not a knob's choice");
        if (!knob->finalized()) {
          refuse(CUDNN_STATUS_NOT_INITIALIZED, "a knob's choice is not finalized");
        }
        const KnobChoice& choice = knob->choice();
        require(std::none_of(knobs.begin(),
                             knobs.end(),
                             [&](const KnobChoice& other) { return other.type == choice.type; }),
                "a knob is chosen twice");
        knobs.push_back(choice);
      }
      choice_.knobs = std::move(knobs);
      return;
    }
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "the engine decides that");
    default:
      refuseAttribute();
  }
}

void BackendEngineConfig::getAttribute(cudnnBackendAttributeName_t name,
                                       const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      return output.descriptor([&](cudnnBackendDescriptor_t handle) {
        auto* const engine = backendCast<BackendEngine>(handle);
        if (engine != nullptr) engine->fill(graph_, choice_.engine);
        return engine != nullptr;
      });
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES: {
      // As cuDNN 9.19, which doesn't count choices: the array has to be long enough for all.
      const std::size_t count = output.countOnly() ? 0 : choice_.knobs.size();
      return output.descriptors(count, [&](std::size_t i, cudnnBackendDescriptor_t handle) {
        auto* const knob = backendCast<BackendKnobChoice>(handle);
        if (knob != nullptr) knob->fill(choice_.knobs[i]);
        return knob != nullptr;
      });
    }
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
      return output.scalar(CUDNN_TYPE_INT64, static_cast<std::int64_t>(cost_.workspaceBytes));
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
      return output.scalar(CUDNN_TYPE_INT32, std::int32_t{0});
    default:
      refuseAttribute();
  }
}

void BackendEngineConfig::complete() {
  requireFinalized(graph_ != nullptr);
  hostSpends(kConfigMicroseconds);
  requireSuccess(configure(*graph_, choice_, &cost_), "the engine refuses these knobs");
}

bool BackendEngineConfig::fill(const std::shared_ptr<const OperationGraph>& graph,
                               const EngineChoice& choice) {
  Cost cost;
  if (configure(*graph, choice, &cost) != CUDNN_STATUS_SUCCESS) return false;
  graph_ = graph;
  choice_ = choice;
  cost_ = cost;
  markFinalized();
  return true;
}

}  // namespace ucudnn::simulator
