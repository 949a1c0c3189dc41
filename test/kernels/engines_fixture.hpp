// Engines of this cuDNN, asked without a GPU. cuDNN answers for a device that is not there: an
// H200, described as cuDNN describes it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/engine_calls.hpp"
#include "kernels/engine_configuration.hpp"
#include "kernels/engines.hpp"
#include "support/skips.hpp"

namespace ucudnn::test {

inline Problem convolution(
    Operation operation, int batch, int channels, int filters, int image, int size) {
  Problem problem;
  problem.operation = operation;
  problem.dimensions = 4;
  problem.xType = problem.wType = problem.yType = CUDNN_DATA_FLOAT;
  problem.computeType = CUDNN_DATA_FLOAT;
  problem.mathType = CUDNN_DEFAULT_MATH;
  problem.mode = CUDNN_CROSS_CORRELATION;
  problem.xSizes = {batch, channels, image, image};
  problem.wSizes = {filters, channels, size, size};
  problem.ySizes = {batch, filters, image, image};
  problem.xStrides = {channels * image * image, image * image, image, 1};
  problem.yStrides = {filters * image * image, image * image, image, 1};
  problem.pads = {size / 2, size / 2};
  problem.strides = problem.dilations = {1, 1};
  return problem;
}

constexpr char kH200[] =
    R"({"cudaDeviceId": 0, "totalGlobalMem": 150754820096, "deviceVer": 900, "driverVer": 13000,
        "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
        "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32,
        "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
        "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
        "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
        "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000,
        "l2CacheSize": 62914560, "deviceName": "NVIDIA H200"})";

/// Another cuDNN may name a device otherwise: then there is nothing to ask.
class EnginesTest : public ::testing::Test {
 protected:
  void SetUp() override { describe(kH200); }

  void describe(const std::string& device) {
    UCUDNN_SKIP_WITHOUT_DEVICE_DESCRIPTIONS();
    try {
      properties_ = makeBackend(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
      setAttribute(properties_,
                   CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                   CUDNN_TYPE_CHAR,
                   static_cast<std::int64_t>(device.size()),
                   device.data());
      finalize(properties_);
    } catch (const Error& error) {
      GTEST_SKIP() << "this cuDNN does not know the device: " << error.what();
    }
  }

  std::vector<KernelOffer> offers(const Problem& problem) {
    int failures = 0;
    auto found = engineOffers(device_, problem, &failures);
    EXPECT_EQ(failures, 0);
    return found;
  }

  /// Every offer's plans can be built, for each beta that there is a graph for, within what it
  /// says.
  void expectBuilt(const Problem& problem, const std::vector<KernelOffer>& offers) {
    const bool isFused = problem.operation == Operation::kBiasActivationForward;
    for (const double beta : isFused ? std::vector<double>{0} : std::vector<double>{0, 1}) {
      const OperationGraph graph(device_, problem, beta, kEngineAlignment);
      for (const KernelOffer& offer : offers) {
        const EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
        const auto plan = makeExecutionPlan(device_, graph.configuration(device_, value));
        EXPECT_LE(get<std::int64_t>(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE),
                  static_cast<std::int64_t>(offer.workspaceBytes))
            << toText(value) << ", beta " << beta;
      }
    }
  }

  BackendDescriptor properties_;
  const EngineDevice device_{nullptr, &properties_};
};

}  // namespace ucudnn::test
