#include "context/shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "context/registry.hpp"
#include "cuda/call_stream.hpp"
#include "planner/network_shares.hpp"

namespace ucudnn {
namespace {

/// The convolutions that the handle was asked about. A program may ask for several batch sizes of
/// one layer: the most frequent one tells how many layers there are.
std::vector<AskedConvolution> networkOf(const StatedLimits& limits) {
  std::map<std::string, AskedConvolution> found;  ///< by the text, which lacks the batch size
  limits.forEach([&](const Problem& problem, const StatedLimit& limit) {
    const auto [place, isNew] =
        found.try_emplace(problem.text(), AskedConvolution{problem, limit.bytes, limit.queries});
    if (isNew) return;
    AskedConvolution& known = place->second;
    known.count = std::max(known.count, limit.queries);
    if (problem.batch() > known.problem.batch()) {
      known.problem = problem;
      known.limitBytes = limit.bytes;
    }
  });
  std::vector<AskedConvolution> network;
  network.reserve(found.size());
  for (const auto& [text, convolution] : found) network.push_back(convolution);
  return network;
}

void expectDevices(const std::vector<int>& devices) {
  int count = 0;
  UCUDNN_CHECK_CUDA(cudaGetDeviceCount(&count));
  for (const int device : devices)
    if (device < 0 || device >= count)
      throw BadSetting(fmt::format("there is no device {} (accepted: 0 to {})", device, count - 1));
}

}  // namespace

std::optional<std::vector<int>> sharesOf(const Context& context,
                                         int batch,
                                         const std::vector<int>& devices) {
  expectDevices(devices);
  const std::shared_ptr<const Snapshot> now = context.snapshot();
  if (isCapturing(now->handle))
    throw Error(CUDNN_STATUS_NOT_SUPPORTED, "the handle's stream is being captured");
  const std::vector<AskedConvolution> network = networkOf(context.limits_);
  if (network.empty()) return std::nullopt;
  std::vector<SharingDevice> all;
  all.reserve(devices.size());
  for (const int device : devices)
    all.push_back({device, workspaceCapOn(device).value_or(now->capped(SIZE_MAX))});
  return networkShares(now->queryFor(network.front().problem, 0, false), network, all, batch);
}

}  // namespace ucudnn
