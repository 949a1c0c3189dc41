#include "tool/convolution.hpp"

#include <fmt/format.h>

#include <array>

#include "tool/device_data.hpp"
#include "tool/failure.hpp"
#include "tool/options.hpp"

// cuDNN 9 marks the convolution API deprecated; it is what frameworks call and what this measures.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn::tool {
namespace {

/// By number.
const std::vector<const char*>& algorithmNames(ucudnnOperation_t operation) {
  static const std::vector<const char*> names[] = {
      {"IMPLICIT_GEMM",
       "IMPLICIT_PRECOMP_GEMM",
       "GEMM",
       "DIRECT",
       "FFT",
       "FFT_TILING",
       "WINOGRAD",
       "WINOGRAD_NONFUSED"},
      {"ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"},
      {"ALGO_0", "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED", "FFT_TILING"}};
  return names[operation];
}

constexpr std::array<const char*, 4> kMathNames = {"default", "tensor", "tensor_conversion", "fma"};

template <typename Owner, typename Create>
void create(Owner& owner, Create createFunction, const char* call) {
  typename Owner::pointer descriptor = nullptr;
  check(createFunction(&descriptor), call);
  owner.reset(descriptor);
}

}  // namespace

const char* toText(ucudnnOperation_t operation) {
  constexpr const char* kNames[] = {"forward", "backward_data", "backward_filter"};
  return kNames[operation];
}

int algorithmCount(ucudnnOperation_t operation) {
  return static_cast<int>(algorithmNames(operation).size());
}

std::string toText(ucudnnOperation_t operation, const Choice& choice) {
  const auto algorithm = static_cast<std::size_t>(choice.algorithm);
  const auto& names = algorithmNames(operation);
  const auto math = static_cast<std::size_t>(choice.math);
  return fmt::format("{}/{}",
                     algorithm < names.size() ? names[algorithm] : "UNKNOWN",
                     math < kMathNames.size() ? kMathNames[math] : "unknown");
}

Convolution::Convolution(const Layer& layer, ucudnnOperation_t operation, const Numerics& numerics)
    : operation_(operation), numerics_(numerics) {
  if (!layer.dataType.empty()) numerics_.dataType = parseDataType(layer.dataType);
  create(x_, cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor");
  create(y_, cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor");
  create(w_, cudnnCreateFilterDescriptor, "cudnnCreateFilterDescriptor");
  create(convolution_, cudnnCreateConvolutionDescriptor, "cudnnCreateConvolutionDescriptor");
  const auto setTensor = [&](cudnnTensorDescriptor_t tensor, const std::vector<int>& sizes) {
    check(cudnnSetTensorNdDescriptorEx(tensor,
                                       numerics_.layout,
                                       numerics_.dataType,
                                       static_cast<int>(sizes.size()),
                                       sizes.data()),
          "cudnnSetTensorNdDescriptorEx");
  };
  setTensor(x_.get(), layer.inputSizes());
  setTensor(y_.get(), layer.outputSizes());
  const std::vector<int> filter = layer.filterSizes();
  check(cudnnSetFilterNdDescriptor(w_.get(),
                                   numerics_.dataType,
                                   numerics_.layout,
                                   static_cast<int>(filter.size()),
                                   filter.data()),
        "cudnnSetFilterNdDescriptor");
  check(cudnnSetConvolutionNdDescriptor(
            convolution_.get(),
            static_cast<int>(layer.pad.size()),
            layer.pad.data(),
            layer.stride.data(),
            layer.dilation.data(),
            CUDNN_CROSS_CORRELATION,
            // Half and bfloat16 accumulate in float, as frameworks have it.
            numerics_.dataType == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
        "cudnnSetConvolutionNdDescriptor");
  check(cudnnSetConvolutionGroupCount(convolution_.get(), layer.groups),
        "cudnnSetConvolutionGroupCount");
  setMath(numerics_.math);
  check(cudnnGetTensorSizeInBytes(x_.get(), &xBytes_), "cudnnGetTensorSizeInBytes");
  check(cudnnGetTensorSizeInBytes(y_.get(), &yBytes_), "cudnnGetTensorSizeInBytes");
  check(cudnnGetFilterSizeInBytes(w_.get(), &wBytes_), "cudnnGetFilterSizeInBytes");
}

std::size_t Convolution::outputBytes() const noexcept {
  return operation_ == UCUDNN_BACKWARD_DATA     ? xBytes_
         : operation_ == UCUDNN_BACKWARD_FILTER ? wBytes_
                                                : yBytes_;
}

void Convolution::setMath(cudnnMathType_t math) const {
  check(cudnnSetConvolutionMathType(convolution_.get(), math), "cudnnSetConvolutionMathType");
}

Tensors::Tensors(const Convolution& convolution)
    : x(convolution.xBytes()), w(convolution.wBytes()), y(convolution.yBytes()) {
  const ucudnnOperation_t operation = convolution.operation();
  output = operation == UCUDNN_BACKWARD_DATA     ? x.get()
           : operation == UCUDNN_BACKWARD_FILTER ? w.get()
                                                 : y.get();
  std::uint32_t seed = 1;
  for (const DeviceBuffer* buffer : {&x, &w, &y})
    if (buffer->get() != output) fillRandom(*buffer, convolution.numerics().dataType, seed++);
}

Tensors::Tensors(std::size_t xBytes, std::size_t wBytes, std::size_t yBytes, cudnnDataType_t type)
    : x(xBytes), w(wBytes), y(yBytes) {
  std::uint32_t seed = 1;
  for (const DeviceBuffer* buffer : {&x, &w, &y}) fillRandom(*buffer, type, seed++);
}

}  // namespace ucudnn::tool
