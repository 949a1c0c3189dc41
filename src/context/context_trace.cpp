// What a context writes down of its calls.
#include "context/context.hpp"
#include "context/report.hpp"

namespace ucudnn {

void Context::noteRun(const Plan& plan, const ConvolutionCall& call, bool replayed) noexcept {
  try {
    record_.ran(plan, call, replayed);
  } catch (const std::bad_alloc&) {
    record_.passed(call, left::kFailed);
  }
}

cudnnStatus_t Context::convolveRecorded(Operation operation,
                                        const ConvolutionCall& call,
                                        LayerId layer) noexcept {
  record_.passed(call, left::kFailed);  // unless something else is noted
  const cudnnStatus_t status = convolve(operation, call, layer);
  Problem again;  // only whether it can be read: of a fused call problem_ has more
  const Problem* const read = problemOf(operation, call, again);
  tell(operation, read == &again ? &problem_ : read, status);
  return status;
}

cudnnStatus_t Context::leaveToCudnn(const ClientExecution& execution) noexcept {
  planner().statistics().bypassedCalls.fetch_add(1, std::memory_order_relaxed);
  return runExecution(handle_, execution);
}

void Context::noteLeft(Operation operation,
                       const Problem* problem,
                       const ClientExecution& execution,
                       const char* why,
                       cudnnStatus_t status) noexcept {
  ConvolutionCall call{};
  call.pointers.workspace = execution.workspace;
  call.pointers.workspaceBytes = execution.neededBytes;
  record_.passed(call, why);
  const std::size_t told = execution.neededBytes;
  record_.beyondBytes = told - capped(told);
  tell(operation, problem, status);
}

void Context::tell(Operation operation, const Problem* problem, cudnnStatus_t status) noexcept {
  try {
    if (settings().report) report().add(problem, record_);
    if (now_->trace == nullptr) return;
    cudaStream_t stream = nullptr;
    static_cast<void>(cudnn().getStream(handle_, &stream));
    now_->trace->write(traceLine(operation, problem, record_, stream, status));
  } catch (const std::bad_alloc&) {  // a line is missing
  }
}

}  // namespace ucudnn
