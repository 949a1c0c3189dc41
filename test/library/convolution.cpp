// The convolution of the whole-library tests as a client of cuDNN, or of μ-cuDNN.
#include <functional>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "../support/checked.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

/// All parts lie side by side in one sample, as Caffe's groups do.
Geometry tensorGeometry(const ConvolutionCase& c, int channels, const std::vector<int>& image) {
  Geometry geometry;
  geometry.type = c.type;
  geometry.parts = c.parts;
  geometry.sizes = {c.batch, channels};
  geometry.sizes.insert(geometry.sizes.end(), image.begin(), image.end());
  geometry.strides.assign(geometry.sizes.size(), 1);
  const bool nhwc = c.format == CUDNN_TENSOR_NHWC;
  int stride = nhwc ? channels : 1;
  for (std::size_t d = geometry.sizes.size() - 1; d >= 2; --d) {
    geometry.strides[d] = stride;
    stride *= geometry.sizes[d];
  }
  if (!nhwc) {
    geometry.strides[1] = stride;
    stride *= channels;
  }
  geometry.partStride = static_cast<std::size_t>(stride);
  geometry.strides[0] = stride * c.parts + c.batchGap;
  return geometry;
}

/// Filters are packed; where the case is NHWC, with their channels innermost.
Geometry filterGeometry(const ConvolutionCase& c) {
  ConvolutionCase shape = c;
  shape.batch = c.filters;
  shape.parts = 1;
  shape.batchGap = 0;
  Geometry geometry = tensorGeometry(shape, c.channels / c.groups, c.filter);
  geometry.parts = c.parts;
  geometry.partStride = static_cast<std::size_t>(geometry.strides[0] * c.filters);
  return geometry;
}

void setTensor(cudnnTensorDescriptor_t descriptor, const Geometry& geometry) {
  check(cudnnSetTensorNdDescriptor(descriptor,
                                   geometry.type,
                                   static_cast<int>(geometry.sizes.size()),
                                   geometry.sizes.data(),
                                   geometry.strides.data()));
}

/// The scaling factors in the type that cuDNN reads them in.
class Factors {
 public:
  Factors(const ConvolutionCase& c, double alpha, double beta)
      : isDouble_(c.type == CUDNN_DATA_DOUBLE),
        doubles_{alpha, beta},
        floats_{static_cast<float>(alpha), static_cast<float>(beta)} {}
  const void* alpha() const { return at(0); }
  const void* beta() const { return at(1); }

 private:
  const void* at(int i) const {
    return isDouble_ ? static_cast<const void*>(&doubles_[i]) : &floats_[i];
  }
  bool isDouble_;
  double doubles_[2];
  float floats_[2];
};

/// Calls `ask(requested, returned, native results)` and gives the results back in one type.
template <typename Native, typename Ask>
cudnnStatus_t collect(int requested, std::vector<Performance>* results, Ask ask) {
  std::vector<Native> native(static_cast<std::size_t>(requested));
  int returned = -1;
  const cudnnStatus_t status = ask(requested, &returned, native.data());
  results->clear();
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (returned < 0 || returned > requested) throw std::runtime_error("returnedAlgoCount is wrong");
  for (int i = 0; i < returned; ++i) {
    const Native& from = native[static_cast<std::size_t>(i)];
    results->push_back({static_cast<int>(from.algo),
                        from.status,
                        from.time,
                        from.memory,
                        from.determinism,
                        from.mathType});
  }
  return status;
}

}  // namespace

Convolution::Convolution(const ConvolutionCase& convolution, Contents contents)
    : case_(convolution) {
  std::vector<int> image;
  for (std::size_t d = 0; d < case_.input.size(); ++d) {
    const int reach = (case_.filter[d] - 1) * case_.dilation[d] + 1;
    image.push_back((case_.input[d] + 2 * case_.pad[d] - reach) / case_.stride[d] + 1);
  }
  xGeometry_ = tensorGeometry(case_, case_.channels, case_.input);
  yGeometry_ = tensorGeometry(case_, case_.filters, image);
  wGeometry_ = filterGeometry(case_);
  check(cudnnCreateTensorDescriptor(&descriptors_.x));
  check(cudnnCreateTensorDescriptor(&descriptors_.y));
  check(cudnnCreateFilterDescriptor(&descriptors_.w));
  check(cudnnCreateConvolutionDescriptor(&descriptors_.convolution));
  setTensor(descriptors_.x, xGeometry_);
  setTensor(descriptors_.y, yGeometry_);
  check(cudnnSetFilterNdDescriptor(descriptors_.w,
                                   case_.type,
                                   case_.format,
                                   static_cast<int>(wGeometry_.sizes.size()),
                                   wGeometry_.sizes.data()));
  check(cudnnSetConvolutionNdDescriptor(
      descriptors_.convolution,
      static_cast<int>(case_.input.size()),
      case_.pad.data(),
      case_.stride.data(),
      case_.dilation.data(),
      case_.mode,
      case_.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  check(cudnnSetConvolutionGroupCount(descriptors_.convolution, case_.groups));
  check(cudnnSetConvolutionMathType(descriptors_.convolution, case_.math));
  x_ = std::make_unique<DeviceBuffer>(xGeometry_.bytes());
  w_ = std::make_unique<DeviceBuffer>(wGeometry_.bytes());
  y_ = std::make_unique<DeviceBuffer>(yGeometry_.bytes());
  if (contents == Contents::kRandom) fill();
}

Convolution::~Convolution() = default;

Convolution::Descriptors::~Descriptors() {
  cudnnDestroyTensorDescriptor(x);
  cudnnDestroyTensorDescriptor(y);
  cudnnDestroyFilterDescriptor(w);
  cudnnDestroyConvolutionDescriptor(convolution);
}

void Convolution::fill() {
  x_->write(randomValues(xGeometry_, 1));
  w_->write(randomValues(wGeometry_, 2));
  y_->write(randomValues(yGeometry_, 3));
}

const Geometry& Convolution::geometry(ucudnnOperation_t operation) const {
  if (operation == UCUDNN_BACKWARD_DATA) return xGeometry_;
  return operation == UCUDNN_BACKWARD_FILTER ? wGeometry_ : yGeometry_;
}

DeviceBuffer& Convolution::output(ucudnnOperation_t operation) {
  if (operation == UCUDNN_BACKWARD_DATA) return *x_;
  return operation == UCUDNN_BACKWARD_FILTER ? *w_ : *y_;
}

template <typename Handle>
cudnnStatus_t Convolution::run(Handle handle,
                               ucudnnOperation_t operation,
                               int algorithm,
                               Workspace workspace,
                               double alpha,
                               double beta) {
  const Factors factors(case_, alpha, beta);
  const auto runPart = [&](std::size_t part) {
    void* const x = x_->get() + part * xGeometry_.partStrideBytes();
    void* const w = w_->get() + part * wGeometry_.partStrideBytes();
    void* const y = y_->get() + part * yGeometry_.partStrideBytes();
    switch (operation) {
      case UCUDNN_BACKWARD_DATA:
        return cudnnConvolutionBackwardData(handle,
                                            factors.alpha(),
                                            descriptors_.w,
                                            w,
                                            descriptors_.y,
                                            y,
                                            descriptors_.convolution,
                                            static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm),
                                            workspace.memory,
                                            workspace.bytes,
                                            factors.beta(),
                                            descriptors_.x,
                                            x);
      case UCUDNN_BACKWARD_FILTER:
        return cudnnConvolutionBackwardFilter(
            handle,
            factors.alpha(),
            descriptors_.x,
            x,
            descriptors_.y,
            y,
            descriptors_.convolution,
            static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm),
            workspace.memory,
            workspace.bytes,
            factors.beta(),
            descriptors_.w,
            w);
      default:
        return cudnnConvolutionForward(handle,
                                       factors.alpha(),
                                       descriptors_.x,
                                       x,
                                       descriptors_.w,
                                       w,
                                       descriptors_.convolution,
                                       static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
                                       workspace.memory,
                                       workspace.bytes,
                                       factors.beta(),
                                       descriptors_.y,
                                       y);
    }
  };
  for (std::size_t part = 0; part < static_cast<std::size_t>(case_.parts); ++part) {
    const cudnnStatus_t status = runPart(part);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  return CUDNN_STATUS_SUCCESS;
}
template cudnnStatus_t Convolution::run(
    cudnnHandle_t, ucudnnOperation_t, int, Workspace, double, double);
template cudnnStatus_t Convolution::run(
    UcudnnHandle_t, ucudnnOperation_t, int, Workspace, double, double);

template <typename Handle>
cudnnStatus_t Convolution::workspaceSize(Handle handle,
                                         ucudnnOperation_t operation,
                                         int algorithm,
                                         std::size_t* bytes) const {
  switch (operation) {
    case UCUDNN_BACKWARD_DATA:
      return cudnnGetConvolutionBackwardDataWorkspaceSize(
          handle,
          descriptors_.w,
          descriptors_.y,
          descriptors_.convolution,
          descriptors_.x,
          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm),
          bytes);
    case UCUDNN_BACKWARD_FILTER:
      return cudnnGetConvolutionBackwardFilterWorkspaceSize(
          handle,
          descriptors_.x,
          descriptors_.y,
          descriptors_.convolution,
          descriptors_.w,
          static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm),
          bytes);
    default:
      return cudnnGetConvolutionForwardWorkspaceSize(
          handle,
          descriptors_.x,
          descriptors_.w,
          descriptors_.convolution,
          descriptors_.y,
          static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
          bytes);
  }
}
template cudnnStatus_t Convolution::workspaceSize(cudnnHandle_t,
                                                  ucudnnOperation_t,
                                                  int,
                                                  std::size_t*) const;
template cudnnStatus_t Convolution::workspaceSize(UcudnnHandle_t,
                                                  ucudnnOperation_t,
                                                  int,
                                                  std::size_t*) const;

template <typename Handle>
cudnnStatus_t Convolution::query(Handle handle,
                                 ucudnnOperation_t operation,
                                 Query how,
                                 int requested,
                                 std::vector<Performance>* results,
                                 Workspace workspace) {
  const Descriptors& d = descriptors_;
  void* const x = x_->get();
  void* const w = w_->get();
  void* const y = y_->get();
  void* const memory = workspace.memory;
  const std::size_t bytes = workspace.bytes;
  switch (operation) {
    case UCUDNN_BACKWARD_DATA:
      return collect<cudnnConvolutionBwdDataAlgoPerf_t>(
          requested, results, [&](int most, int* count, auto* found) {
            if (how == Query::kGet)
              return cudnnGetConvolutionBackwardDataAlgorithm_v7(
                  handle, d.w, d.y, d.convolution, d.x, most, count, found);
            if (how == Query::kFind)
              return cudnnFindConvolutionBackwardDataAlgorithm(
                  handle, d.w, d.y, d.convolution, d.x, most, count, found);
            return cudnnFindConvolutionBackwardDataAlgorithmEx(
                handle, d.w, w, d.y, y, d.convolution, d.x, x, most, count, found, memory, bytes);
          });
    case UCUDNN_BACKWARD_FILTER:
      return collect<cudnnConvolutionBwdFilterAlgoPerf_t>(
          requested, results, [&](int most, int* count, auto* found) {
            if (how == Query::kGet)
              return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                  handle, d.x, d.y, d.convolution, d.w, most, count, found);
            if (how == Query::kFind)
              return cudnnFindConvolutionBackwardFilterAlgorithm(
                  handle, d.x, d.y, d.convolution, d.w, most, count, found);
            return cudnnFindConvolutionBackwardFilterAlgorithmEx(
                handle, d.x, x, d.y, y, d.convolution, d.w, w, most, count, found, memory, bytes);
          });
    default:
      return collect<cudnnConvolutionFwdAlgoPerf_t>(
          requested, results, [&](int most, int* count, auto* found) {
            if (how == Query::kGet)
              return cudnnGetConvolutionForwardAlgorithm_v7(
                  handle, d.x, d.w, d.convolution, d.y, most, count, found);
            if (how == Query::kFind)
              return cudnnFindConvolutionForwardAlgorithm(
                  handle, d.x, d.w, d.convolution, d.y, most, count, found);
            return cudnnFindConvolutionForwardAlgorithmEx(
                handle, d.x, x, d.w, w, d.convolution, d.y, y, most, count, found, memory, bytes);
          });
  }
}
template cudnnStatus_t Convolution::query(
    cudnnHandle_t, ucudnnOperation_t, Query, int, std::vector<Performance>*, Workspace);
template cudnnStatus_t Convolution::query(
    UcudnnHandle_t, ucudnnOperation_t, Query, int, std::vector<Performance>*, Workspace);

}  // namespace ucudnn::test
