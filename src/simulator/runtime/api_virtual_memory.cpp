// The driver's virtual memory management, which programs look up through the runtime.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "simulator/runtime/accounting.hpp"
#include "simulator/runtime/api.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/memory.hpp"
#include "simulator/runtime/thread_state.hpp"

using namespace ucudnn::simulator;

namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

/// Memory that is not mapped by itself. The machine's is a file, so that it keeps its contents.
struct Physical {
  int file = -1;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  bool isReleased = false;
  int mappings = 0;
};

/// Reserved addresses.
struct AddressRange {
  std::size_t bytes = 0;
  CUmemGenericAllocationHandle mapped = 0;
  bool hasAccess = false;
};

struct VirtualMemory {
  std::mutex mutex;
  std::map<CUmemGenericAllocationHandle, Physical> physicals;
  std::map<CUdeviceptr, AddressRange> ranges;
  CUmemGenericAllocationHandle last = 0;

  static VirtualMemory& instance() {
    static auto* const all = new VirtualMemory;
    return *all;
  }

  /// Frees what is released and mapped nowhere.
  void drop(std::map<CUmemGenericAllocationHandle, Physical>::iterator found) {
    const Physical& physical = found->second;
    if (!physical.isReleased || physical.mappings > 0) return;
    close(physical.file);
    if (physical.kind == MemoryKind::kDevice)
      Memory::instance().unreserve(physical.device, physical.bytes);
    physicals.erase(found);
  }
};

char* address(CUdeviceptr pointer) {
  return reinterpret_cast<char*>(pointer);
}

/// Counts the call, which may be chosen to fail.
CUresult enterDriver(const char* function, CUresult failure = CUDA_ERROR_UNKNOWN) {
  return enter(function) == cudaSuccess ? CUDA_SUCCESS : failure;
}

/// Of functions that give something back: those do so even then.
template <typename Destroy>
CUresult destroyingDriver(const char* function, Destroy destroy) {
  const CUresult injected = enterDriver(function);
  const CUresult result = destroy();
  return injected != CUDA_SUCCESS ? injected : result;
}

bool isWhole(std::size_t bytes) {
  return bytes > 0 && bytes % kGranularity == 0;
}

CUresult CUDAAPI getGranularity(std::size_t* bytes,
                                const CUmemAllocationProp* properties,
                                CUmemAllocationGranularity_flags) {
  if (const CUresult failure = enterDriver("cuMemGetAllocationGranularity")) return failure;
  if (bytes == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI reserveAddress(
    CUdeviceptr* pointer, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
  if (const CUresult failure = enterDriver("cuMemAddressReserve", CUDA_ERROR_OUT_OF_MEMORY))
    return failure;
  if (pointer == nullptr || !isWhole(bytes)) return CUDA_ERROR_INVALID_VALUE;
  void* const range =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = reinterpret_cast<CUdeviceptr>(range);
  VirtualMemory& all = VirtualMemory::instance();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.ranges[*pointer].bytes = bytes;
  countHandle("address range", 1);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI freeAddress(CUdeviceptr pointer, std::size_t bytes) {
  return destroyingDriver("cuMemAddressFree", [&] {
    VirtualMemory& all = VirtualMemory::instance();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.ranges.find(pointer);
    if (found == all.ranges.end() || found->second.bytes != bytes || found->second.mapped != 0)
      return CUDA_ERROR_INVALID_VALUE;
    all.ranges.erase(found);
    munmap(address(pointer), bytes);
    countHandle("address range", -1);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI create(CUmemGenericAllocationHandle* handle,
                        std::size_t bytes,
                        const CUmemAllocationProp* properties,
                        unsigned long long) {
  if (const CUresult failure = enterDriver("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY)) return failure;
  if (handle == nullptr || properties == nullptr || !isWhole(bytes) ||
      properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  Physical physical;
  physical.bytes = bytes;
  physical.device = thisThread().device;
  if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    physical.device = properties->location.id;
  else if (properties->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
    physical.kind = MemoryKind::kHost;
  else
    return CUDA_ERROR_INVALID_VALUE;
  const bool isOnDevice = physical.kind == MemoryKind::kDevice;
  if (isOnDevice && !Memory::instance().reserve(physical.device, bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  physical.file = memfd_create("simulated memory", MFD_CLOEXEC);
  if (physical.file < 0 || ftruncate(physical.file, static_cast<off_t>(bytes)) != 0) {
    if (physical.file >= 0) close(physical.file);
    if (isOnDevice) Memory::instance().unreserve(physical.device, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  VirtualMemory& all = VirtualMemory::instance();
  const std::lock_guard<std::mutex> lock(all.mutex);
  *handle = ++all.last;
  all.physicals[*handle] = physical;
  countHandle("physical memory", 1);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI release(CUmemGenericAllocationHandle handle) {
  return destroyingDriver("cuMemRelease", [&] {
    VirtualMemory& all = VirtualMemory::instance();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.physicals.find(handle);
    if (found == all.physicals.end() || found->second.isReleased) return CUDA_ERROR_INVALID_VALUE;
    found->second.isReleased = true;
    countHandle("physical memory", -1);
    all.drop(found);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI mapMemory(CUdeviceptr pointer,
                           std::size_t bytes,
                           std::size_t offset,
                           CUmemGenericAllocationHandle handle,
                           unsigned long long) {
  if (const CUresult failure = enterDriver("cuMemMap")) return failure;
  VirtualMemory& all = VirtualMemory::instance();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto range = all.ranges.find(pointer);
  const auto physical = all.physicals.find(handle);
  if (range == all.ranges.end() || physical == all.physicals.end() || offset != 0 ||
      range->second.bytes != bytes || physical->second.bytes != bytes || range->second.mapped != 0)
    return CUDA_ERROR_INVALID_VALUE;
  range->second.mapped = handle;
  range->second.hasAccess = false;
  ++physical->second.mappings;
  return CUDA_SUCCESS;
}

// Nothing may use it before.
CUresult CUDAAPI setAccess(CUdeviceptr pointer,
                           std::size_t bytes,
                           const CUmemAccessDesc* access,
                           std::size_t count) {
  if (const CUresult failure = enterDriver("cuMemSetAccess")) return failure;
  VirtualMemory& all = VirtualMemory::instance();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto range = all.ranges.find(pointer);
  if (range == all.ranges.end() || range->second.bytes != bytes || range->second.mapped == 0 ||
      access == nullptr || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const Physical& physical = all.physicals.at(range->second.mapped);
  const int protection = PROT_READ | PROT_WRITE;
  if (mmap(address(pointer), bytes, protection, MAP_SHARED | MAP_FIXED, physical.file, 0) ==
          MAP_FAILED ||
      !Memory::instance().map(address(pointer), bytes, physical.kind, physical.device))
    return CUDA_ERROR_OUT_OF_MEMORY;
  range->second.hasAccess = true;
  return CUDA_SUCCESS;
}

// Not ordered behind works: what still uses it has a fault.
CUresult CUDAAPI unmapMemory(CUdeviceptr pointer, std::size_t bytes) {
  return destroyingDriver("cuMemUnmap", [&] {
    VirtualMemory& all = VirtualMemory::instance();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto range = all.ranges.find(pointer);
    if (range == all.ranges.end() || range->second.bytes != bytes || range->second.mapped == 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (range->second.hasAccess) Memory::instance().unmap(address(pointer));
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    static_cast<void>(mmap(address(pointer), bytes, PROT_NONE, flags, -1, 0));
    const auto physical = all.physicals.find(range->second.mapped);
    range->second.mapped = 0;
    --physical->second.mappings;
    all.drop(physical);
    return CUDA_SUCCESS;
  });
}

struct Entry {
  const char* name;
  void* function;
};
template <typename Function>
Entry entry(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

}  // namespace

#if CUDART_VERSION >= 12050
extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol,
                                                        void** function,
                                                        unsigned int,
                                                        unsigned long long,
                                                        cudaDriverEntryPointQueryResult* status) {
  UCUDNN_SIMULATED_CALL();
  static const Entry entries[] = {entry("cuMemGetAllocationGranularity", getGranularity),
                                  entry("cuMemAddressReserve", reserveAddress),
                                  entry("cuMemAddressFree", freeAddress),
                                  entry("cuMemCreate", create),
                                  entry("cuMemRelease", release),
                                  entry("cuMemMap", mapMemory),
                                  entry("cuMemUnmap", unmapMemory),
                                  entry("cuMemSetAccess", setAccess)};
  if (symbol == nullptr || function == nullptr) return finish(cudaErrorInvalidValue);
  *function = nullptr;
  for (const Entry& each : entries)
    if (std::strcmp(each.name, symbol) == 0) *function = each.function;
  if (status != nullptr)
    *status =
        *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
#endif
