#include "tool/kernels_ahead.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "kernels/source.hpp"
#include "tool/device.hpp"
#include "tool/offered_kernels.hpp"

namespace ucudnn::tool {
namespace {

constexpr std::size_t kMostThreads = 8;

std::vector<KernelAhead> buildAll(int device, cudnnHandle_t handle, const Problem& problem) {
  check(cudaSetDevice(device), "cudaSetDevice");
  PreparedKernels prepared(handle, problem);
  std::vector<KernelAhead> all;
  for (const KernelOffer& offer : allKernels(handle, problem)) {
    all.push_back({std::make_shared<const KernelOffer>(offer), nullptr});
    try {
      all.back().built = prepared.build(problem.batch(), offer.kernel, offer.calls);
    } catch (const Error&) {  // the caller counts those that are not built
    }
  }
  return all;
}

}  // namespace

KernelsAhead::KernelsAhead(std::vector<Problem> problems) : problems_(std::move(problems)) {
  check(cudaGetDevice(&device_), "cudaGetDevice");
  const std::size_t threads =
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  try {
    while (handles_.size() < std::min(threads, problems_.size())) {
      cudnnHandle_t handle = nullptr;
      check(cudnnCreate(&handle), "cudnnCreate");
      handles_.push_back(handle);
      begin();
    }
  } catch (...) {
    ahead_.clear();  // waits
    for (cudnnHandle_t handle : handles_) cudnnDestroy(handle);
    throw;
  }
}

KernelsAhead::~KernelsAhead() {
  ahead_.clear();
  for (cudnnHandle_t handle : handles_) cudnnDestroy(handle);
}

void KernelsAhead::begin() {
  ahead_.push_back(std::async(std::launch::async,
                              buildAll,
                              device_,
                              handles_[begun_ % handles_.size()],
                              problems_[begun_]));
  ++begun_;
}

std::vector<KernelAhead> KernelsAhead::next() {
  auto first = std::move(ahead_.front());
  ahead_.pop_front();
  first.wait();  // its handle is free now
  if (begun_ < problems_.size()) begin();
  return first.get();
}

}  // namespace ucudnn::tool
