#include "tool/trainer.hpp"

#include <algorithm>

#include "tool/failure.hpp"

namespace ucudnn::tool {
namespace {

// A network settles after as many calls without a newcomer as it has convolutions: in the second
// iteration. One more finds everything as it stays.
constexpr int kSettlingIterations = 3;
// On several streams one arena is watched and several are tried, each for six iterations and those
// that the host was ahead.
constexpr int kTryingIterations = 60;
constexpr int kIterationsBetweenWaits = 6;

std::size_t most(const Network& network, std::size_t (Convolution::*bytes)() const) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < network.size(); ++i)
    most = std::max(most, (network.convolution(i).*bytes)());
  return most;
}

}  // namespace

NetworkData::NetworkData(const Network& network)
    : tensors(most(network, &Convolution::xBytes),
              most(network, &Convolution::wBytes),
              most(network, &Convolution::yBytes),
              network.convolution(0).numerics().dataType) {
  std::array<std::size_t, 3> bytes{};
  for (std::size_t i = 0; i < network.size(); ++i) {
    std::size_t& largest = bytes[network.convolution(i).operation()];
    largest = std::max(largest, network.convolution(i).outputBytes());
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) outputs[i] = DeviceBuffer(bytes[i]);
}

/// A stream with a handle on it.
struct Trainer::Lane {
  /// Null: a stream of its own.
  explicit Lane(cudaStream_t given)
      : own(given == nullptr ? makeStream() : Stream()),
        stream(given == nullptr ? own.get() : given),
        handles(stream) {}

  const Stream own;
  const cudaStream_t stream;
  const Handles handles;
  const Event done = makeEvent();
};

Trainer::Trainer(const Network& network,
                 const NetworkData& data,
                 const BenchOptions& options,
                 const NetworkReport& report,
                 Way way,
                 cudaStream_t stream)
    : network_(network), data_(data), way_(way), streams_(options.streams), stream_(stream) {
  const std::size_t lanes = streams_ == Streams::kOne         ? 1
                            : streams_ == Streams::kOperation ? 3
                                                              : network.size();
  for (std::size_t i = 0; i < lanes; ++i) {
    lanes_.push_back(std::make_shared<Lane>(streams_ == Streams::kOne ? stream : nullptr));
    const UcudnnHandle_t handle = lanes_.back()->handles.ours();
    configure(handle, options);
    check(handle.setTotalWorkspaceSize(way == Way::kReuse ? 0 : report.totalBytes),
          "ucudnnSetTotalWorkspaceSize");
    if (way != Way::kReuse)
      check(handle.setTotalWorkspacePolicy(policyOf(way)), "ucudnnSetTotalWorkspacePolicy");
  }
  if (way != Way::kReuse) return;
  // The workspace is the limit, because no query has named one. On one stream equal parts need not
  // exist at the same time.
  const std::size_t parts = streams_ == Streams::kOne ? 1 : network.size();
  for (std::size_t i = 0; i < parts; ++i) workspaces_.emplace_back(report.eachBytes);
}

std::size_t Trainer::laneOf(std::size_t i) const {
  if (streams_ == Streams::kOperation)
    return static_cast<std::size_t>(network_.convolution(i).operation());
  return streams_ == Streams::kLayer ? i : 0;
}

void Trainer::enqueue(std::size_t i) const {
  Workspace workspace;
  if (!workspaces_.empty()) {
    const DeviceBuffer& own = workspaces_[workspaces_.size() > 1 ? i : 0];
    workspace = {own.get(), own.bytes()};
  }
  run(lanes_[laneOf(i)]->handles.ours(),
      network_.convolution(i),
      data_.tensors,
      0,
      workspace,
      data_.outputs[network_.convolution(i).operation()].get(),
      static_cast<ucudnnLayerId_t>(i));
}

void Trainer::convolve(std::size_t i) const {
  if (streams_ == Streams::kOne) return enqueue(i);
  const Lane& lane = *lanes_[laneOf(i)];
  check(cudaEventRecord(begun_.get(), stream_), "cudaEventRecord");
  check(cudaStreamWaitEvent(lane.stream, begun_.get(), 0), "cudaStreamWaitEvent");
  enqueue(i);
  check(cudaEventRecord(lane.done.get(), lane.stream), "cudaEventRecord");
  check(cudaStreamWaitEvent(stream_, lane.done.get(), 0), "cudaStreamWaitEvent");
}

void Trainer::iterate() const {
  const auto wait = [](cudaStream_t stream, const Event& event) {
    check(cudaStreamWaitEvent(stream, event.get(), 0), "cudaStreamWaitEvent");
  };
  if (streams_ == Streams::kOperation) {
    check(cudaEventRecord(begun_.get(), stream_), "cudaEventRecord");
    for (const auto& lane : lanes_) wait(lane->stream, begun_);
    for (std::size_t i = 0; i < network_.size(); ++i) enqueue(i);
    for (const auto& lane : lanes_) {
      check(cudaEventRecord(lane->done.get(), lane->stream), "cudaEventRecord");
      wait(stream_, lane->done);
    }
    return;
  }
  // Caffe synchronizes its streams with the default stream behind each layer.
  for (std::size_t i = 0; i < network_.size();) {
    std::size_t end = i + 1;
    if (streams_ == Streams::kLayer)
      while (end < network_.size() && network_.isSamePass(i, end)) ++end;
    if (end == i + 1) {
      convolve(i);
    } else {
      check(cudaEventRecord(begun_.get(), stream_), "cudaEventRecord");
      for (std::size_t j = i; j < end; ++j) {
        const Lane& lane = *lanes_[j];
        wait(lane.stream, begun_);
        enqueue(j);
        check(cudaEventRecord(lane.done.get(), lane.stream), "cudaEventRecord");
      }
      for (std::size_t j = i; j < end; ++j) wait(stream_, lanes_[j]->done);
    }
    i = end;
  }
}

/// Caffe asks on one handle what it runs on others. Without a total an answer would set a limit.
void Trainer::ask() const {
  if (way_ == Way::kReuse) return;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < network_.size(); ++i)
    getWorkspaceSize(lanes_.front()->handles.ours(), network_.convolution(i), 0, &bytes);
}

void Trainer::settle() const {
  if (streams_ == Streams::kLayer) ask();
  const int iterations = streams_ == Streams::kOne ? kSettlingIterations : kTryingIterations;
  for (int i = 0; i < iterations; ++i) {
    iterate();
    // The library reads what it observes of streams once that has happened. Waits as rarely as in
    // timed iterations: a host that waits after each is another program, for which other layouts
    // are best.
    if (streams_ != Streams::kOne && (i + 1) % kIterationsBetweenWaits == 0)
      check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
}

}  // namespace ucudnn::tool
