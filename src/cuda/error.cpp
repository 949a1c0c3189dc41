#include "cuda/error.hpp"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

#include "cuda/cudnn.hpp"

namespace ucudnn {
namespace {

/// "cudnn().getStream(...)" as cuDNN's manual has it.
std::string asDocumented(std::string call) {
  constexpr std::string_view kTable = "cudnn().";
  if (call.rfind(kTable, 0) != 0 || call.size() == kTable.size()) return call;
  call[kTable.size()] = static_cast<char>(std::toupper(call[kTable.size()]));
  return "cudnn" + call.substr(kTable.size());
}

}  // namespace

void throwCudnnError(cudnnStatus_t status, const char* call, const char* file, int line) {
  char detail[512] = "";
#if CUDNN_VERSION >= 90000
  cudnn().getLastErrorString(detail, sizeof(detail));
#endif
  const std::string message = fmt::format("{} returned {} at {}:{} {}",
                                          asDocumented(call),
                                          cudnn().getErrorString(status),
                                          file,
                                          line,
                                          detail);
  if (status == CUDNN_STATUS_ALLOC_FAILED) throw OutOfMemory(message);
  throw Error(status, message);
}

void throwCudaError(cudaError_t error, const char* call, const char* file, int line) {
  cudaGetLastError();
  const std::string message = fmt::format("{} returned {} ({}) at {}:{}",
                                          call,
                                          cudaGetErrorName(error),
                                          cudaGetErrorString(error),
                                          file,
                                          line);
  if (error == cudaErrorMemoryAllocation) throw OutOfMemory(message);
  throw Error(CUDNN_STATUS_EXECUTION_FAILED, message);
}

}  // namespace ucudnn
