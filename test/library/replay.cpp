#include "replay.hpp"

#include "../support/simulator.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kWorkspace = std::size_t{4} << 20;  // more than any of the plans wants

}  // namespace

Counts Counts::now() {
  const ucudnnStatistics_t known = statistics();
  Counts counts;
  counts.replayed = known.replayedCalls;
  counts.split = known.splitCalls;
  counts.graphs = known.graphs;
  counts.graphBytes = known.graphBytes;
  counts.captures = callCount("cudaStreamBeginCapture");
  counts.launches = callCount("cudaGraphLaunch");
  for (const char* name : {"cudnnConvolutionForward",
                           "cudnnConvolutionBackwardData",
                           "cudnnConvolutionBackwardFilter",
                           "cudnnConvolutionBiasActivationForward"})
    counts.convolutions += callCount(name);
  return counts;
}

Counts Counts::operator-(const Counts& before) const {
  Counts difference = *this;
  difference.replayed -= before.replayed;
  difference.split -= before.split;
  difference.graphs -= before.graphs;
  difference.graphBytes -= before.graphBytes;
  difference.captures -= before.captures;
  difference.launches -= before.launches;
  difference.convolutions -= before.convolutions;
  return difference;
}

Repeated::Repeated(const ConvolutionCase& parameters)
    : convolution_(parameters),
      sameBits_(onSimulator()),
      memory_(kWorkspace),
      workspace_{memory_.get(), memory_.bytes()} {
  EXPECT_CUDNN(cudnnCreate(&handle_));
  EXPECT_CUDNN(cudnnCreate(&enqueuing_));
  EXPECT_CUDNN(ucudnnSetGraphMemory(enqueuing_, 0));
  EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  EXPECT_CUDNN(cudnnSetStream(handle_, stream_));
}

Repeated::~Repeated() {
  EXPECT_CUDNN(cudnnDestroy(handle_));
  EXPECT_CUDNN(cudnnDestroy(enqueuing_));
  EXPECT_CUDA(cudaStreamDestroy(stream_));
}

void Repeated::demandSameBits() {
  for (const UcudnnHandle_t& handle : {handle_, enqueuing_})
    EXPECT_CUDNN(ucudnnSetDeterministic(handle, 1));
  sameBits_ = true;
}

cudnnStatus_t Repeated::enqueue(ucudnnOperation_t operation, double alpha, double beta) {
  return convolution_.run(handle_, operation, 0, workspace_, alpha, beta);
}

Counts Repeated::call(ucudnnOperation_t operation, double alpha, double beta) {
  return call(operation, beta != 0, [&](UcudnnHandle_t handle) {
    return convolution_.run(handle, operation, 0, workspace_, alpha, beta);
  });
}

/// An output that is not read is NaN before the call.
std::vector<char> Repeated::result(UcudnnHandle_t handle,
                                   ucudnnOperation_t operation,
                                   bool reads,
                                   const Call& call) {
  DeviceBuffer& output = convolution_.output(operation);
  if (reads)
    output.write(randomValues(convolution_.geometry(operation), 77));
  else
    output.poison();
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDNN(call(handle));
  return output.read();
}

void expectReplayedFromTheSecondOn(Repeated& calls, ucudnnOperation_t operation, double beta) {
  EXPECT_EQ(0, calls.call(operation, 1, beta).replayed);
  EXPECT_EQ(1, calls.call(operation, 1, beta).replayed);
  const Counts later = calls.call(operation, 1, beta);
  EXPECT_EQ(1, later.replayed);
  EXPECT_EQ(1, later.split);
  EXPECT_EQ(0, later.convolutions);
}

Counts Repeated::call(ucudnnOperation_t operation, bool reads, const Call& call) {
  const std::vector<char> before = convolution_.output(operation).read();
  const std::vector<char> expected = result(enqueuing_, operation, reads, call);
  const Counts start = Counts::now();
  const std::vector<char> own = result(handle_, operation, reads, call);
  const Counts did = Counts::now() - start;
  convolution_.output(operation).write(before);  // it may be another operation's operand
  EXPECT_LE(distance(convolution_.geometry(operation), own, expected),
            tolerance(convolution_.parameters()))
      << toText(operation);
  if (sameBits_) {
    EXPECT_TRUE(own == expected) << toText(operation) << " is not bit-equal";
  }
  return did;
}

ConvolutionCase replayCase() {
  ConvolutionCase result;
  result.name = "Float";
  return result;
}

ConvolutionCase mirroredCase() {
  ConvolutionCase result = replayCase();
  result.name = "Mirrored";
  result.mode = CUDNN_CONVOLUTION;
  return result;
}

void ReplayFixture::SetUp() {
  LibraryTest::SetUp();
  if (!IsSkipped() && !cases_.empty()) forced_ = std::make_unique<ForcedSplits>(cases_);
}

void ReplayFixture::TearDown() {
  forced_.reset();
  const ucudnnStatistics_t now = statistics();
  EXPECT_EQ(0, now.graphs) << "kept beyond the last handle";
  EXPECT_EQ(0, now.graphBytes);
  EXPECT_EQ(0, liveHandles("graph") + liveHandles("graphExec"));
  EXPECT_EQ(0, liveHandles("stream"));
  LibraryTest::TearDown();
}

void expectRightWhateverTheFactors(const Handles& handles,
                                   Convolution& convolution,
                                   ucudnnOperation_t operation,
                                   const DeviceBuffer& workspace) {
  for (const double alpha : {1.0, 1.5})
    for (const double beta : {0.0, 1.0, 0.5}) {
      convolution.fill();
      if (beta == 0) convolution.output(operation).poison();
      auto expected = convolution.undivided(handles.native, operation, 0, alpha, beta);
      // Not every cuDNN has backward filter's ALGO_0 for five dimensions.
      if (!expected) expected = convolution.undivided(handles.native, operation, 1, alpha, beta);
      ASSERT_TRUE(expected);
      ASSERT_CUDNN(convolution.run(
          handles.ours, operation, 0, {workspace.get(), workspace.bytes()}, alpha, beta));
      EXPECT_LE(
          distance(
              convolution.geometry(operation), convolution.output(operation).read(), *expected),
          tolerance(convolution.parameters()))
          << "alpha " << alpha << ", beta " << beta;
    }
}

}  // namespace ucudnn::test
