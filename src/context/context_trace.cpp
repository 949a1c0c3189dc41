// What a context writes down of its calls.
#include "context/context.hpp"

namespace ucudnn {

void Context::noteRun(const Plan& plan, const ConvolutionCall& call, bool replayed) noexcept {
  try {
    record_.ran(plan, call, replayed);
  } catch (const std::bad_alloc&) {
    record_.passed(call, left::kFailed);
  }
}

void Context::writeTrace(Operation operation,
                         const ConvolutionCall& call,
                         cudnnStatus_t status) noexcept {
  try {
    cudaStream_t stream = nullptr;
    static_cast<void>(cudnn().getStream(handle_, &stream));
    Problem again;  // only whether it can be read: of a fused call the key has more
    const bool isRead = readProblem(operation, call.descriptors, again);
    trace_->write(
        traceLine(operation, isRead ? &callsKey_.problem : nullptr, record_, stream, status));
  } catch (const std::bad_alloc&) {  // a line is missing
  }
}

}  // namespace ucudnn
