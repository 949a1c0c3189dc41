#include "cuda/movable_memory.hpp"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "cuda/error.hpp"
#include "support/fork.hpp"

// Older runtimes lack it: then nothing is movable.
#pragma weak cudaGetDriverEntryPointByVersion

namespace ucudnn {
namespace {

#if CUDART_VERSION >= 12050
/// The driver's functions. The runtime looks them up, so nothing is linked with the driver.
struct MemoryDriver {
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) setAccess = nullptr;
  bool isComplete = false;

  MemoryDriver() noexcept {
    isComplete = find(granularity, "cuMemGetAllocationGranularity") &&
                 find(reserve, "cuMemAddressReserve") && find(free, "cuMemAddressFree") &&
                 find(create, "cuMemCreate") && find(release, "cuMemRelease") &&
                 find(map, "cuMemMap") && find(unmap, "cuMemUnmap") &&
                 find(setAccess, "cuMemSetAccess");
  }

 private:
  template <typename Function>
  static bool find(Function& function, const char* name) noexcept {
    constexpr unsigned kVersion = 12020;  // the first with host memory
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    if (cudaGetDriverEntryPointByVersion == nullptr ||
        cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result) !=
            cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    function = reinterpret_cast<Function>(found);
    return result == cudaDriverEntryPointSuccess && found != nullptr;
  }
};

const MemoryDriver& memoryDriver() {
  static const MemoryDriver known;
  return known;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const std::string what = std::string(call) + ": error " + std::to_string(result);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemory(what);
  throw Error(CUDNN_STATUS_INTERNAL_ERROR, what);
}

CUmemLocation locationOf(Home home) {
  CUmemLocation location{};
  location.type =
      home == Home::kDevice ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST_NUMA;
  if (home == Home::kDevice) {
    UCUDNN_CHECK_CUDA(cudaGetDevice(&location.id));
    return location;
  }
  int device = 0;
  UCUDNN_CHECK_CUDA(cudaGetDevice(&device));
  UCUDNN_CHECK_CUDA(cudaDeviceGetAttribute(&location.id, cudaDevAttrHostNumaId, device));
  location.id = std::max(0, location.id);  // -1: the system has one node
  return location;
}

CUmemAllocationProp propertiesOf(Home home) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = locationOf(home);
  return properties;
}

std::size_t granularityOf(Home home) {
  std::size_t bytes = 0;
  const CUmemAllocationProp properties = propertiesOf(home);
  check(memoryDriver().granularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        "cuMemGetAllocationGranularity");
  return bytes;
}

/// Both kinds are mapped to the same range.
std::size_t roundUpToBlocks(std::size_t bytes) {
  const std::size_t unit = std::max(granularityOf(Home::kDevice), granularityOf(Home::kHost));
  return (bytes + unit - 1) / unit * unit;
}
#endif

/// All movable blocks of the process.
struct MovableBlocks {
  struct Block {
    std::size_t bytes;
    Home home;
  };
  ForkMutex mutex;
  std::map<std::uintptr_t, Block> byAddress;
  std::atomic<std::size_t> count{0};
};
MovableBlocks& movableBlocks() {
  static auto& all = *new MovableBlocks;
  return all;
}

}  // namespace

#if CUDART_VERSION >= 12050

/// Memory of one kind.
class MovableMemory::Physical {
 public:
  Physical(Home home, std::size_t bytes) {
    const CUmemAllocationProp properties = propertiesOf(home);
    check(memoryDriver().create(&handle_, bytes, &properties, 0), "cuMemCreate");
  }
  ~Physical() { static_cast<void>(memoryDriver().release(handle_)); }
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;

  CUmemGenericAllocationHandle handle() const noexcept { return handle_; }

 private:
  CUmemGenericAllocationHandle handle_ = 0;
};

/// Addresses, and what is mapped to them.
class MovableMemory::Range {
 public:
  explicit Range(std::size_t bytes) : bytes_(bytes) {
    access_[0].location = locationOf(Home::kDevice);
    access_[1].location = locationOf(Home::kHost);
    for (CUmemAccessDesc& each : access_) each.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check(memoryDriver().reserve(&address_, bytes, 0, 0, 0), "cuMemAddressReserve");
  }
  ~Range() {
    unmap();
    static_cast<void>(memoryDriver().free(address_, bytes_));
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  void* get() const noexcept {
    return reinterpret_cast<void*>(address_);  // NOLINT(performance-no-int-to-ptr): the driver's
  }

  /// The host, too, may read and write what is there.
  void map(const Physical& physical, Home home) {
    check(memoryDriver().map(address_, bytes_, 0, physical.handle(), 0), "cuMemMap");
    isMapped_ = true;
    const CUresult result =
        memoryDriver().setAccess(address_, bytes_, access_, home == Home::kHost ? 2 : 1);
    if (result != CUDA_SUCCESS) unmap();
    check(result, "cuMemSetAccess");
  }
  void unmap() noexcept {
    if (isMapped_) static_cast<void>(memoryDriver().unmap(address_, bytes_));
    isMapped_ = false;
  }

 private:
  const std::size_t bytes_;
  CUmemAccessDesc access_[2] = {};
  CUdeviceptr address_ = 0;
  bool isMapped_ = false;
};

bool MovableMemory::isSupported() noexcept {
  try {
    if (!memoryDriver().isComplete) return false;
    const MovableMemory probe(1, Home::kHost);
    return true;
  } catch (const std::exception&) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
}

MovableMemory::MovableMemory(std::size_t bytes, Home home)
    : bytes_(roundUpToBlocks(bytes)), home_(home), range_(std::make_unique<Range>(bytes_)) {
  physical_ = std::make_unique<Physical>(home, bytes_);
  range_->map(*physical_, home);
  MovableBlocks& all = movableBlocks();
  const std::lock_guard lock(all.mutex);
  all.byAddress[reinterpret_cast<std::uintptr_t>(get())] = {bytes_, home};
  all.count.store(all.byAddress.size(), std::memory_order_release);
}

MovableMemory::~MovableMemory() {
  MovableBlocks& all = movableBlocks();
  const std::lock_guard lock(all.mutex);
  all.byAddress.erase(reinterpret_cast<std::uintptr_t>(get()));
  all.count.store(all.byAddress.size(), std::memory_order_release);
}

void* MovableMemory::get() const noexcept {
  return range_->get();
}

void MovableMemory::moveTo(Home home, cudaStream_t stream) {
  if (home == home_) return;
  auto next = std::make_unique<Physical>(home, bytes_);
  {
    Range other(bytes_);
    other.map(*next, home);
    UCUDNN_CHECK_CUDA(cudaMemcpyAsync(other.get(), get(), bytes_, cudaMemcpyDefault, stream));
    UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream));
  }
  range_->unmap();
  try {
    range_->map(*next, home);
  } catch (const std::exception&) {
    range_->map(*physical_, home_);
    throw;
  }
  physical_ = std::move(next);
  home_ = home;
  MovableBlocks& all = movableBlocks();
  const std::lock_guard lock(all.mutex);
  all.byAddress[reinterpret_cast<std::uintptr_t>(get())].home = home;
}

#else  // the driver is not looked up

class MovableMemory::Physical {};
class MovableMemory::Range {};

bool MovableMemory::isSupported() noexcept {
  return false;
}
MovableMemory::MovableMemory(std::size_t bytes, Home home) : bytes_(bytes), home_(home) {
  throw Error(CUDNN_STATUS_NOT_SUPPORTED, "this build has no movable memory");
}
MovableMemory::~MovableMemory() = default;
void* MovableMemory::get() const noexcept {
  return nullptr;
}
void MovableMemory::moveTo(Home, cudaStream_t) {}

#endif

std::optional<Home> homeOf(const void* pointer) {
  MovableBlocks& all = movableBlocks();
  if (all.count.load(std::memory_order_acquire) == 0) return std::nullopt;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::lock_guard lock(all.mutex);
  auto found = all.byAddress.upper_bound(address);
  if (found == all.byAddress.begin()) return std::nullopt;
  --found;
  if (address - found->first >= found->second.bytes) return std::nullopt;
  return found->second.home;
}

}  // namespace ucudnn
