#include "kernels/backend.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>

namespace ucudnn {
namespace {

std::vector<cudnnBackendDescriptor_t> handlesOf(const std::vector<BackendDescriptor>& owners) {
  std::vector<cudnnBackendDescriptor_t> handles;
  handles.reserve(owners.size());
  for (const BackendDescriptor& owner : owners) handles.push_back(owner.get());
  return handles;
}

}  // namespace

BackendDescriptor makeBackend(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  UCUDNN_CHECK_CUDNN(cudnn().backendCreateDescriptor(type, &descriptor));
  return BackendDescriptor(descriptor);
}

void setAttribute(const BackendDescriptor& descriptor,
                  cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type,
                  std::int64_t count,
                  const void* values) {
  UCUDNN_CHECK_CUDNN(cudnn().backendSetAttribute(descriptor.get(), name, type, count, values));
}

std::int64_t getAttribute(const BackendDescriptor& descriptor,
                          cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type,
                          std::int64_t count,
                          void* values) {
  std::int64_t found = 0;
  UCUDNN_CHECK_CUDNN(
      cudnn().backendGetAttribute(descriptor.get(), name, type, count, &found, values));
  return std::min(found, count);
}

void finalize(const BackendDescriptor& descriptor) {
  UCUDNN_CHECK_CUDNN(cudnn().backendFinalize(descriptor.get()));
}

void set(const BackendDescriptor& descriptor,
         cudnnBackendAttributeName_t name,
         const BackendDescriptor& value) {
  const cudnnBackendDescriptor_t handle = value.get();
  setAttribute(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
}

void set(const BackendDescriptor& descriptor,
         cudnnBackendAttributeName_t name,
         const std::vector<BackendDescriptor>& values) {
  const auto handles = handlesOf(values);
  setAttribute(descriptor,
               name,
               CUDNN_TYPE_BACKEND_DESCRIPTOR,
               static_cast<std::int64_t>(handles.size()),
               handles.data());
}

std::vector<BackendDescriptor> getUpTo(std::int64_t most,
                                       const BackendDescriptor& descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendDescriptorType_t type) {
  std::vector<BackendDescriptor> found;
  for (std::int64_t i = 0; i < most; ++i) found.push_back(makeBackend(type));
  auto handles = handlesOf(found);
  found.resize(static_cast<std::size_t>(
      getAttribute(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, handles.data())));
  return found;
}

}  // namespace ucudnn

#endif
