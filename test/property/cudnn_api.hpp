// cuDNN's graph API as a plain program calls it, twice: through libucudnn_preload.so, and past it.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cudnn_names.h"
#include "support/past_preload.hpp"

namespace ucudnn::test {

class Api {
 public:
  /// The functions that the loader has found for this program: the preloaded library's.
  static const Api& preloaded() {
    static const Api api;
    return api;
  }
  /// cuDNN's own.
  static const Api& plain() {
    static const Api api(dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_NOLOAD));
    return api;
  }

  decltype(&cudnnCreate) create = cudnnCreate;
  decltype(&cudnnDestroy) destroy = cudnnDestroy;
  decltype(&cudnnSetStream) setStream = cudnnSetStream;
  decltype(&cudnnBackendCreateDescriptor) createDescriptor = cudnnBackendCreateDescriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroyDescriptor = cudnnBackendDestroyDescriptor;
  decltype(&cudnnBackendSetAttribute) setAttribute = cudnnBackendSetAttribute;
  decltype(&cudnnBackendGetAttribute) getAttribute = cudnnBackendGetAttribute;
  decltype(&cudnnBackendFinalize) finalize = cudnnBackendFinalize;
  decltype(&cudnnBackendExecute) execute = cudnnBackendExecute;

 private:
  Api() = default;
  explicit Api(void* library) {
    find(library, "cudnnCreate", create);
    find(library, "cudnnDestroy", destroy);
    find(library, "cudnnSetStream", setStream);
    find(library, "cudnnBackendCreateDescriptor", createDescriptor);
    find(library, "cudnnBackendDestroyDescriptor", destroyDescriptor);
    find(library, "cudnnBackendSetAttribute", setAttribute);
    find(library, "cudnnBackendGetAttribute", getAttribute);
    find(library, "cudnnBackendFinalize", finalize);
    find(library, "cudnnBackendExecute", execute);
  }

  template <typename Function>
  static void find(void* library, const char* name, Function& function) {
    if (library == nullptr) throw std::runtime_error("no libcudnn.so.9");
    function = reinterpret_cast<Function>(lookUpPastPreload(library, name));
    if (function == nullptr) throw std::runtime_error(std::string(name) + " is not there");
  }
};

/// A call that a program of this kind does not survive.
inline void check(int status, const char* what) {
  if (status != 0) throw std::runtime_error(std::string(what) + ": " + std::to_string(status));
}

/// A descriptor of the graph API.
class Descriptor {
 public:
  Descriptor(const Api& api, cudnnBackendDescriptorType_t type) : api_(&api) {
    check(api.createDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) api_->destroyDescriptor(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept
      : api_(other.api_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  void set(cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type,
           std::int64_t count,
           const void* values) {
    check(api_->setAttribute(descriptor_, name, type, count, values), "cudnnBackendSetAttribute");
  }
  template <typename Value>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Value value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& values) {
    std::vector<cudnnBackendDescriptor_t> handles;
    for (const Descriptor& value : values) handles.push_back(value.get());
    set(name,
        CUDNN_TYPE_BACKEND_DESCRIPTOR,
        static_cast<std::int64_t>(handles.size()),
        handles.data());
  }

  cudnnStatus_t tryFinalize() { return api_->finalize(descriptor_); }
  Descriptor&& finalize() {
    check(tryFinalize(), "cudnnBackendFinalize");
    return std::move(*this);
  }

  template <typename Value>
  std::vector<Value> getAll(cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type,
                            std::size_t most) const {
    std::vector<Value> values(most);
    std::int64_t count = 0;
    check(api_->getAttribute(
              descriptor_, name, type, static_cast<std::int64_t>(most), &count, values.data()),
          "cudnnBackendGetAttribute");
    values.resize(static_cast<std::size_t>(count));
    return values;
  }
  std::int64_t number(cudnnBackendAttributeName_t name) const {
    return getAll<std::int64_t>(name, CUDNN_TYPE_INT64, 1).at(0);
  }
  /// At most so many descriptors, filled from this one's attribute.
  std::vector<Descriptor> getDescriptors(cudnnBackendAttributeName_t name,
                                         cudnnBackendDescriptorType_t type,
                                         std::size_t most) const {
    std::vector<Descriptor> made;
    std::vector<cudnnBackendDescriptor_t> handles;
    for (std::size_t i = 0; i < most; ++i) handles.push_back(made.emplace_back(*api_, type).get());
    std::int64_t count = 0;
    check(api_->getAttribute(descriptor_,
                             name,
                             CUDNN_TYPE_BACKEND_DESCRIPTOR,
                             static_cast<std::int64_t>(most),
                             &count,
                             handles.data()),
          "cudnnBackendGetAttribute");
    while (made.size() > static_cast<std::size_t>(count)) made.pop_back();
    return made;
  }

 private:
  const Api* api_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace ucudnn::test
