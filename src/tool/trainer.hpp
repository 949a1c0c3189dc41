// Trains a network one way: its handles and streams, its memory, and the order of its calls.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "tool/network.hpp"

namespace ucudnn::tool {

/// The tensors of all convolutions. Each operation has its own output, because backward filter and
/// backward data of a layer may run at the same time.
struct NetworkData {
  explicit NetworkData(const Network& network);

  Tensors tensors;
  std::array<DeviceBuffer, 3> outputs;  ///< by operation
};

/// The streams of `--streams`:
///
///  - one: everything on one stream, by one handle.
///  - operation: a stream and a handle for each operation; between the beginning and the end of an
///    iteration nothing orders the three, so that they overlap.
///  - layer: a stream and a handle for each layer's operation, as Caffe has them, and its order: a
///    layer's forward waits for the one before, its two backward operations for the layer behind.
class Trainer {
 public:
  /// All work begins and ends on `stream`. Throws DeviceError.
  Trainer(const Network& network,
          const NetworkData& data,
          const BenchOptions& options,
          const NetworkReport& report,
          Way way,
          cudaStream_t stream);

  /// Enqueues one convolution. The call names an algorithm that leaves all kernels open: 0 of each
  /// operation.
  void convolve(std::size_t i) const;
  /// Enqueues all of them.
  void iterate() const;
  /// Iterates until plans and layout stay as they are.
  void settle() const;

 private:
  struct Lane;

  std::size_t laneOf(std::size_t i) const;
  void enqueue(std::size_t i) const;
  void ask() const;

  const Network& network_;
  const NetworkData& data_;
  const Way way_;
  const Streams streams_;
  const cudaStream_t stream_;
  std::vector<std::shared_ptr<Lane>> lanes_;
  std::vector<DeviceBuffer> workspaces_;  ///< by convolution, else one for all; none with a total
  Event begun_ = makeEvent();
};

}  // namespace ucudnn::tool
