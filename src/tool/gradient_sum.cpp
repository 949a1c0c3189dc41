#include "tool/gradient_sum.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "support/alignment.hpp"
#include "tool/device.hpp"
#include "tool/device_data.hpp"
#include "tool/failure.hpp"
#include "tool/simulator_control.hpp"

namespace ucudnn::tool {
namespace {

constexpr std::size_t kIdBytes = 128;  // NCCL_UNIQUE_ID_BYTES
constexpr std::size_t kHeadBytes = 4096;

/// NCCL's functions as nccl.h declares them: it is looked up, so that nobody needs it to build.
class Nccl {
 public:
  struct Id {
    char bytes[kIdBytes];
  };
  using Communicator = struct NcclCommunicator*;

  /// Null: there is none, or one that lacks a function.
  static std::unique_ptr<Nccl> load() {
    void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto nccl = std::make_unique<Nccl>();
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    const bool isWhole =
        find(nccl->getVersion, "ncclGetVersion") && find(nccl->getUniqueId, "ncclGetUniqueId") &&
        find(nccl->initRank, "ncclCommInitRank") && find(nccl->allReduce, "ncclAllReduce") &&
        find(nccl->destroy, "ncclCommDestroy") && find(nccl->errorString, "ncclGetErrorString");
    return isWhole ? std::move(nccl) : nullptr;
  }

  void check(int status, const char* call) const {
    if (status != 0) throw DeviceError(fmt::format("{}: {}", call, errorString(status)));
  }

  int (*getVersion)(int*) = nullptr;
  int (*getUniqueId)(Id*) = nullptr;
  int (*initRank)(Communicator*, int, Id, int) = nullptr;
  int (*allReduce)(const void*, void*, std::size_t, int, int, Communicator, cudaStream_t) = nullptr;
  int (*destroy)(Communicator) = nullptr;
  const char* (*errorString)(int) = nullptr;
};

/// ncclDataType_t.
int ncclType(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return 6;
    case CUDNN_DATA_DOUBLE:
      return 8;
    case CUDNN_DATA_BFLOAT16:
      return 9;
    default:
      return 7;
  }
}

class NcclSum : public GradientSum {
 public:
  NcclSum(std::unique_ptr<Nccl> nccl, const RankMemory& memory, int rank, cudnnDataType_t type)
      : nccl_(std::move(nccl)), count_(memory.bytes() / elementBytes(type)), type_(ncclType(type)) {
    auto& id = *static_cast<Nccl::Id*>(memory.id());
    if (rank == 0) nccl_->check(nccl_->getUniqueId(&id), "ncclGetUniqueId");
    memory.meet();
    nccl_->check(nccl_->initRank(&communicator_, memory.ranks(), id, rank), "ncclCommInitRank");
  }
  ~NcclSum() override { static_cast<void>(nccl_->destroy(communicator_)); }

  void add(void* gradients, cudaStream_t stream) override {
    constexpr int kSum = 0;
    // On the stream of a partial device NCCL's kernels would have its multiprocessors alone.
    check(cudaEventRecord(before_.get(), stream), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream_.get(), before_.get(), 0), "cudaStreamWaitEvent");
    nccl_->check(
        nccl_->allReduce(gradients, gradients, count_, type_, kSum, communicator_, stream_.get()),
        "ncclAllReduce");
    check(cudaEventRecord(behind_.get(), stream_.get()), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream, behind_.get(), 0), "cudaStreamWaitEvent");
  }

  std::string name() const override {
    int version = 0;
    nccl_->check(nccl_->getVersion(&version), "ncclGetVersion");
    return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }

 private:
  std::unique_ptr<Nccl> nccl_;
  Nccl::Communicator communicator_ = nullptr;
  std::size_t count_;
  int type_;
  Stream stream_ = makeStream();
  Event before_ = makeEvent(), behind_ = makeEvent();
};

class HostSum : public GradientSum {
 public:
  HostSum(const RankMemory& memory, int rank, cudnnDataType_t type)
      : memory_(memory), rank_(rank), isDouble_(type == CUDNN_DATA_DOUBLE), sum_(memory.bytes()) {
    if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE)
      throw BadInput("--data-type: without NCCL (libnccl.so.2) only float and double are added up");
  }

  void add(void* gradients, cudaStream_t stream) override {
    const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
      check(cudaMemcpyAsync(to, from, memory_.bytes(), kind, stream), "cudaMemcpyAsync");
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    };
    copy(memory_.slot(rank_), gradients, cudaMemcpyDeviceToHost);
    memory_.meet();
    isDouble_ ? addUp<double>() : addUp<float>();
    memory_.meet();
    copy(gradients, sum_.data(), cudaMemcpyHostToDevice);
  }

  std::string name() const override { return "host memory"; }

 private:
  template <typename Number>
  void addUp() {
    auto* const sum = reinterpret_cast<Number*>(sum_.data());
    const std::size_t count = sum_.size() / sizeof(Number);
    std::fill(sum, sum + count, Number{0});
    for (int rank = 0; rank < memory_.ranks(); ++rank) {
      const auto* const addend = static_cast<const Number*>(memory_.slot(rank));
      for (std::size_t i = 0; i < count; ++i) sum[i] += addend[i];
    }
  }

  const RankMemory& memory_;
  int rank_;
  bool isDouble_;
  std::vector<char> sum_;
};

}  // namespace

RankMemory::RankMemory(int ranks, std::size_t bytes)
    : ranks_(ranks),
      bytes_(bytes),
      slotBytes_(roundUpToAlignment(bytes)),
      length_(kHeadBytes + slotBytes_ * static_cast<std::size_t>(ranks)) {
  void* const memory =
      mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw DeviceError(
        fmt::format("no memory for the devices' gradients: {}", std::strerror(errno)));
  memory_ = static_cast<char*>(memory);
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(barrier(), &shared, static_cast<unsigned>(ranks));
  pthread_barrierattr_destroy(&shared);
}

RankMemory::~RankMemory() {
  munmap(memory_, length_);  // a rank that was killed may be in the barrier: it is not destroyed
}

void* RankMemory::slot(int rank) const noexcept {
  return memory_ + kHeadBytes + slotBytes_ * static_cast<std::size_t>(rank);
}

void RankMemory::meet() const noexcept {
  pthread_barrier_wait(barrier());
}

pthread_barrier_t* RankMemory::barrier() const noexcept {
  return reinterpret_cast<pthread_barrier_t*>(memory_ + kHeadBytes / 2);
}

std::unique_ptr<GradientSum> makeGradientSum(const RankMemory& memory,
                                             int rank,
                                             cudnnDataType_t type) {
  auto nccl = onSimulator() ? nullptr : Nccl::load();
  if (nccl) return std::make_unique<NcclSum>(std::move(nccl), memory, rank, type);
  return std::make_unique<HostSum>(memory, rank, type);
}

}  // namespace ucudnn::tool
