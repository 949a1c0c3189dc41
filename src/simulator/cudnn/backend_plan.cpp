// Execution plans and variant packs of the backend API.
#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "simulator/cudnn/backend_plans.hpp"
#include "simulator/cudnn/random_times.hpp"

namespace ucudnn::simulator {

namespace {

// Never torn down: a thread may be held when the process ends.
struct Compilations {
  static Compilations& instance() {
    static Compilations* const all = new Compilations;
    return *all;
  }

  std::mutex mutex;
  std::condition_variable changed;
  Compiling compiling = Compiling::kWorks;
  int held = 0;
};

void compile() {
  Compilations& all = Compilations::instance();
  std::unique_lock<std::mutex> lock(all.mutex);
  ++all.held;
  all.changed.wait(lock, [&] { return all.compiling != Compiling::kHeld; });
  --all.held;
  if (all.compiling == Compiling::kFails) {
    refuse(CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, "a test lets compiling fail");
  }
}

}  // namespace

extern "C" void ucudnnSimulatorSetCompiling(int compiling) {
  Compilations& all = Compilations::instance();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.compiling = static_cast<Compiling>(compiling);
  all.changed.notify_all();
}

extern "C" int ucudnnSimulatorHeldCompilations() {
  Compilations& all = Compilations::instance();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.held;
}

void BackendPlan::setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_EXECUTION_PLAN_HANDLE:
      handle_ = input.scalar<cudnnHandle_t>(CUDNN_TYPE_HANDLE);
      return;
    case CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP:  // the configuration's device counts
      backendReference<BackendDeviceProperties>(input);
      return;
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG: {
      const auto& config = backendReference<BackendEngineConfig>(input);
      graph_ = config.finalized() ? config.graph() : nullptr;
      choice_ = config.choice();
      return;
    }
    default:
      refuseAttribute();
  }
}

void BackendPlan::getAttribute(cudnnBackendAttributeName_t name,
                               const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_EXECUTION_PLAN_HANDLE:
      return output.scalar(CUDNN_TYPE_HANDLE, handle_);
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG:
      return output.descriptor([&](cudnnBackendDescriptor_t handle) {
        auto* const config = backendCast<BackendEngineConfig>(handle);
        return config != nullptr && config->fill(graph_, choice_);
      });
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return output.scalar(CUDNN_TYPE_INT64, static_cast<std::int64_t>(cost_.workspaceBytes));
    default:
      requireSupported(false, "the simulator does not know this of a plan");
  }
}

void BackendPlan::complete() {
  if (graph_ == nullptr) {
    refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a plan without a finalized configuration");
  }
  require(handle_ == nullptr || handle_->device == graph_->device,
          "the handle is of another device than the graph");
  if (isCompiled(*graph_, choice_.engine)) compile();
  hostSpends(buildMicroseconds(*graph_, choice_.engine));
  timesVersion_ = timesVersion();
  const cudnnStatus_t status = configure(*graph_, choice_, &cost_);
  if (status != CUDNN_STATUS_SUCCESS) refuse(status, "the engine refuses the configuration");
}

Cost BackendPlan::cost() const {
  if (timesVersion() == timesVersion_) return cost_;
  Cost cost;
  const cudnnStatus_t status = configure(*graph_, choice_, &cost);
  if (status != CUDNN_STATUS_SUCCESS) refuse(status, "the engine refuses the configuration");
  return cost;
}

void BackendVariantPack::setAttribute(cudnnBackendAttributeName_t name,
                                      const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
      uids_ = input.array<std::int64_t>(CUDNN_TYPE_INT64);
      return;
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
      pointers_ = input.array<void*>(CUDNN_TYPE_VOID_PTR);
      return;
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
      workspace_ = input.scalar<void*>(CUDNN_TYPE_VOID_PTR);
      return;
    default:
      refuseAttribute();
  }
}

void BackendVariantPack::getAttribute(cudnnBackendAttributeName_t name,
                                      const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
      return output.scalar(CUDNN_TYPE_VOID_PTR, workspace_);
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:  // as cuDNN 9.19
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "ids and pointers can't be read");
    default:
      refuseAttribute();
  }
}

void BackendVariantPack::complete() {
  require(uids_.size() == pointers_.size(), "as many data pointers as unique ids are needed");
}

void* const* BackendVariantPack::find(std::int64_t uid) const {
  const auto place = std::find(uids_.begin(), uids_.end(), uid);
  if (place == uids_.end()) return nullptr;
  return &pointers_[static_cast<std::size_t>(place - uids_.begin())];
}

}  // namespace ucudnn::simulator
