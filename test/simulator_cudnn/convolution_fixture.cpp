#include "convolution_fixture.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <ostream>

namespace ucudnn::simulator::test {
namespace {

Geometry makeGeometry(cudnnDataType_t type, std::vector<int> dims, Layout layout) {
  Geometry geometry{type, std::move(dims), {}};
  const std::size_t rank = geometry.dims.size();
  geometry.strides.resize(rank);
  std::vector<std::size_t> order(rank);  // innermost first
  for (std::size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  if (layout == Layout::kNhwc) {
    order.clear();
    order.push_back(1);
    for (std::size_t i = rank - 1; i >= 2; --i) order.push_back(i);
    order.push_back(0);
  }
  int stride = layout == Layout::kGapped ? 2 : 1;
  for (const std::size_t dim : order) {
    geometry.strides[dim] = stride;
    stride *= geometry.dims[dim];
    if (layout == Layout::kGapped) stride += dim == 1 ? 100 : 3;
  }
  return geometry;
}

std::size_t offsetOf(const Geometry& geometry, const std::vector<int>& index) {
  int offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * geometry.strides[d];
  return static_cast<std::size_t>(offset);
}

// Calls f with every index of the box.
template <typename F>
void forEach(const std::vector<int>& dims, F&& f) {
  std::vector<int> index(dims.size(), 0);
  for (;;) {
    f(index);
    std::size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

std::size_t bytesOf(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return sizeof(double);
    case CUDNN_DATA_FLOAT:
      return sizeof(float);
    case CUDNN_DATA_INT8:
      return 1;
    default:
      return 2;
  }
}

std::ostream& operator<<(std::ostream& stream, const ConvolutionCase& convolution) {
  return stream << convolution.name;
}

ConvolutionCase alexnetConv2(int batch) {
  ConvolutionCase convolution;
  convolution.batch = batch;
  convolution.channels = 64;
  convolution.filters = 192;
  convolution.input = {27, 27};
  convolution.filter = {5, 5};
  convolution.pad = {2, 2};
  return convolution;
}

std::size_t Geometry::elements() const {
  std::size_t last = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    last += static_cast<std::size_t>((dims[d] - 1) * strides[d]);
  }
  return last + 1;
}

std::size_t Geometry::bytes() const {
  return elements() * bytesOf(type);
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  EXPECT_EQ(cudaSuccess, cudaMalloc(&pointer_, bytes));
}

DeviceBuffer::~DeviceBuffer() {
  if (pointer_ != nullptr) cudaFree(pointer_);
}

void DeviceBuffer::write(const std::vector<char>& from) {
  EXPECT_EQ(cudaSuccess, cudaMemcpy(pointer_, from.data(), from.size(), cudaMemcpyHostToDevice));
}

std::vector<char> DeviceBuffer::read() const {
  std::vector<char> to(bytes_);
  EXPECT_EQ(cudaSuccess, cudaMemcpy(to.data(), pointer_, bytes_, cudaMemcpyDeviceToHost));
  return to;
}

double toDouble(cudnnDataType_t type, const char* from) {
  switch (type) {
    case CUDNN_DATA_FLOAT: {
      float value;
      std::memcpy(&value, from, sizeof value);
      return static_cast<double>(value);
    }
    case CUDNN_DATA_DOUBLE: {
      double value;
      std::memcpy(&value, from, sizeof value);
      return value;
    }
    case CUDNN_DATA_HALF: {
      __half value;
      std::memcpy(&value, from, sizeof value);
      return static_cast<double>(__half2float(value));
    }
    case CUDNN_DATA_BFLOAT16: {
      __nv_bfloat16 value;
      std::memcpy(&value, from, sizeof value);
      return static_cast<double>(__bfloat162float(value));
    }
    default:
      return *reinterpret_cast<const signed char*>(from);
  }
}

void fromDouble(cudnnDataType_t type, double value, char* to) {
  switch (type) {
    case CUDNN_DATA_FLOAT: {
      const auto narrow = static_cast<float>(value);
      std::memcpy(to, &narrow, sizeof narrow);
      return;
    }
    case CUDNN_DATA_DOUBLE:
      std::memcpy(to, &value, sizeof value);
      return;
    case CUDNN_DATA_HALF: {
      const __half narrow = __double2half(value);
      std::memcpy(to, &narrow, sizeof narrow);
      return;
    }
    case CUDNN_DATA_BFLOAT16: {
      const __nv_bfloat16 narrow = __double2bfloat16(value);
      std::memcpy(to, &narrow, sizeof narrow);
      return;
    }
    default:
      *to = static_cast<char>(static_cast<int>(value));
  }
}

std::vector<char> makeValues(const Geometry& geometry, unsigned seed) {
  std::vector<char> values(geometry.bytes());
  const std::size_t size = bytesOf(geometry.type);
  unsigned state = seed * 2654435761U + 1;
  for (std::size_t i = 0; i < geometry.elements(); ++i) {
    state = state * 1664525U + 1013904223U;  // Numerical Recipes' generator
    const int quarters = static_cast<int>(state >> 24) % 17 - 8;
    fromDouble(geometry.type, quarters / 4.0, values.data() + i * size);
  }
  return values;
}

Convolution::Convolution(const ConvolutionCase& convolution) : case_(convolution) {
  const int rank = static_cast<int>(case_.input.size());
  std::vector<int> x{case_.batch, case_.channels};
  std::vector<int> w{case_.filters, case_.channels / case_.groups};
  std::vector<int> y{case_.batch, case_.filters};
  for (std::size_t d = 0; d < case_.input.size(); ++d) {
    x.push_back(case_.input[d]);
    w.push_back(case_.filter[d]);
    const int span = (case_.filter[d] - 1) * case_.dilation[d] + 1;
    y.push_back((case_.input[d] + 2 * case_.pad[d] - span) / case_.stride[d] + 1);
  }
  const Layout filterLayout = case_.layout == Layout::kNhwc ? Layout::kNhwc : Layout::kNchw;
  xGeometry_ = makeGeometry(case_.type, x, case_.layout);
  wGeometry_ = makeGeometry(case_.type, w, filterLayout);
  yGeometry_ = makeGeometry(case_.type, y, case_.layout);
  EXPECT_CUDNN(cudnnCreate(&handle_));
  EXPECT_CUDNN(cudnnCreateTensorDescriptor(&xDesc_));
  EXPECT_CUDNN(cudnnCreateTensorDescriptor(&yDesc_));
  EXPECT_CUDNN(cudnnCreateFilterDescriptor(&wDesc_));
  EXPECT_CUDNN(cudnnCreateConvolutionDescriptor(&convDesc_));
  setTensor(xDesc_, xGeometry_, case_.batch);
  setTensor(yDesc_, yGeometry_, case_.batch);
  EXPECT_CUDNN(cudnnSetFilterNdDescriptor(
      wDesc_,
      case_.type,
      filterLayout == Layout::kNhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
      rank + 2,
      w.data()));
  EXPECT_CUDNN(cudnnSetConvolutionNdDescriptor(convDesc_,
                                               rank,
                                               case_.pad.data(),
                                               case_.stride.data(),
                                               case_.dilation.data(),
                                               case_.mode,
                                               case_.computeType));
  EXPECT_CUDNN(cudnnSetConvolutionGroupCount(convDesc_, case_.groups));
  EXPECT_CUDNN(cudnnSetConvolutionMathType(convDesc_, case_.math));
}

Convolution::~Convolution() {
  cudnnDestroyConvolutionDescriptor(convDesc_);
  cudnnDestroyFilterDescriptor(wDesc_);
  cudnnDestroyTensorDescriptor(yDesc_);
  cudnnDestroyTensorDescriptor(xDesc_);
  cudnnDestroy(handle_);
}

DeviceBuffer& Convolution::buffer(std::unique_ptr<DeviceBuffer>* buffer,
                                  const Geometry& geometry,
                                  unsigned seed) {
  if (*buffer == nullptr) {
    *buffer = std::make_unique<DeviceBuffer>(geometry.bytes());
    (*buffer)->write(makeValues(geometry, seed));
  }
  return **buffer;
}

void Convolution::setTensor(cudnnTensorDescriptor_t descriptor,
                            const Geometry& geometry,
                            int batch) const {
  std::vector<int> dims = geometry.dims;
  dims[0] = batch;
  EXPECT_CUDNN(cudnnSetTensorNdDescriptor(descriptor,
                                          geometry.type,
                                          static_cast<int>(dims.size()),
                                          dims.data(),
                                          geometry.strides.data()));
}

const Geometry& Convolution::geometry(Operation operation) const {
  switch (operation) {
    case Operation::kForward:
      return yGeometry_;
    case Operation::kBackwardData:
      return xGeometry_;
    default:
      return wGeometry_;
  }
}

DeviceBuffer& Convolution::output(Operation operation) {
  switch (operation) {
    case Operation::kForward:
      return y();
    case Operation::kBackwardData:
      return x();
    default:
      return w();
  }
}

// Written the other way round than the simulator: for each pair of an output position and a tap the
// input position, and from the three the one contribution to whichever tensor is wanted.
std::vector<char> Convolution::expected(Operation operation) const {
  const std::vector<char> x = this->x().read();
  const std::vector<char> w = this->w().read();
  const std::vector<char> y = this->y().read();
  const std::size_t size = bytesOf(case_.type);
  const auto load = [&](const std::vector<char>& from, std::size_t offset) {
    return toDouble(case_.type, from.data() + offset * size);
  };
  const Geometry& out = geometry(operation);
  std::vector<double> sums(out.elements(), 0.0);
  const std::size_t spatial = case_.input.size();
  const int channels = case_.channels / case_.groups;
  const int filters = case_.filters / case_.groups;
  std::vector<int> xIndex(spatial + 2);
  forEach(yGeometry_.dims, [&](const std::vector<int>& yIndex) {
    const int k = yIndex[1];
    std::vector<int> taps = wGeometry_.dims;
    taps[0] = 1;
    forEach(taps, [&](std::vector<int> wIndex) {
      wIndex[0] = k;
      xIndex[0] = yIndex[0];
      xIndex[1] = k / filters * channels + wIndex[1];
      for (std::size_t d = 0; d < spatial; ++d) {
        const int tap =
            case_.mode == CUDNN_CONVOLUTION ? case_.filter[d] - 1 - wIndex[d + 2] : wIndex[d + 2];
        xIndex[d + 2] = yIndex[d + 2] * case_.stride[d] + tap * case_.dilation[d] - case_.pad[d];
        if (xIndex[d + 2] < 0 || xIndex[d + 2] >= case_.input[d]) return;
      }
      const std::size_t xAt = offsetOf(xGeometry_, xIndex);
      const std::size_t wAt = offsetOf(wGeometry_, wIndex);
      const std::size_t yAt = offsetOf(yGeometry_, yIndex);
      switch (operation) {
        case Operation::kForward:
          sums[yAt] += load(x, xAt) * load(w, wAt);
          break;
        case Operation::kBackwardData:
          sums[xAt] += load(y, yAt) * load(w, wAt);
          break;
        case Operation::kBackwardFilter:
          sums[wAt] += load(y, yAt) * load(x, xAt);
          break;
      }
    });
  });
  std::vector<char> result = operation == Operation::kForward        ? y
                             : operation == Operation::kBackwardData ? x
                                                                     : w;
  forEach(out.dims, [&](const std::vector<int>& index) {
    const std::size_t at = offsetOf(out, index);
    double value = case_.alpha * sums[at];
    if (case_.beta != 0) value += case_.beta * load(result, at);
    fromDouble(case_.type, value, result.data() + at * size);
  });
  return result;
}

}  // namespace ucudnn::simulator::test
