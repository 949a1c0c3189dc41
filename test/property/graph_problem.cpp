#include "graph_problem.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

namespace ucudnn::test {
namespace {

/// The upper half of a float; a half of it is not needed, for numbers are multiples of 1/16.
std::uint16_t toBfloat16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16U);
}

double fromBfloat16(std::uint16_t narrow) {
  const std::uint32_t bits = static_cast<std::uint32_t>(narrow) << 16U;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

/// Converts a value that is 0 or between 2^-14 and 2^15, and whose fraction has at most ten bits.
std::uint16_t toHalf(float value) {
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::abs(value), &exponent);  // in [1/2, 1)
  const auto mantissa = static_cast<std::uint16_t>((2 * fraction - 1) * 1024);
  const auto sign = static_cast<std::uint16_t>(value < 0 ? 0x8000U : 0U);
  return static_cast<std::uint16_t>(sign | static_cast<unsigned>(exponent + 14) << 10U | mantissa);
}

double fromHalf(std::uint16_t half) {
  const int exponent = half >> 10U & 31U;
  const double mantissa = half & 1023U;
  const double size = exponent == 31  ? (mantissa == 0 ? HUGE_VAL : NAN)
                      : exponent == 0 ? std::ldexp(mantissa, -24)
                                      : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000U) != 0 ? -size : size;
}

void store(cudnnDataType_t type, float value, char* at) {
  const auto put = [&](auto stored) { std::memcpy(at, &stored, sizeof stored); };
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return put(static_cast<double>(value));
    case CUDNN_DATA_HALF:
      return put(toHalf(value));
    case CUDNN_DATA_BFLOAT16:
      return put(toBfloat16(value));
    default:
      return put(value);
  }
}

template <typename Stored>
Stored loadAs(const char* at) {
  Stored stored;
  std::memcpy(&stored, at, sizeof stored);
  return stored;
}

double load(cudnnDataType_t type, const char* at) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return loadAs<double>(at);
    case CUDNN_DATA_HALF:
      return fromHalf(loadAs<std::uint16_t>(at));
    case CUDNN_DATA_BFLOAT16:
      return fromBfloat16(loadAs<std::uint16_t>(at));
    default:
      return static_cast<double>(loadAs<float>(at));
  }
}

std::size_t countOf(const GraphProblem::Sizes& sizes) {
  std::size_t product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<std::size_t>(size);
  return product;
}

GraphProblem::Sizes joined(std::int64_t first,
                           std::int64_t second,
                           const GraphProblem::Sizes& others) {
  GraphProblem::Sizes sizes = {first, second};
  sizes.insert(sizes.end(), others.begin(), others.end());
  return sizes;
}

void cuda(cudaError_t error) {
  check(error, "CUDA");
}

}  // namespace

GraphProblem::Sizes GraphProblem::x() const {
  return joined(batch, channels, image);
}
GraphProblem::Sizes GraphProblem::w() const {
  return joined(filters, channels / groups, filter);
}
GraphProblem::Sizes GraphProblem::bias() const {
  return joined(1, filters, Sizes(image.size(), 1));
}

GraphProblem::Sizes GraphProblem::y() const {
  Sizes out;
  for (std::size_t d = 0; d < image.size(); ++d)
    out.push_back((image[d] + 2 * pad[d] - (filter[d] - 1) * dilation[d] - 1) / stride[d] + 1);
  return joined(batch, filters, out);
}

GraphProblem::Sizes GraphProblem::strides(const Sizes& sizes) const {
  Sizes made(sizes.size());
  std::int64_t step = 1;
  if (channelsLast) made[1] = std::exchange(step, sizes[1]);
  for (std::size_t d = sizes.size(); d-- > 0;)
    if (d != 1 || !channelsLast) made[d] = std::exchange(step, step * sizes[d]);
  return made;
}

std::size_t GraphProblem::elementBytes() const {
  if (type == CUDNN_DATA_DOUBLE) return sizeof(double);
  return type == CUDNN_DATA_FLOAT ? sizeof(float) : sizeof(std::uint16_t);
}

double GraphProblem::work() const {
  return static_cast<double>(countOf(w())) *
         static_cast<double>(std::max(countOf(y()) / static_cast<std::size_t>(filters),
                                      countOf(x()) / static_cast<std::size_t>(channels)));
}

std::string GraphProblem::text() const {
  static constexpr const char* kOperations[] = {
      "forward", "backward_data", "backward_filter", "fused"};
  std::ostringstream text;
  const auto list = [&](const char* name, const Sizes& sizes) {
    text << ' ' << name << '=';
    for (std::size_t i = 0; i < sizes.size(); ++i) text << (i > 0 ? "," : "") << sizes[i];
  };
  text << kOperations[static_cast<int>(operation)] << " type=" << type;
  list("x", x());
  list("w", w());
  list("pad", pad);
  list("stride", stride);
  list("dilation", dilation);
  text << " groups=" << groups << (channelsLast ? " NHWC" : "") << (flips ? " flipped" : "")
       << " alignment=" << alignment << " alpha=" << alpha << " beta=" << beta
       << (activates ? " RELU" : "") << (clips ? " clipped" : "");
  return text.str();
}

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0 || cudaMalloc(&memory_, bytes) == cudaSuccess) return;
  memory_ = nullptr;
  cudaGetLastError();
}
DeviceMemory::~DeviceMemory() {
  if (memory_ != nullptr) cudaFree(memory_);
}
DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

GraphTensors::GraphTensors(const GraphProblem& problem, bool computes) : problem_(problem) {
  add(kX, problem.x(), computes);
  add(kW, problem.w(), computes);
  add(kY, problem.y(), computes);
  if (problem.operation != GraphOperation::kFused) return;
  add(kBias, problem.bias(), computes);
  if (problem.beta != 0) add(kZ, problem.y(), computes);
}

void GraphTensors::add(std::int64_t id, const GraphProblem::Sizes& sizes, bool computes) {
  const std::size_t count = countOf(sizes), each = problem_.elementBytes();
  Tensor tensor{id, DeviceMemory(count * each), {}};
  if (!tensor.memory.isThere()) throw std::runtime_error("no memory for a tensor");
  if (computes) {
    tensor.initial.resize(count * each);
    Random random(static_cast<std::uint64_t>(id));
    for (std::size_t i = 0; i < count; ++i)
      store(problem_.type,
            static_cast<float>(random.between(-16, 16)) / 16,
            &tensor.initial[i * each]);
    cuda(cudaMemcpy(
        tensor.memory.get(), tensor.initial.data(), tensor.initial.size(), cudaMemcpyHostToDevice));
  }
  tensors_.push_back(std::move(tensor));
}

std::vector<std::int64_t> GraphTensors::ids() const {
  std::vector<std::int64_t> ids;
  for (const Tensor& tensor : tensors_) ids.push_back(tensor.id);
  return ids;
}

std::vector<void*> GraphTensors::pointers() const {
  std::vector<void*> pointers;
  for (const Tensor& tensor : tensors_) pointers.push_back(tensor.memory.get());
  return pointers;
}

const GraphTensors::Tensor& GraphTensors::written() const {
  switch (problem_.operation) {
    case GraphOperation::kBackwardData:
      return tensors_[0];
    case GraphOperation::kBackwardFilter:
      return tensors_[1];
    default:
      return tensors_[2];
  }
}

void GraphTensors::restore() {
  const Tensor& tensor = written();
  if (tensor.initial.empty()) return;
  cuda(cudaMemcpy(
      tensor.memory.get(), tensor.initial.data(), tensor.initial.size(), cudaMemcpyHostToDevice));
}

std::vector<double> GraphTensors::output() const {
  const Tensor& tensor = written();
  std::vector<char> bytes(tensor.initial.size());
  if (bytes.empty()) return {};
  cuda(cudaMemcpy(bytes.data(), tensor.memory.get(), bytes.size(), cudaMemcpyDeviceToHost));
  std::vector<double> values;
  for (std::size_t at = 0; at < bytes.size(); at += problem_.elementBytes())
    values.push_back(load(problem_.type, &bytes[at]));
  return values;
}

bool GraphTensors::inputsAreIntact() const {
  return std::all_of(tensors_.begin(), tensors_.end(), [&](const Tensor& tensor) {
    if (&tensor == &written() || tensor.initial.empty()) return true;
    std::vector<char> bytes(tensor.initial.size());
    cuda(cudaMemcpy(bytes.data(), tensor.memory.get(), bytes.size(), cudaMemcpyDeviceToHost));
    return bytes == tensor.initial;
  });
}

double distanceOf(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0, differences = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    squares += b[i] * b[i];
    differences += (a.at(i) - b[i]) * (a[i] - b[i]);
  }
  return differences == 0 ? 0 : std::sqrt(differences / squares);
}

double toleranceOf(const GraphProblem& problem) {
  // Where sums cancel, one rounding of the type counts as much as some in all of them.
  switch (problem.type) {
    case CUDNN_DATA_DOUBLE:
      return 1e-13;
    case CUDNN_DATA_HALF:
      return 1e-3;
    case CUDNN_DATA_BFLOAT16:
      return 8e-3;
    default:
      return 1e-6;
  }
}

}  // namespace ucudnn::test
