// cuDNN's graph API as unmodified programs call it. Every call goes to cuDNN and is noted. For a
// plan of one convolution we name the workspace, and run the plan from then on.
#include "api/backend.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "api/queries.hpp"
#include "context/plan_workspace.hpp"
#include "graph/client_graph.hpp"
#include "graph/granted_workspaces.hpp"
#include "graph/tracked.hpp"

using namespace ucudnn;

#if UCUDNN_HAS_ENGINES

namespace {

/// Notes what cuDNN has done. If there is no memory for the note, cuDNN runs the client's graph.
template <typename Note>
cudnnStatus_t noted(cudnnStatus_t status, Note note) noexcept {
  if (status != CUDNN_STATUS_SUCCESS) return status;
  try {
    note(trackedDescriptors());
  } catch (const std::exception& error) {
    logInfo("a graph is left to cuDNN: {}", error.what());
  }
  return status;
}

/// cuDNN has filled the client's descriptors from one of its own. Earlier notes of them are void.
void noteFilled(cudnnBackendDescriptor_t descriptor,
                cudnnBackendAttributeName_t name,
                std::int64_t count,
                const void* elements) {
  TrackedDescriptors& all = trackedDescriptors();
  const auto* const from = all.findKind<GraphsDescription>(descriptor);
  const auto proposals = name == CUDNN_ATTR_ENGINEHEUR_RESULTS ? std::make_shared<Proposals>()
                                                               : std::shared_ptr<Proposals>();
  const auto* const filled = static_cast<const cudnnBackendDescriptor_t*>(elements);
  for (std::int64_t i = 0; i < count; ++i) {
    auto* const to = all.findKind<ChoiceDescription>(filled[i]);
    if (to != nullptr && from != nullptr) {
      to->fill(*from);
      if (proposals) to->proposed(proposals, static_cast<int>(i));
    } else {
      all.remove(filled[i]);
    }
  }
}

/// The client has read an engine's notes.
void noteShown(cudnnBackendDescriptor_t engine,
               std::int64_t count,
               const cudnnBackendNumericalNote_t* notes) {
  const auto* const shown = trackedDescriptors().findKind<ChoiceDescription>(engine);
  if (shown == nullptr) return;
  Proposals::Notes all = 0;
  for (std::int64_t i = 0; i < count; ++i) all |= Proposals::bitOf(notes[i]);
  shown->show(all);
}

/// Whether the program takes only deterministic engines, as far as can be seen.
bool barsNondeterministic(const Settings& settings) noexcept {
  return settings.deterministic || clientSkipsNondeterministic();
}

cudnnHandle_t handleOf(const PlanDescription& plan) noexcept {
  return plan.handle() != nullptr ? plan.handle() : plan.graph()->handle;
}

/// How to run a plan of a convolution that by itself needs `needed` bytes; null: cuDNN runs it.
std::unique_ptr<const ClientConvolution> makeAnswer(cudnnBackendDescriptor_t descriptor,
                                                    PlanDescription& plan,
                                                    std::size_t needed) {
  const ClientGraph& graph = *plan.graph();
  plan.leave(graph.isUnderstood ? reason::kUnknownGraph : graph.why, needed);
  std::shared_ptr<Context> context = knownContextOf(handleOf(plan));
  if (context == nullptr || !plan.isUnderstood() || !graph.isUnderstood) return nullptr;
  plan.leave(reason::kFailed, needed);
  const PlanQuestion question(std::move(context));
  const Snapshot* const snapshot = question.snapshot();
  if (snapshot == nullptr || snapshot->settings.disabled) {
    plan.leave(reason::kUnknownGraph, needed);
    return nullptr;
  }
  const DeviceScope scope(snapshot->device);
  auto made =
      std::make_unique<ClientConvolution>(graph, numericsOf(graph.operation, descriptor), needed);
  const auto workspace =
      planWorkspace(*snapshot,
                    {made->problem,
                     made->descriptors.get(),
                     made->neededBytes,
                     made->deterministic,
                     made->suitsEngines,
                     made->deterministic && barsNondeterministic(snapshot->settings),
                     question.isCapturing(),
                     [&] { return made->kernel(descriptor); }});
  if (!workspace) {
    plan.leave(reason::kNoPlan, needed);
    return nullptr;
  }
  made->grantedBytes = workspace->bytes;
  made->isMeasured = workspace->isMeasured;
  if (!made->isKnown && made->needsMore()) {  // only an algorithm can run in the plan's place
    const auto offer = algorithmThatFits(handleOf(plan),
                                         made->problem,
                                         made->descriptors.get(),
                                         made->grantedBytes,
                                         made->deterministic || snapshot->settings.deterministic
                                             ? Determinism::kRequired
                                             : Determinism::kAny);
    if (!offer) {
      plan.leave(reason::kNoPlan, needed);
      return nullptr;
    }
    made->algorithm = offer->kernel.id;
  }
  if (made->needsMore()) grantedWorkspaces().add(*made);
  return made;
}

/// How the plan is run from now on; null: cuDNN runs it.
const ClientConvolution* answerFor(cudnnBackendDescriptor_t descriptor, std::int64_t neededBytes) {
  auto* const plan = trackedDescriptors().findKind<PlanDescription>(descriptor);
  if (plan == nullptr || plan->graph() == nullptr || neededBytes < 0) return nullptr;
  return plan->answer(
      [&] { return makeAnswer(descriptor, *plan, static_cast<std::size_t>(neededBytes)); });
}

/// How to run a plan that was not asked for its workspace; null: cuDNN runs it. The client may have
/// asked another like it, and was told of less than cuDNN's engine would write. Throws Error,
/// std::bad_alloc.
const ClientConvolution* answerUnasked(cudnnBackendDescriptor_t descriptor, PlanDescription& plan) {
  const std::uint64_t additions = grantedWorkspaces().additions();
  if (plan.lookedUpAmong().load(std::memory_order_relaxed) == additions || !plan.isUnderstood() ||
      !plan.graph()->isUnderstood || plan.why() != nullptr)
    return nullptr;
  const ClientGraph& graph = *plan.graph();
  std::int64_t needed = 0, count = 0;
  if (cudnn().backendGetAttribute(descriptor,
                                  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                  CUDNN_TYPE_INT64,
                                  1,
                                  &count,
                                  &needed) != CUDNN_STATUS_SUCCESS)
    return nullptr;
  auto made = std::make_unique<ClientConvolution>(
      graph,
      numericsOf(graph.operation, descriptor),
      static_cast<std::size_t>(std::max<std::int64_t>(needed, 0)));
  const bool isAnswered = grantedWorkspaces().answerAlike(*made);
  plan.lookedUpAmong().store(additions, std::memory_order_relaxed);
  if (!isAnswered) return nullptr;
  return plan.answer([&]() -> std::unique_ptr<const ClientConvolution> { return std::move(made); });
}

/// How a plan runs; null: cuDNN runs it. Empty: that can't be told, and it may not run.
std::optional<const ClientConvolution*> answerOf(cudnnBackendDescriptor_t descriptor,
                                                 PlanDescription& plan) noexcept {
  if (const ClientConvolution* const asked = plan.convolution()) return asked;
  try {
    return answerUnasked(descriptor, plan);
  } catch (const std::exception& error) {
    logInfo("a plan that was not asked for its workspace: {}", error.what());
    return std::nullopt;
  }
}

/// Runs a plan of ours with the pointers of a pack. Empty: we don't understand the pack.
std::optional<cudnnStatus_t> runOurs(Context* context,
                                     cudnnHandle_t handle,
                                     const ClientConvolution& ours,
                                     const PackDescription& pack,
                                     const ClientExecution& execution) {
  const ConvolutionPointers pointers{ours.alpha(),
                                     ours.beta(),
                                     pack.find(ours.x),
                                     pack.find(ours.w),
                                     pack.find(ours.y),
                                     pack.workspace(),
                                     ours.grantedBytes};
  if (pointers.x == nullptr || pointers.w == nullptr || pointers.y == nullptr) return std::nullopt;
  const void* const bias = ours.isFused() ? pack.find(ours.bias) : nullptr;
  const void* const z = ours.problem.addsZ != 0 ? pack.find(ours.z) : pointers.y;
  if (z == nullptr || (ours.isFused() && bias == nullptr)) return std::nullopt;
  const BiasActivation fused = ours.fused(z, bias);
  const ConvolutionCall call{ours.descriptors.get(),
                             pointers,
                             ours.isFused() ? &fused : nullptr,
                             ours.algorithm,
                             &execution};
  return convolve(context, handle, ours.problem.operation, call, UCUDNN_LAYER_ANY);
}

/// Runs a convolution's plan that is not ours.
cudnnStatus_t runTheirs(Context* context,
                        cudnnHandle_t handle,
                        const PlanDescription& plan,
                        ClientExecution execution) noexcept {
  if (context == nullptr) return runExecution(handle, execution);
  const cudnnStatus_t status = CallPath::leave(*context, execution);
  if (!context->isRecorded()) return status;
  const auto* const pack = trackedDescriptors().findKind<PackDescription>(execution.pack);
  if (pack != nullptr) execution.workspace = pack->workspace();
  const ClientGraph& graph = *plan.graph();
  const char* const why = plan.why();
  CallPath::noteLeft(*context,
                     graph.operation,
                     graph.isUnderstood ? &graph.problem : nullptr,
                     execution,
                     why != nullptr ? why : reason::kNotAsked,
                     status);
  return status;
}

}  // namespace

extern "C" {

cudnnStatus_t ucudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                                            cudnnBackendDescriptor_t* descriptor) {
  return noted(cudnn().backendCreateDescriptor(descriptorType, descriptor),
               [&](TrackedDescriptors& all) { all.add(*descriptor, descriptorType); });
}

cudnnStatus_t ucudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  trackedDescriptors().remove(descriptor);
  return cudnn().backendDestroyDescriptor(descriptor);
}

cudnnStatus_t ucudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (const auto* const plan = trackedDescriptors().findKind<PlanDescription>(descriptor))
    plan->tryOut();
  return noted(cudnn().backendFinalize(descriptor), [&](const TrackedDescriptors& all) {
    Description* const description = all.find(descriptor);
    if (description == nullptr) return;
    description->finalized();
    // Asks now: later, when the client asks for the workspace, the plan's handle may be destroyed
    // or in use by another thread.
    const auto* const plan = asKind<PlanDescription>(description);
    if (plan == nullptr || plan->graph() == nullptr) return;
    plan->take();
    if (Context* const context = contextOf(plan->handle()))
      static_cast<void>(context->followDevice());
  });
}

cudnnStatus_t ucudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                        cudnnBackendAttributeName_t attributeName,
                                        cudnnBackendAttributeType_t attributeType,
                                        int64_t elementCount,
                                        const void* arrayOfElements) {
  return noted(
      cudnn().backendSetAttribute(
          descriptor, attributeName, attributeType, elementCount, arrayOfElements),
      [&](const TrackedDescriptors& all) {
        if (auto* const description = all.find(descriptor))
          description->set(attributeName, {attributeType, elementCount, arrayOfElements}, all);
      });
}

cudnnStatus_t ucudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                        cudnnBackendAttributeName_t attributeName,
                                        cudnnBackendAttributeType_t attributeType,
                                        int64_t requestedElementCount,
                                        int64_t* elementCount,
                                        void* arrayOfElements) {
  int64_t own = 0;
  int64_t* const count = elementCount != nullptr ? elementCount : &own;
  const cudnnStatus_t status = cudnn().backendGetAttribute(
      descriptor, attributeName, attributeType, requestedElementCount, count, arrayOfElements);
  return noted(status, [&](const TrackedDescriptors&) {
    const std::int64_t written = std::min(*count, requestedElementCount);
    if (arrayOfElements == nullptr) return;
    if (attributeName == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)  // perhaps there are none
      noteShown(descriptor, written, static_cast<cudnnBackendNumericalNote_t*>(arrayOfElements));
    if (written < 1) return;
    if (attributeType == CUDNN_TYPE_BACKEND_DESCRIPTOR)
      noteFilled(descriptor, attributeName, written, arrayOfElements);
    if (attributeName != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) return;
    auto* const bytes = static_cast<std::int64_t*>(arrayOfElements);
    if (const auto* const ours = answerFor(descriptor, *bytes))
      *bytes = static_cast<std::int64_t>(ours->grantedBytes);
  });
}

cudnnStatus_t ucudnnBackendExecute(cudnnHandle_t handle,
                                   cudnnBackendDescriptor_t executionPlan,
                                   cudnnBackendDescriptor_t variantPack) {
  auto* const plan = trackedDescriptors().findKind<PlanDescription>(executionPlan);
  if (plan == nullptr || plan->graph() == nullptr)
    return cudnn().backendExecute(handle, executionPlan, variantPack);
  Context* const context = activeContextOf(handle);
  const auto answer = answerOf(executionPlan, *plan);
  if (!answer) return CUDNN_STATUS_NOT_SUPPORTED;
  const ClientConvolution* const ours = *answer;
  ClientExecution execution{executionPlan, variantPack, nullptr, plan->neededBytes(), false};
  if (ours == nullptr) return runTheirs(context, handle, *plan, execution);
  execution.neededBytes = ours->neededBytes;
  execution.deterministic = ours->deterministic;
  execution.ticket = &plan->ticket();
  if (const auto& kernel = ours->kernel(executionPlan)) execution.kernel = &*kernel;
  const bool mayRepeat = ours->deterministic && !ours->isMeasured;
  if (mayRepeat && context != nullptr)
    execution.repeatsBits = barsNondeterministic(context->settings());
  if (context != nullptr && !ours->needsMore())
    if (const auto status = CallPath::leaveAgain(*context, execution, ours->grantedBytes))
      return *status;
  execution.problem = ours->isKnown ? &ours->problem : nullptr;
  const auto* const pack = trackedDescriptors().findKind<PackDescription>(variantPack);
  if (pack != nullptr) {
    execution.workspace = pack->workspace();
    if (const auto status = runOurs(context, handle, *ours, *pack, execution)) return *status;
  }
  return ours->needsMore() ? CUDNN_STATUS_NOT_SUPPORTED
                           : runTheirs(context, handle, *plan, execution);
}

int ucudnnBackendNeedsMore(cudnnBackendDescriptor_t executionPlan) {
  auto* const plan = trackedDescriptors().findKind<PlanDescription>(executionPlan);
  if (plan == nullptr || plan->graph() == nullptr) return 0;
  const auto answer = answerOf(executionPlan, *plan);
  return !answer || (*answer != nullptr && (*answer)->needsMore()) ? 1 : 0;
}

void ucudnnBackendToldWorkspace(cudnnBackendDescriptor_t executionPlan, size_t* bytes) {
  const auto* const plan = trackedDescriptors().findKind<PlanDescription>(executionPlan);
  const auto* const ours = plan != nullptr ? plan->convolution() : nullptr;
  if (ours != nullptr) *bytes = ours->grantedBytes;
}

}  // extern "C"

#endif
