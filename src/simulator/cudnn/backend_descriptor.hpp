// The descriptors of cuDNN's backend (graph) API. A descriptor copies what it is given: descriptors
// that were set as its attributes may be destroyed at once, as with cuDNN 9.19.
#pragma once

#include <memory>

#include "simulator/cudnn/backend_attributes.hpp"

namespace ucudnn::simulator {

/// The object behind a cudnnBackendDescriptor_t. Set, then finalized, then read; not for two
/// threads at once.
class BackendDescriptor {
 public:
  explicit BackendDescriptor(cudnnBackendDescriptorType_t type) : type_(type) {}
  virtual ~BackendDescriptor() = default;
  BackendDescriptor(const BackendDescriptor&) = delete;
  BackendDescriptor& operator=(const BackendDescriptor&) = delete;

  cudnnBackendDescriptorType_t type() const { return type_; }
  bool finalized() const { return finalized_; }

  void set(cudnnBackendAttributeName_t name, const AttributeInput& input);
  void get(cudnnBackendAttributeName_t name, const AttributeOutput& output) const;
  void finalize();

 protected:
  virtual void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) = 0;
  virtual void getAttribute(cudnnBackendAttributeName_t name,
                            const AttributeOutput& output) const = 0;
  /// Throws Refusal where something is missing or does not fit.
  virtual void complete() {}
  /// For what cuDNN itself completes, in a Get.
  void markFinalized() { finalized_ = true; }

 private:
  cudnnBackendDescriptorType_t type_;
  bool finalized_ = false;
};

/// Null for a type that the simulator does not know.
std::unique_ptr<BackendDescriptor> makeBackendDescriptor(cudnnBackendDescriptorType_t type);

/// The descriptor behind a handle, null unless it is of this class.
template <typename Descriptor>
Descriptor* backendCast(cudnnBackendDescriptor_t handle) {
  return dynamic_cast<Descriptor*>(static_cast<BackendDescriptor*>(handle));
}

/// As backendCast, for attributes: throws what cuDNN answers where it is none.
template <typename Descriptor>
const Descriptor& backendReference(const AttributeInput& input) {
  auto* const handle = input.scalar<cudnnBackendDescriptor_t>(CUDNN_TYPE_BACKEND_DESCRIPTOR);
  if (handle == nullptr) refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null descriptor");
  const auto* const descriptor = backendCast<Descriptor>(handle);
  if (descriptor == nullptr) {
    refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "a descriptor of another type");
  }
  return *descriptor;
}

}  // namespace ucudnn::simulator
