// A descriptor of cuDNN's graph API.
#pragma once

#include <cstdint>
#include <utility>

#include "../../src/cudnn_names.h"  // numbers alone
#include "layer.hpp"

namespace plain {

class Backend {
 public:
  explicit Backend(cudnnBackendDescriptorType_t type) {
    CHECK(cudnnBackendCreateDescriptor(type, &descriptor_));
  }
  ~Backend() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  Backend(Backend&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Backend& operator=(Backend&&) = delete;

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  void set(cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type,
           std::int64_t count,
           const void* values) {
    CHECK(cudnnBackendSetAttribute(descriptor_, name, type, count, values));
  }
  template <typename Value>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Value value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const Backend& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
  }
  Backend&& finalize() {
    CHECK(cudnnBackendFinalize(descriptor_));
    return std::move(*this);
  }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace plain
