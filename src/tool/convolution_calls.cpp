// What the tool calls of cuDNN's convolution API, on either kind of handle.
#include <algorithm>
#include <array>
#include <cstdint>

#include "tool/convolution.hpp"

// cuDNN 9 marks the convolution API deprecated; it is what frameworks call and what this measures.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn::tool {
namespace {

template <typename Performance>
std::vector<Choice> successful(const Performance* results, int count, std::size_t limitBytes) {
  std::vector<Choice> choices;
  for (int i = 0; i < count; ++i) {
    const Performance& result = results[i];
    if (result.status != CUDNN_STATUS_SUCCESS || result.memory > limitBytes) continue;
    choices.push_back({static_cast<int>(result.algo), result.mathType, result.memory, result.time});
  }
  return choices;
}

// An algorithm comes once for each math type (ordinary and tensor units) at the most.
constexpr int kMostResults = 2 * CUDNN_CONVOLUTION_FWD_ALGO_COUNT;

/// alpha and beta: double for double tensors, else float.
struct Factors {
  explicit Factors(cudnnDataType_t type) : isDouble(type == CUDNN_DATA_DOUBLE) {}
  const void* one() const { return isDouble ? static_cast<const void*>(&doubles[1]) : &floats[1]; }
  const void* zero() const { return isDouble ? static_cast<const void*>(&doubles[0]) : &floats[0]; }
  bool isDouble;
  double doubles[2] = {0, 1};
  float floats[2] = {0, 1};
};

}  // namespace

template <typename Handle>
std::vector<Choice> findAlgorithms(Handle handle,
                                   const Convolution& c,
                                   const Tensors& t,
                                   const DeviceBuffer& workspace) {
  int count = 0;
  switch (c.operation()) {
    case UCUDNN_BACKWARD_DATA: {
      std::array<cudnnConvolutionBwdDataAlgoPerf_t, kMostResults> results{};
      check(cudnnFindConvolutionBackwardDataAlgorithmEx(handle,
                                                        c.w(),
                                                        t.w.get(),
                                                        c.y(),
                                                        t.y.get(),
                                                        c.convolution(),
                                                        c.x(),
                                                        t.x.get(),
                                                        kMostResults,
                                                        &count,
                                                        results.data(),
                                                        workspace.get(),
                                                        workspace.bytes()),
            "cudnnFindConvolutionBackwardDataAlgorithmEx");
      return successful(results.data(), count, workspace.bytes());
    }
    case UCUDNN_BACKWARD_FILTER: {
      std::array<cudnnConvolutionBwdFilterAlgoPerf_t, kMostResults> results{};
      check(cudnnFindConvolutionBackwardFilterAlgorithmEx(handle,
                                                          c.x(),
                                                          t.x.get(),
                                                          c.y(),
                                                          t.y.get(),
                                                          c.convolution(),
                                                          c.w(),
                                                          t.w.get(),
                                                          kMostResults,
                                                          &count,
                                                          results.data(),
                                                          workspace.get(),
                                                          workspace.bytes()),
            "cudnnFindConvolutionBackwardFilterAlgorithmEx");
      return successful(results.data(), count, workspace.bytes());
    }
    default: {
      std::array<cudnnConvolutionFwdAlgoPerf_t, kMostResults> results{};
      check(cudnnFindConvolutionForwardAlgorithmEx(handle,
                                                   c.x(),
                                                   t.x.get(),
                                                   c.w(),
                                                   t.w.get(),
                                                   c.convolution(),
                                                   c.y(),
                                                   t.y.get(),
                                                   kMostResults,
                                                   &count,
                                                   results.data(),
                                                   workspace.get(),
                                                   workspace.bytes()),
            "cudnnFindConvolutionForwardAlgorithmEx");
      return successful(results.data(), count, workspace.bytes());
    }
  }
}

std::optional<Choice> pickAlgorithm(cudnnHandle_t handle, const Convolution& c) {
  const auto first = [](auto performance, auto get) -> std::optional<Choice> {
    std::array<decltype(performance), kMostResults> results{};
    int count = 0;
    check(get(kMostResults, &count, results.data()), "cudnnGetConvolution*Algorithm_v7");
    const auto choices = successful(results.data(), count, SIZE_MAX);
    return choices.empty() ? std::nullopt : std::optional(choices.front());
  };
  switch (c.operation()) {
    case UCUDNN_BACKWARD_DATA:
      return first(cudnnConvolutionBwdDataAlgoPerf_t{}, [&](auto... results) {
        return cudnnGetConvolutionBackwardDataAlgorithm_v7(
            handle, c.w(), c.y(), c.convolution(), c.x(), results...);
      });
    case UCUDNN_BACKWARD_FILTER:
      return first(cudnnConvolutionBwdFilterAlgoPerf_t{}, [&](auto... results) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            handle, c.x(), c.y(), c.convolution(), c.w(), results...);
      });
    default:
      return first(cudnnConvolutionFwdAlgoPerf_t{}, [&](auto... results) {
        return cudnnGetConvolutionForwardAlgorithm_v7(
            handle, c.x(), c.w(), c.convolution(), c.y(), results...);
      });
  }
}

template <typename Handle>
bool getWorkspaceSize(Handle handle, const Convolution& c, int algorithm, std::size_t* bytes) {
  cudnnStatus_t status;
  switch (c.operation()) {
    case UCUDNN_BACKWARD_DATA:
      status = cudnnGetConvolutionBackwardDataWorkspaceSize(
          handle,
          c.w(),
          c.y(),
          c.convolution(),
          c.x(),
          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm),
          bytes);
      break;
    case UCUDNN_BACKWARD_FILTER:
      status = cudnnGetConvolutionBackwardFilterWorkspaceSize(
          handle,
          c.x(),
          c.y(),
          c.convolution(),
          c.w(),
          static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm),
          bytes);
      break;
    default:
      status =
          cudnnGetConvolutionForwardWorkspaceSize(handle,
                                                  c.x(),
                                                  c.w(),
                                                  c.convolution(),
                                                  c.y(),
                                                  static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
                                                  bytes);
  }
  return status == CUDNN_STATUS_SUCCESS;
}

template <typename Handle, typename... LayerIds>
void run(Handle handle,
         const Convolution& c,
         const Tensors& t,
         int algorithm,
         const Workspace& workspace,
         void* output,
         LayerIds... layer) {
  const Factors factors(c.numerics().dataType);
  switch (c.operation()) {
    case UCUDNN_BACKWARD_DATA:
      check(cudnnConvolutionBackwardData(handle,
                                         factors.one(),
                                         c.w(),
                                         t.w.get(),
                                         c.y(),
                                         t.y.get(),
                                         c.convolution(),
                                         static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm),
                                         workspace.memory,
                                         workspace.bytes,
                                         factors.zero(),
                                         c.x(),
                                         output,
                                         layer...),
            "cudnnConvolutionBackwardData");
      break;
    case UCUDNN_BACKWARD_FILTER:
      check(cudnnConvolutionBackwardFilter(handle,
                                           factors.one(),
                                           c.x(),
                                           t.x.get(),
                                           c.y(),
                                           t.y.get(),
                                           c.convolution(),
                                           static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm),
                                           workspace.memory,
                                           workspace.bytes,
                                           factors.zero(),
                                           c.w(),
                                           output,
                                           layer...),
            "cudnnConvolutionBackwardFilter");
      break;
    default:
      check(cudnnConvolutionForward(handle,
                                    factors.one(),
                                    c.x(),
                                    t.x.get(),
                                    c.w(),
                                    t.w.get(),
                                    c.convolution(),
                                    static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
                                    workspace.memory,
                                    workspace.bytes,
                                    factors.zero(),
                                    c.y(),
                                    output,
                                    layer...),
            "cudnnConvolutionForward");
  }
}

#define UCUDNN_TOOL_INSTANTIATE(HANDLE)                                          \
  template std::vector<Choice> findAlgorithms(                                   \
      HANDLE, const Convolution&, const Tensors&, const DeviceBuffer&);          \
  template bool getWorkspaceSize(HANDLE, const Convolution&, int, std::size_t*); \
  template void run(HANDLE, const Convolution&, const Tensors&, int, const Workspace&, void*);
UCUDNN_TOOL_INSTANTIATE(cudnnHandle_t)
UCUDNN_TOOL_INSTANTIATE(UcudnnHandle_t)
#undef UCUDNN_TOOL_INSTANTIATE
template void run(UcudnnHandle_t,
                  const Convolution&,
                  const Tensors&,
                  int,
                  const Workspace&,
                  void*,
                  ucudnnLayerId_t);

}  // namespace ucudnn::tool
