#include "simulator/cudnn/version.hpp"

#include <cstdio>
#include <cstdlib>

namespace ucudnn::simulator {
namespace {

constexpr std::size_t kOldest = 90100, kNewest = 99999;
constexpr std::size_t kConfigurationsTellWorkspace = 90200;
constexpr std::size_t kKernelCaches = 90400;
constexpr std::size_t kDeviceProperties = 90800;

std::size_t readVersion() {
  const char* const text = std::getenv("UCUDNN_SIMULATOR_CUDNN_VERSION");
  if (text == nullptr || *text == '\0') return CUDNN_VERSION;
  char* end = nullptr;
  const unsigned long long version = std::strtoull(text, &end, 10);
  if (*end == '\0' && version >= kOldest && version <= kNewest)
    return static_cast<std::size_t>(version);
  std::fprintf(stderr,
               "cuDNN simulator: UCUDNN_SIMULATOR_CUDNN_VERSION is a number from %zu to %zu, as "
               "cudnnGetVersion tells it, not %s\n",
               kOldest,
               kNewest,
               text);
  std::_Exit(2);
}

std::size_t firstThatHas(cudnnBackendAttributeName_t name) {
  switch (name) {
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
      return kConfigurationsTellWorkspace;
    case CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE:
    case CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED:
      return kKernelCaches;
    case CUDNN_ATTR_ENGINEHEUR_DEVICEPROP:
    case CUDNN_ATTR_ENGINE_DEVICEPROP:
    case CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP:
      return kDeviceProperties;
    default:
      return kOldest;
  }
}

}  // namespace

std::size_t simulatedVersion() {
  static const std::size_t version = readVersion();
  return version;
}

bool isKnown(cudnnBackendAttributeName_t name) {
  return simulatedVersion() >= firstThatHas(name);
}

bool isKnown(cudnnBackendDescriptorType_t type) {
  return type != CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR || simulatedVersion() >= kDeviceProperties;
}

}  // namespace ucudnn::simulator
