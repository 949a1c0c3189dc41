// One convolution of a network, ready to be run through cuDNN or μ-cuDNN: descriptors and tensors.
#pragma once

#include <ucudnn/diagnosis.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tool/device.hpp"
#include "tool/layer_list.hpp"

namespace ucudnn::tool {

/// Types, math and layout of a convolution.
struct Numerics {
  cudnnDataType_t dataType = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  cudnnTensorFormat_t layout = CUDNN_TENSOR_NCHW;
};

/// "forward", "backward_data", "backward_filter".
const char* toText(ucudnnOperation_t operation);

/// An algorithm as a query has answered it.
struct Choice {
  int algorithm = 0;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  std::size_t memory = 0;
  float timeMs = 0;
};

/// cuDNN's name, as in ucudnnMicroBatches_t: "FFT_TILING/default".
std::string toText(ucudnnOperation_t operation, const Choice& choice);

/// The descriptors of one layer's operation.
class Convolution {
 public:
  /// Throws DeviceError if cuDNN refuses the layer.
  Convolution(const Layer& layer, ucudnnOperation_t operation, const Numerics& numerics);

  ucudnnOperation_t operation() const noexcept { return operation_; }
  const Numerics& numerics() const noexcept { return numerics_; }
  cudnnTensorDescriptor_t x() const noexcept { return x_.get(); }
  cudnnFilterDescriptor_t w() const noexcept { return w_.get(); }
  cudnnTensorDescriptor_t y() const noexcept { return y_.get(); }
  cudnnConvolutionDescriptor_t convolution() const noexcept { return convolution_.get(); }

  std::size_t xBytes() const noexcept { return xBytes_; }
  std::size_t wBytes() const noexcept { return wBytes_; }
  std::size_t yBytes() const noexcept { return yBytes_; }
  std::size_t outputBytes() const noexcept;

  /// As PyTorch and Caffe do with the math type that a query answers.
  void setMath(cudnnMathType_t math) const;

 private:
  ucudnnOperation_t operation_;
  Numerics numerics_;
  std::unique_ptr<cudnnTensorStruct, Deleter<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>>
      x_, y_;
  std::unique_ptr<cudnnFilterStruct, Deleter<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>>
      w_;
  std::unique_ptr<cudnnConvolutionStruct,
                  Deleter<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>>
      convolution_;
  std::size_t xBytes_ = 0, wBytes_ = 0, yBytes_ = 0;
};

/// The tensors of a convolution; the operation's output is one of the three.
struct Tensors {
  /// Allocates all three and fills the inputs with random numbers, never zeros: kernels on zeros
  /// draw less power and clock higher. Throws OutOfMemory.
  explicit Tensors(const Convolution& convolution);
  /// So many bytes of random numbers in each, and no output.
  Tensors(std::size_t xBytes, std::size_t wBytes, std::size_t yBytes, cudnnDataType_t type);

  DeviceBuffer x, w, y;
  void* output = nullptr;  ///< of x, w, y the one that the operation writes
};

/// The functions below are cuDNN's for a cudnnHandle_t and μ-cuDNN's for a UcudnnHandle_t: the
/// overloads that the handle's type chooses are what a framework gets. They throw DeviceError.

/// An algorithm comes once for each math type (ordinary and tensor units) at the most.
constexpr int kMostResults = 2 * CUDNN_CONVOLUTION_FWD_ALGO_COUNT;

/// cudnnFindConvolution*AlgorithmEx: the `most` that work within the workspace, fastest first.
template <typename Handle>
std::vector<Choice> findAlgorithms(Handle handle,
                                   const Convolution& convolution,
                                   const Tensors& tensors,
                                   const DeviceBuffer& workspace,
                                   int most = kMostResults);

/// cuDNN's choice by its heuristics without a workspace limit: the first algorithm of
/// cudnnGetConvolution*Algorithm_v7 that works.
std::optional<Choice> pickAlgorithm(cudnnHandle_t handle, const Convolution& convolution);

/// cudnnGetConvolution*WorkspaceSize. False: the algorithm does not support the convolution.
template <typename Handle>
bool getWorkspaceSize(Handle handle,
                      const Convolution& convolution,
                      int algorithm,
                      std::size_t* bytes);

/// cudnnConvolution*, alpha 1, beta 0, to `output`; for a UcudnnHandle_t also with a layer id.
template <typename Handle, typename... LayerIds>
void run(Handle handle,
         const Convolution& convolution,
         const Tensors& tensors,
         int algorithm,
         const Workspace& workspace,
         void* output,
         LayerIds... layer);

/// Asks with room for none how many there are, then for all of them.
template <typename Entry, typename Function>
std::vector<Entry> askAll(Function function,
                          const char* name,
                          cudnnHandle_t handle,
                          const Convolution& c) {
  int count = 0;
  check(function(handle, c.operation(), c.x(), c.w(), c.convolution(), c.y(), 0, &count, nullptr),
        name);
  std::vector<Entry> entries(static_cast<std::size_t>(count));
  if (count > 0) entries.front().size = sizeof(Entry);
  check(function(handle,
                 c.operation(),
                 c.x(),
                 c.w(),
                 c.convolution(),
                 c.y(),
                 count,
                 &count,
                 entries.data()),
        name);
  entries.resize(std::min(entries.size(), static_cast<std::size_t>(count)));
  return entries;
}

/// How many algorithms cuDNN has for the operation.
int algorithmCount(ucudnnOperation_t operation);

}  // namespace ucudnn::tool
