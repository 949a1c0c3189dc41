// Shared by the whole-library tests: one convolution with its descriptors and buffers, run through
// μ-cuDNN or through plain cuDNN by the same code, and the means to compare, to look and to
// provoke.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <ucudnn/ucudnn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ucudnn::test {

#define ASSERT_CUDNN(call) ASSERT_EQ(CUDNN_STATUS_SUCCESS, (call))
#define EXPECT_CUDNN(call) EXPECT_EQ(CUDNN_STATUS_SUCCESS, (call))
#define ASSERT_CUDA(call) ASSERT_EQ(cudaSuccess, (call))
#define EXPECT_CUDA(call) EXPECT_EQ(cudaSuccess, (call))

constexpr ucudnnOperation_t kOperations[] = {
    UCUDNN_FORWARD, UCUDNN_BACKWARD_DATA, UCUDNN_BACKWARD_FILTER};
const char* toText(ucudnnOperation_t operation);

/// A convolution in numbers.
struct ConvolutionCase {
  std::string name = "plain";
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_FMA_MATH;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  int batch = 7;  ///< no power of two: the policy's micro-batches differ in size
  int channels = 8;
  int filters = 8;
  int groups = 1;
  /// Convolutions that share the tensors by pointer offset, as Caffe's groups do: the batch stride
  /// is that many samples long.
  int parts = 1;
  int batchGap = 0;  ///< elements between the samples of x and y besides
  std::vector<int> input{9, 8};
  std::vector<int> filter{3, 3};
  std::vector<int> pad{1, 1};
  std::vector<int> stride{1, 1};
  std::vector<int> dilation{1, 1};
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;

  /// One word, for a command line.
  std::string serialized() const;
  static ConvolutionCase parse(const std::string& text);
};
std::ostream& operator<<(std::ostream& stream, const ConvolutionCase& convolution);

/// A small convolution that the transforms suit. Tests that change what the process remembers of it
/// (limits, plans) take numbers of channels of their own.
ConvolutionCase fftCase(int channels = 128);
/// The same with so many channels that, on the simulator, FFT is faster than what needs less
/// workspace even when it is split: its Pareto fronts have split configurations.
ConvolutionCase splitFrontCase();
/// Some of its algorithms need hundreds of MiB, and one needs none.
ConvolutionCase largeCase(int channels);

/// How far a split result may be from the undivided one, as normalized L2 distance: sums in another
/// order, and for backward filter the output's rounding between micro-batches.
double tolerance(const ConvolutionCase& convolution);

/// The same where no one algorithm of cuDNN's is there to compare with. On a GPU the algorithms'
/// own errors lie between the two (on an H200 5x5 Winograd 1e-3, TF32 3e-4); on the simulator none
/// do.
double toleranceBetweenAlgorithms();

/// Dimensions and strides of one part of a tensor in a buffer of all parts.
struct Geometry {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int> sizes;
  std::vector<int> strides;
  std::size_t partStride = 0;  ///< elements from one part to the next
  int parts = 1;

  std::size_t bytes() const;  ///< of the buffer
  std::size_t partStrideBytes() const;
};

/// Device memory that is freed with the object.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  char* get() const { return static_cast<char*>(memory_); }
  std::size_t bytes() const { return bytes_; }
  void write(const std::vector<char>& from);
  std::vector<char> read() const;
  void poison();  ///< NaN in every floating-point type

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

/// Numbers between -1 and 1 in every element, gaps included.
std::vector<char> randomValues(const Geometry& geometry, unsigned seed);

/// Every element of a buffer, gaps included.
std::vector<double> toDoubles(cudnnDataType_t type, const std::vector<char>& values);

/// ||a - b|| / ||b|| over the tensor's elements; NaN where one of them is.
double distance(const Geometry& geometry, const std::vector<char>& a, const std::vector<char>& b);

/// An entry of any of the three cudnnConvolution*AlgoPerf_t.
struct Performance {
  int algorithm;
  cudnnStatus_t status;
  float time;
  std::size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
};

enum class Query { kGet, kFind, kFindEx };
constexpr Query kQueries[] = {Query::kGet, Query::kFind, Query::kFindEx};

/// The workspace of a call.
struct Workspace {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

/// The descriptors and buffers of one convolution. `Handle` is UcudnnHandle_t or cudnnHandle_t: the
/// same source is a client of either.
class Convolution {
 public:
  enum class Contents { kRandom, kAny };

  explicit Convolution(const ConvolutionCase& convolution, Contents contents = Contents::kRandom);
  ~Convolution();
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  const ConvolutionCase& parameters() const { return case_; }
  const Geometry& geometry(ucudnnOperation_t operation) const;  ///< of what the operation writes
  DeviceBuffer& output(ucudnnOperation_t operation);
  /// Puts another buffer in the place of what the operation writes; returns the former.
  std::unique_ptr<DeviceBuffer> exchange(ucudnnOperation_t operation,
                                         std::unique_ptr<DeviceBuffer> buffer);
  cudnnTensorDescriptor_t xDesc() const { return descriptors_.x; }
  cudnnTensorDescriptor_t yDesc() const { return descriptors_.y; }
  cudnnFilterDescriptor_t wDesc() const { return descriptors_.w; }
  cudnnConvolutionDescriptor_t convDesc() const { return descriptors_.convolution; }
  DeviceBuffer& x() { return *x_; }
  DeviceBuffer& w() { return *w_; }
  DeviceBuffer& y() { return *y_; }

  /// Random numbers in all three buffers, the same each time.
  void fill();

  /// All parts, one after another in the same workspace.
  template <typename Handle>
  cudnnStatus_t run(Handle handle,
                    ucudnnOperation_t operation,
                    int algorithm,
                    Workspace workspace,
                    double alpha = 1,
                    double beta = 0);

  template <typename Handle>
  cudnnStatus_t workspaceSize(Handle handle,
                              ucudnnOperation_t operation,
                              int algorithm,
                              std::size_t* bytes) const;

  /// Get*Algorithm_v7, Find*Algorithm or Find*AlgorithmEx (with the buffers and `workspace`).
  template <typename Handle>
  cudnnStatus_t query(Handle handle,
                      ucudnnOperation_t operation,
                      Query how,
                      int requested,
                      std::vector<Performance>* results,
                      Workspace workspace = {});

  /// The query that cuDNN 8 removed.
  cudnnStatus_t queryPreferred(UcudnnHandle_t handle,
                               ucudnnOperation_t operation,
                               int preference,
                               std::size_t limitBytes,
                               int* algorithm) const;

  /// ucudnnGetConvolutionPlan. Entries by descending micro-batch.
  cudnnStatus_t plan(UcudnnHandle_t handle,
                     ucudnnOperation_t operation,
                     std::size_t limitBytes,
                     ucudnnPlan_t* plan,
                     std::vector<ucudnnMicroBatches_t>* entries) const;
  cudnnStatus_t front(UcudnnHandle_t handle,
                      ucudnnOperation_t operation,
                      std::vector<ucudnnParetoPoint_t>* points) const;

  /// Plain cuDNN's undivided result with this algorithm, from the buffers and the output's content
  /// as they are. Empty: cuDNN refuses it.
  std::optional<std::vector<char>> undivided(
      cudnnHandle_t native, ucudnnOperation_t operation, int algorithm, double alpha, double beta);

  /// The same from the definition, on the host, with alpha 1 and beta 0.
  std::vector<char> computedOnHost(ucudnnOperation_t operation) const;

  /// The same before it is rounded, for each element of the output's buffer. `magnitudes`: sums of
  /// the products' absolute values, which bound what rounding can do.
  std::vector<double> sumsOnHost(ucudnnOperation_t operation, bool magnitudes = false) const;

 private:
  ConvolutionCase case_;
  Geometry xGeometry_, wGeometry_, yGeometry_;
  /// Destroyed also when the constructor throws.
  struct Descriptors {
    ~Descriptors();
    cudnnTensorDescriptor_t x = nullptr;
    cudnnTensorDescriptor_t y = nullptr;
    cudnnFilterDescriptor_t w = nullptr;
    cudnnConvolutionDescriptor_t convolution = nullptr;
  };
  Descriptors descriptors_;
  std::unique_ptr<DeviceBuffer> x_, w_, y_;
};

int microBatchCount(const std::vector<ucudnnMicroBatches_t>& entries);
/// "3 x 32 FFT/default 1 x 4 ALGO_1/default "
std::string textOf(const std::vector<ucudnnMicroBatches_t>& entries);
/// The algorithm that all entries share; empty where they differ.
std::optional<int> commonAlgorithm(ucudnnOperation_t operation,
                                   const std::vector<ucudnnMicroBatches_t>& entries);

ucudnnStatistics_t statistics();

/// A μ-cuDNN handle and a native one beside it.
struct Handles {
  Handles();
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  UcudnnHandle_t ours;
  cudnnHandle_t native = nullptr;
};

/// Sets environment variables, and sets them back at the end of its scope.
class EnvironmentGuard {
 public:
  explicit EnvironmentGuard(const std::map<std::string, std::string>& variables);
  EnvironmentGuard(const std::string& variable, const std::string& value);
  ~EnvironmentGuard();
  EnvironmentGuard(const EnvironmentGuard&) = delete;
  EnvironmentGuard& operator=(const EnvironmentGuard&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> former_;
};

/// Lines of a text file that contain all of `words`.
std::vector<std::string> linesWith(const std::string& path, const std::vector<std::string>& words);

/// Skips without a device. Leaves the simulator, if it is one, as it was, and checks that it saw no
/// misuse.
class LibraryTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  /// Plans are tested here, not when they are made: each problem is measured when it is first seen.
  EnvironmentGuard atOnce_{"UCUDNN_BENCHMARK_SHARE", "always"};
};

}  // namespace ucudnn::test
