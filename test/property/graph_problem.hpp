// A convolution of the graph API in numbers, its tensors, and its graph by either of the two APIs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cudnn_api.hpp"
#include "random.hpp"

namespace ucudnn::test {

enum class GraphOperation { kForward, kBackwardData, kBackwardFilter, kFused };

struct GraphProblem {
  using Sizes = std::vector<std::int64_t>;

  GraphOperation operation = GraphOperation::kForward;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t batch = 1, channels = 1, filters = 1, groups = 1;
  Sizes image, filter, pad, stride, dilation;
  bool channelsLast = false;
  bool flips = false;           ///< CUDNN_CONVOLUTION
  std::int64_t alignment = 16;  ///< as the tensors say
  double alpha = 1, beta = 0;   ///< of the fused one: beta is z's factor, 0: no z
  bool activates = false;       ///< of the fused one: RELU
  bool clips = false;           ///< its upper clip is the type's largest, as cudnn-frontend sets it

  Sizes x() const;
  Sizes w() const;
  Sizes y() const;
  Sizes bias() const;
  Sizes strides(const Sizes& sizes) const;
  std::size_t elementBytes() const;
  /// Multiplications.
  double work() const;
  std::string text() const;
};

/// `small`: so that a CPU computes it within a millisecond.
GraphProblem randomGraphProblem(Random& random, bool small);

/// Device memory; null where there is none.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;

  void* get() const { return memory_; }
  std::size_t bytes() const { return bytes_; }
  /// Whether all that was asked for is there.
  bool isThere() const { return bytes_ == 0 || memory_ != nullptr; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The tensors that a problem reads and writes. Throws if there is no memory.
class GraphTensors {
 public:
  GraphTensors(const GraphProblem& problem, bool computes);

  /// By id.
  static constexpr std::int64_t kX = 11, kW = 22, kY = 33, kBias = 44, kZ = 55, kVirtual = 66;
  std::vector<std::int64_t> ids() const;
  std::vector<void*> pointers() const;

  /// Puts the output back as it was. Does nothing where nothing is computed.
  void restore();
  /// The output's elements; none where nothing is computed.
  std::vector<double> output() const;
  /// Whether the inputs are as they were.
  bool inputsAreIntact() const;

 private:
  struct Tensor {
    std::int64_t id;
    DeviceMemory memory;
    std::vector<char> initial;
  };
  void add(std::int64_t id, const GraphProblem::Sizes& sizes, bool computes);
  const Tensor& written() const;

  GraphProblem problem_;
  std::vector<Tensor> tensors_;
};

/// The finalized graph.
Descriptor makeGraph(const Api& api, cudnnHandle_t handle, const GraphProblem& problem);

/// ||a - b|| / ||b||; NaN where one of them is.
double distanceOf(const std::vector<double>& a, const std::vector<double>& b);
/// How far two kernels' results may be from each other.
double toleranceOf(const GraphProblem& problem);

}  // namespace ucudnn::test
