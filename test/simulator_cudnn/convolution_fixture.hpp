// One convolution on the simulated cuDNN with its buffers, for all tests of this folder.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ucudnn::simulator::test {

#define ASSERT_CUDNN(call) ASSERT_EQ(CUDNN_STATUS_SUCCESS, (call))
#define EXPECT_CUDNN(call) EXPECT_EQ(CUDNN_STATUS_SUCCESS, (call))
#define ASSERT_CUDA(call) ASSERT_EQ(cudaSuccess, (call))

enum class Operation { kForward, kBackwardData, kBackwardFilter };
constexpr Operation kOperations[] = {
    Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter};

/// kGapped: every stride larger than packed NCHW needs, the batch stride most of all.
enum class Layout { kNchw, kNhwc, kGapped };

struct ConvolutionCase {
  std::string name = "Plain";
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnDataType_t computeType = CUDNN_DATA_FLOAT;
  Layout layout = Layout::kNchw;
  int batch = 3;
  int channels = 4;
  int filters = 6;
  int groups = 1;
  std::vector<int> input{7, 6};
  std::vector<int> filter{3, 3};
  std::vector<int> pad{1, 1};
  std::vector<int> stride{1, 1};
  std::vector<int> dilation{1, 1};
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnMathType_t math = CUDNN_FMA_MATH;
  double alpha = 1;
  double beta = 0;
};

std::ostream& operator<<(std::ostream& stream, const ConvolutionCase& convolution);

/// AlexNet's conv2: the layer that the cliff was first seen on; recorded at 1, 2, 4 ... 256.
ConvolutionCase alexnetConv2(int batch);

std::size_t bytesOf(cudnnDataType_t type);

/// Dimensions and strides of one tensor, as the test knows them (not as cuDNN reports them).
struct Geometry {
  cudnnDataType_t type;
  std::vector<int> dims;
  std::vector<int> strides;

  std::size_t elements() const;  ///< from the first to the last, gaps included
  std::size_t bytes() const;
};

/// Memory of the simulated device.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* get() const { return pointer_; }
  std::size_t bytes() const { return bytes_; }
  void write(const std::vector<char>& from);
  std::vector<char> read() const;

 private:
  void* pointer_ = nullptr;
  std::size_t bytes_;
};

double toDouble(cudnnDataType_t type, const char* from);
void fromDouble(cudnnDataType_t type, double value, char* to);

/// Small multiples of 1/4: every product and sum of them is exact in any order.
std::vector<char> makeValues(const Geometry& geometry, unsigned seed);

/// The descriptors and buffers of one convolution.
class Convolution {
 public:
  explicit Convolution(const ConvolutionCase& convolution);
  ~Convolution();
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  const ConvolutionCase& parameters() const { return case_; }
  cudnnHandle_t handle() const { return handle_; }
  const Geometry& geometry(Operation operation) const;  ///< of what the operation writes
  DeviceBuffer& output(Operation operation);
  cudnnTensorDescriptor_t xDesc() const { return xDesc_; }
  cudnnTensorDescriptor_t yDesc() const { return yDesc_; }
  cudnnFilterDescriptor_t wDesc() const { return wDesc_; }
  cudnnConvolutionDescriptor_t convDesc() const { return convDesc_; }
  DeviceBuffer& x() const { return buffer(&x_, xGeometry_, 1); }
  DeviceBuffer& w() const { return buffer(&w_, wGeometry_, 2); }
  DeviceBuffer& y() const { return buffer(&y_, yGeometry_, 3); }

  /// Algorithms that GetWorkspaceSize accepts.
  std::vector<int> algorithms(Operation operation) const;
  cudnnStatus_t workspaceSize(Operation operation, int algorithm, std::size_t* bytes) const;

  /// Runs samples [first, first + count) with exactly the workspace that is needed.
  cudnnStatus_t run(Operation operation, int algorithm, int first, int count, double beta);
  cudnnStatus_t run(Operation operation, int algorithm);

  /// The result as the test computes it itself, from the buffers as they are now.
  std::vector<char> expected(Operation operation) const;

 private:
  // Made when first asked for: queries of large problems need none.
  static DeviceBuffer& buffer(std::unique_ptr<DeviceBuffer>* buffer,
                              const Geometry& geometry,
                              unsigned seed);
  void setTensor(cudnnTensorDescriptor_t descriptor, const Geometry& geometry, int batch) const;

  ConvolutionCase case_;
  Geometry xGeometry_;
  Geometry wGeometry_;
  Geometry yGeometry_;
  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t xDesc_ = nullptr;
  cudnnTensorDescriptor_t yDesc_ = nullptr;
  cudnnFilterDescriptor_t wDesc_ = nullptr;
  cudnnConvolutionDescriptor_t convDesc_ = nullptr;
  mutable std::unique_ptr<DeviceBuffer> x_;
  mutable std::unique_ptr<DeviceBuffer> w_;
  mutable std::unique_ptr<DeviceBuffer> y_;
};

/// The cases that every kind of test runs over.
std::vector<ConvolutionCase> convolutionCases();

// A forward convolution whose arguments may be anything; beta is 0.
cudnnStatus_t forward(Convolution& c,
                      const void* alpha,
                      const void* x,
                      int algorithm,
                      void* workspace,
                      std::size_t workspaceBytes,
                      cudnnTensorDescriptor_t yDesc);

}  // namespace ucudnn::simulator::test
