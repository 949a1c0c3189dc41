// The exchange of gradients between processes of this host.
#pragma once

#include <cudnn.h>
#include <pthread.h>

#include <cstddef>
#include <memory>
#include <string>

namespace ucudnn::tool {

/// Memory that processes share. It is made before they are forked, and freed in each at its end.
class RankMemory {
 public:
  /// `bytes`: the gradients of each rank.
  RankMemory(int ranks, std::size_t bytes);
  ~RankMemory();
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;

  int ranks() const noexcept { return ranks_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// A rank's gradients.
  void* slot(int rank) const noexcept;
  /// 128 bytes, by which NCCL's ranks find each other.
  void* id() const noexcept { return memory_; }
  /// Waits until all ranks have come here.
  void meet() const noexcept;

 private:
  pthread_barrier_t* barrier() const noexcept;

  int ranks_;
  std::size_t bytes_, slotBytes_, length_;
  char* memory_;
};

/// Adds up a buffer over all ranks, in place. Each rank makes one, and they call it in turn.
class GradientSum {
 public:
  virtual ~GradientSum() = default;
  /// Enqueues it on the stream, or waits for the stream. REQUIRES: a buffer of RankMemory::bytes.
  virtual void add(void* gradients, cudaStream_t stream) = 0;
  /// "NCCL 2.27.3" or "host memory".
  virtual std::string name() const = 0;
};

/// Uses NCCL if libnccl.so.2 is found, else the host. All ranks make one at the same time, because
/// those with NCCL wait for each other. Throws DeviceError; BadInput for types that the host
/// doesn't add.
std::unique_ptr<GradientSum> makeGradientSum(const RankMemory& memory,
                                             int rank,
                                             cudnnDataType_t type);

}  // namespace ucudnn::tool
