#include "planner/network_shares.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "cuda/owners.hpp"
#include "optimizer/share_search.hpp"
#include "planner/planner.hpp"

namespace ucudnn {
namespace {

/// Plans the network's steps on one device.
class DevicePlans {
 public:
  DevicePlans(const PlanRequest& like,
              const std::vector<AskedConvolution>& network,
              const SharingDevice& device)
      : request_(like), network_(network), device_(device) {
    if (device.device == request_.device) return;
    const DeviceScope scope(device.device);
    stream_ = makeStream();
    handle_ = makeOwned<CudnnHandle>(cudnn().create);
    UCUDNN_CHECK_CUDNN(cudnn().setStream(handle_.get(), stream_.get()));
    request_.handle = handle_.get();
    request_.device = device.device;
    request_.machine = planner().machines().ofDevice(device.device);
    request_.benchmarkDevices = &none_;
  }

  ~DevicePlans() {
    int former = 0;
    if (!handle_ || cudaGetDevice(&former) != cudaSuccess) return;
    static_cast<void>(cudaSetDevice(device_.device));
    handle_.reset();
    stream_.reset();
    static_cast<void>(cudaSetDevice(former));
  }
  DevicePlans(const DevicePlans&) = delete;
  DevicePlans& operator=(const DevicePlans&) = delete;

  StepPlan plan(int samples) const {
    const DeviceScope scope(device_.device);
    StepPlan step;
    for (const AskedConvolution& convolution : network_) {
      PlanRequest request = request_;
      request.problem = convolution.problem.withBatch(samples);
      request.limitBytes = std::min(convolution.limitBytes, device_.capBytes);
      const auto plan = planner().plan(request);
      if (!plan) return {std::numeric_limits<double>::infinity(), 0};
      step.ms += plan->predictedMs * convolution.count;
      step.workspaceBytes = std::max(step.workspaceBytes, plan->workspaceBytes);
    }
    return step;
  }

 private:
  PlanRequest request_;
  const std::vector<AskedConvolution>& network_;
  const SharingDevice device_;
  const std::vector<int> none_;
  Stream stream_;
  CudnnHandle handle_;  ///< null: the asking handle
};

}  // namespace

std::optional<std::vector<int>> networkShares(const PlanRequest& like,
                                              const std::vector<AskedConvolution>& network,
                                              const std::vector<SharingDevice>& devices,
                                              int batch) {
  std::map<std::pair<int, std::size_t>, std::size_t> kinds;  ///< by machine and cap
  std::vector<std::unique_ptr<DevicePlans>> plans;           ///< by kind
  std::vector<Participant> participants;
  for (const SharingDevice& device : devices) {
    const int machine = planner().machines().ofDevice(device.device);
    const auto [kind, isNew] = kinds.try_emplace({machine, device.capBytes}, plans.size());
    if (isNew) plans.push_back(std::make_unique<DevicePlans>(like, network, device));
    participants.push_back({kind->second, batch, {}});
  }
  ShareSearch search(
      std::move(participants), batch, [&](const std::vector<StepQuestion>& questions) {
        std::vector<StepPlan> steps;
        steps.reserve(questions.size());
        for (const StepQuestion& q : questions) steps.push_back(plans[q.kind]->plan(q.samples));
        return steps;
      });
  const auto found = search.find(0);
  return found ? std::optional(found->best.samples) : std::nullopt;
}

}  // namespace ucudnn
