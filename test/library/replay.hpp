// Calls that repeat, for the whole-library tests: what each did, and whether its result is that of
// a call that is not replayed.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {

/// Counters so far. The latter three stay 0 on a GPU.
struct Counts {
  long long replayed = 0, split = 0, graphs = 0, graphBytes = 0;
  std::int64_t captures = 0, launches = 0, convolutions = 0;

  static Counts now();
  Counts operator-(const Counts& before) const;
};

/// A convolution that is called again and again on a handle with its own stream. Each result is
/// compared with that of the same plan on a handle whose calls are not replayed.
class Repeated {
 public:
  using Call = std::function<cudnnStatus_t(UcudnnHandle_t)>;

  explicit Repeated(const ConvolutionCase& parameters);
  ~Repeated();
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  Convolution& convolution() { return convolution_; }
  UcudnnHandle_t handle() const { return handle_; }
  UcudnnHandle_t enqueuing() const { return enqueuing_; }  ///< its calls are not replayed
  cudaStream_t stream() const { return stream_; }
  /// The workspace of all calls from now on.
  Workspace& workspace() { return workspace_; }

  /// From now on on a GPU too: only deterministic kernels run.
  void demandSameBits();

  /// Makes the call, compares its result, and says what it did.
  Counts call(ucudnnOperation_t operation, double alpha = 1, double beta = 0);
  /// The same of any call that writes the operation's output. `reads`: its content before matters.
  Counts call(ucudnnOperation_t operation, bool reads, const Call& call);
  /// The call alone: nothing is waited for.
  cudnnStatus_t enqueue(ucudnnOperation_t operation, double alpha = 1, double beta = 0);

 private:
  std::vector<char> result(UcudnnHandle_t handle,
                           ucudnnOperation_t operation,
                           bool reads,
                           const Call& call);

  Convolution convolution_;
  bool sameBits_;
  DeviceBuffer memory_;
  Workspace workspace_;
  UcudnnHandle_t handle_, enqueuing_;
  cudaStream_t stream_ = nullptr;
};

/// Plans of `replayCase` and its mirror image are divided, in every test.
ConvolutionCase replayCase();
ConvolutionCase mirroredCase();

/// The first call is enqueued, the others are one launch each.
void expectReplayedFromTheSecondOn(Repeated& calls, ucudnnOperation_t operation, double beta);

/// Calls that nothing repeats give what one undivided call of cuDNN's gives, for each alpha and
/// beta.
void expectRightWhateverTheFactors(const Handles& handles,
                                   Convolution& convolution,
                                   ucudnnOperation_t operation,
                                   const DeviceBuffer& workspace);

class ReplayFixture : public LibraryTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string database() const { return forced_->database(); }

  explicit ReplayFixture(std::vector<ConvolutionCase> cases = {replayCase(), mirroredCase()})
      : cases_(std::move(cases)) {}

 private:
  const std::vector<ConvolutionCase> cases_;
  std::unique_ptr<ForcedSplits> forced_;
};

}  // namespace ucudnn::test
