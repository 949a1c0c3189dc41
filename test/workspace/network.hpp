// A small network that trains in a workspace that μ-cuDNN owns.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "../library/child.hpp"
#include "../library/fixture.hpp"
#include "../support/simulator.hpp"
#include "../support/temporary_directory.hpp"

namespace ucudnn::test {

/// The policies that this build has.
std::vector<ucudnnTotalWorkspacePolicy_t> policies();
const char* toText(ucudnnTotalWorkspacePolicy_t policy);

/// A convolution whose operations read x, w and y and write elsewhere: they can be repeated in any
/// order.
class Layer {
 public:
  Layer(const ConvolutionCase& parameters, ucudnnLayerId_t id);

  Convolution& convolution() { return convolution_; }

  /// As a client calls it that names an algorithm which leaves the choice open.
  cudnnStatus_t run(UcudnnHandle_t handle,
                    ucudnnOperation_t operation,
                    double beta = 0,
                    Workspace workspace = {});
  DeviceBuffer& output(ucudnnOperation_t operation) { return *outputs_[operation]; }

  /// Checks an output against plain cuDNN's, undivided, with `beta` and the output's first content.
  void expectRight(cudnnHandle_t native, ucudnnOperation_t operation, double beta = 0);
  /// The outputs' first content: random numbers, or NaN for a beta of 0.
  void prepare(double beta);

 private:
  Convolution convolution_;
  ucudnnLayerId_t id_;
  std::array<std::unique_ptr<DeviceBuffer>, 3> outputs_;
  std::array<std::vector<char>, 3> first_;
};

/// The kinds of layer: each has other channels. Measured once, so that plans are split and want
/// workspace.
ConvolutionCase layerCase(int kind);

/// Layers, run forward and then back.
class Network {
 public:
  enum class Ids { kNone, kOwn };
  /// One layer for each of `kinds`.
  explicit Network(const std::vector<int>& kinds, Ids ids = Ids::kNone);

  Layer& layer(std::size_t i) { return *layers_[i]; }
  std::size_t size() const { return layers_.size(); }

  void prepare(double beta = 0);
  /// Enqueues all operations of all layers.
  void iterate(UcudnnHandle_t handle, double beta = 0);
  void expectRight(cudnnHandle_t native, double beta = 0);

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

/// Makes handles whose convolutions share a total, and looks at what becomes of it.
class TotalWorkspaceTest : public LibraryTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// The workspace that every convolution would like to have, at most.
  std::size_t wantedBytes(int kind);
  /// Settings of new handles, for the rest of the test.
  void setTotal(std::size_t bytes, ucudnnTotalWorkspacePolicy_t policy);
  /// Lines of the log, at level info, since the test began.
  std::vector<std::string> logged(const std::vector<std::string>& words) const;
  /// How often the network has been laid out, and how often so: "one arena", "2 arenas", "divide".
  std::size_t layouts(const std::string& how = "") const;

  static constexpr int kKinds = 4;

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<EnvironmentGuard> environment_;
  static std::unique_ptr<ForcedSplits> forced_;
};

/// A stream with a handle on it.
class StreamHandle {
 public:
  StreamHandle();
  ~StreamHandle();
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;

  UcudnnHandle_t handle() const { return handle_; }
  cudaStream_t stream() const { return stream_; }

 private:
  UcudnnHandle_t handle_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace ucudnn::test
