// The diagnosis functions of diagnosis.h.
#include <ucudnn/diagnosis.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "api/guard.hpp"
#include "api/sized.hpp"
#include "context/queries.hpp"
#include "context/shares.hpp"

using namespace ucudnn;

namespace {

/// The convolution that the three functions ask about.
struct Subject {
  cudnnHandle_t handle;
  ucudnnOperation_t operation;
  ConvolutionDescriptors descriptors;
};

ucudnnMicroBatches_t entryOf(
    Operation operation, int batch, int count, const KernelOffer& offer, KernelTiming timing) {
  ucudnnMicroBatches_t entry{};
  entry.batch = batch;
  entry.count = count;
  entry.timeMs = timing.timeMs;
  entry.deviceMs = timing.deviceMs;
  entry.workspaceBytes = offer.workspaceBytes;
  entry.deterministic = offer.deterministic ? 1 : 0;
  entry.error = offer.error == kUnknownError ? -1 : offer.error;
  std::snprintf(entry.kernel, sizeof(entry.kernel), "%s", toText(operation, offer.kernel).c_str());
  return entry;
}

/// Calls `answer(queries, results)` for a convolution that can be planned.
template <typename Result, typename Answer>
cudnnStatus_t describe(const char* function,
                       const Subject& subject,
                       int requested,
                       const int* returned,
                       Result* results,
                       Answer answer) noexcept {
  Context* const context = contextOf(subject.handle);
  if (context == nullptr || returned == nullptr || requested < 0 ||
      (requested > 0 && !isSized(results)))
    return CUDNN_STATUS_BAD_PARAM;
  return guarded(function, [&] {
    // The activation of the fused operation is not known here; the operation is planned at its
    // call.
    if (subject.operation < UCUDNN_FORWARD || subject.operation > UCUDNN_BACKWARD_FILTER)
      return CUDNN_STATUS_NOT_SUPPORTED;
    const Queries queries(*context, static_cast<Operation>(subject.operation), subject.descriptors);
    if (!queries.isRead()) return CUDNN_STATUS_NOT_SUPPORTED;
    const DeviceScope scope = context->useDevice();
    return answer(queries, SizedArray<Result>(requested > 0 ? results : nullptr));
  });
}

ucudnnStatistics_t statisticsNow() noexcept {
  const Statistics& now = planner().statistics();
  ucudnnStatistics_t all{};
  all.kernelsMeasured = now.kernelsMeasured;
  all.kernelsLoaded = now.kernelsLoaded;
  all.plans = now.plans;
  all.splitCalls = now.splitCalls;
  all.undividedCalls = now.undividedCalls;
  all.bypassedCalls = now.bypassedCalls;
  all.planningMs = static_cast<double>(now.planningMicroseconds) / 1000;
  all.replayedCalls = now.replayedCalls;
  all.graphs = now.graphs;
  all.graphBytes = now.graphBytes;
  all.kernelsChecked = now.kernelsChecked;
  all.kernelsWrong = now.kernelsWrong;
  return all;
}

}  // namespace

extern "C" {

cudnnStatus_t ucudnnGetConvolutionPlan(cudnnHandle_t handle,
                                       ucudnnOperation_t operation,
                                       cudnnTensorDescriptor_t xDesc,
                                       cudnnFilterDescriptor_t wDesc,
                                       cudnnConvolutionDescriptor_t convDesc,
                                       cudnnTensorDescriptor_t yDesc,
                                       size_t limitBytes,
                                       ucudnnPlan_t* plan,
                                       int requestedCount,
                                       int* returnedCount,
                                       ucudnnMicroBatches_t* entries) {
  if (!isSized(plan)) return CUDNN_STATUS_BAD_PARAM;
  const Subject subject{handle, operation, {xDesc, wDesc, convDesc, yDesc}};
  const auto answer = [&](const Queries& queries, const auto& to) {
    const auto found = queries.plan(limitBytes);
    if (!found) return CUDNN_STATUS_NOT_SUPPORTED;
    writeSized({sizeof(*plan),
                limitBytes,
                found->workspaceBytes,
                found->predictedMs,
                static_cast<int>(found->replayed)},
               plan);
    *returnedCount = static_cast<int>(found->steps.size());
    for (int i = 0; i < std::min(requestedCount, *returnedCount); ++i) {
      const Plan::Step& step = found->steps[static_cast<std::size_t>(i)];
      to.write(i, entryOf(queries.problem().operation, step.batch, step.count, step, step));
    }
    return CUDNN_STATUS_SUCCESS;
  };
  return describe(
      "ucudnnGetConvolutionPlan", subject, requestedCount, returnedCount, entries, answer);
}

cudnnStatus_t ucudnnGetConvolutionCandidates(cudnnHandle_t handle,
                                             ucudnnOperation_t operation,
                                             cudnnTensorDescriptor_t xDesc,
                                             cudnnFilterDescriptor_t wDesc,
                                             cudnnConvolutionDescriptor_t convDesc,
                                             cudnnTensorDescriptor_t yDesc,
                                             int requestedCount,
                                             int* returnedCount,
                                             ucudnnMicroBatches_t* entries) {
  const Subject subject{handle, operation, {xDesc, wDesc, convDesc, yDesc}};
  const auto answer = [&](const Queries& queries, const auto& to) {
    int count = 0;
    const Measurements measured = queries.candidates();
    if (measured.empty()) return CUDNN_STATUS_NOT_SUPPORTED;
    const KernelErrors largest = largestErrors(measured);
    for (const auto& [batch, size] : measured) {
      std::vector<Measurement> kernels = size.kernels;
      for (Measurement& kernel : kernels)
        kernel.error = errorOf(kernel, queries.problem().operation, batch, largest);
      std::sort(kernels.begin(), kernels.end(), [](const Measurement& a, const Measurement& b) {
        return a.timeMs < b.timeMs;
      });
      for (const Measurement& kernel : kernels) {
        if (count < requestedCount)
          to.write(count, entryOf(queries.problem().operation, batch, 1, kernel, kernel));
        ++count;
      }
    }
    *returnedCount = count;
    return CUDNN_STATUS_SUCCESS;
  };
  return describe(
      "ucudnnGetConvolutionCandidates", subject, requestedCount, returnedCount, entries, answer);
}

cudnnStatus_t ucudnnGetConvolutionParetoFront(cudnnHandle_t handle,
                                              ucudnnOperation_t operation,
                                              cudnnTensorDescriptor_t xDesc,
                                              cudnnFilterDescriptor_t wDesc,
                                              cudnnConvolutionDescriptor_t convDesc,
                                              cudnnTensorDescriptor_t yDesc,
                                              int requestedCount,
                                              int* returnedCount,
                                              ucudnnParetoPoint_t* points) {
  const Subject subject{handle, operation, {xDesc, wDesc, convDesc, yDesc}};
  const auto answer = [&](const Queries& queries, const auto& to) {
    const std::vector<Configuration> front = queries.front();
    if (front.empty()) return CUDNN_STATUS_NOT_SUPPORTED;
    *returnedCount = static_cast<int>(front.size());
    for (int i = 0; i < std::min(requestedCount, *returnedCount); ++i) {
      const Configuration& configuration = front[static_cast<std::size_t>(i)];
      to.write(i, {sizeof(*points), configuration.timeMs, configuration.workspaceBytes});
    }
    return CUDNN_STATUS_SUCCESS;
  };
  return describe(
      "ucudnnGetConvolutionParetoFront", subject, requestedCount, returnedCount, points, answer);
}

cudnnStatus_t ucudnnGetShares(
    cudnnHandle_t handle, int batch, int deviceCount, const int* devices, int* shares) {
  Context* const context = contextOf(handle);
  if (context == nullptr || batch < 1 || deviceCount < 1 || devices == nullptr || shares == nullptr)
    return CUDNN_STATUS_BAD_PARAM;
  return guarded("ucudnnGetShares", [&] {
    const DeviceScope scope = context->useDevice();
    const auto found = sharesOf(*context, batch, {devices, devices + deviceCount});
    if (!found) return CUDNN_STATUS_NOT_SUPPORTED;
    std::copy(found->begin(), found->end(), shares);
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t ucudnnSavePlans(const char* path) {
  if (path == nullptr || *path == '\0') return CUDNN_STATUS_BAD_PARAM;
  return guarded("ucudnnSavePlans", [&] {
    planner().savePlans(path);
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t ucudnnGetStatistics(ucudnnStatistics_t* statistics) {
  if (!isSized(statistics)) return CUDNN_STATUS_BAD_PARAM;
  writeSized(statisticsNow(), statistics);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t ucudnnGetStatistic(const char* name, double* value) {
  if (name == nullptr || value == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const ucudnnStatistics_t now = statisticsNow();
  const auto number = [](long long count) { return static_cast<double>(count); };
  const std::pair<const char*, double> all[] = {{"kernelsMeasured", number(now.kernelsMeasured)},
                                                {"kernelsLoaded", number(now.kernelsLoaded)},
                                                {"plans", number(now.plans)},
                                                {"splitCalls", number(now.splitCalls)},
                                                {"undividedCalls", number(now.undividedCalls)},
                                                {"bypassedCalls", number(now.bypassedCalls)},
                                                {"planningMs", now.planningMs},
                                                {"replayedCalls", number(now.replayedCalls)},
                                                {"graphs", number(now.graphs)},
                                                {"graphBytes", number(now.graphBytes)},
                                                {"kernelsChecked", number(now.kernelsChecked)},
                                                {"kernelsWrong", number(now.kernelsWrong)}};
  for (const auto& [known, found] : all)
    if (std::strcmp(known, name) == 0) {
      *value = found;
      return CUDNN_STATUS_SUCCESS;
    }
  return CUDNN_STATUS_BAD_PARAM;
}

}  // extern "C"
