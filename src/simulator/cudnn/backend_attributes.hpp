// The arguments of cudnnBackendSetAttribute and cudnnBackendGetAttribute, checked as cuDNN 9.19
// checks them: a wrong type, count or null array have the statuses that the real library gave.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "simulator/cudnn/status.hpp"

namespace ucudnn::simulator {

[[noreturn]] inline void refuseAttribute() {
  refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor has no such attribute");
}

inline void requireAttributeType(cudnnBackendAttributeType_t given,
                                 cudnnBackendAttributeType_t wanted) {
  if (given != wanted) {
    refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the attribute has another type");
  }
}

/// The arguments of one Set.
class AttributeInput {
 public:
  AttributeInput(cudnnBackendAttributeType_t type, std::int64_t count, const void* elements)
      : type_(type), count_(count), elements_(elements) {
    require(elements != nullptr, "null array of elements");
  }

  cudnnBackendAttributeType_t type() const { return type_; }

  /// The one element, of this type.
  template <typename T>
  T scalar(cudnnBackendAttributeType_t type) const {
    requireAttributeType(type_, type);
    require(count_ == 1, "the attribute has one element");
    T value;
    std::memcpy(&value, elements_, sizeof value);
    return value;
  }

  /// One element or more.
  template <typename T>
  std::vector<T> array(cudnnBackendAttributeType_t type) const {
    requireAttributeType(type_, type);
    require(count_ > 0 && count_ <= kMostElements, "number of elements");
    std::vector<T> values(static_cast<std::size_t>(count_));
    std::memcpy(values.data(), elements_, values.size() * sizeof(T));
    return values;
  }

 private:
  static constexpr std::int64_t kMostElements = 1024;

  cudnnBackendAttributeType_t type_;
  std::int64_t count_;
  const void* elements_;
};

/// Where one Get writes. A null array asks for the count alone; a null count is not written.
class AttributeOutput {
 public:
  AttributeOutput(cudnnBackendAttributeType_t type,
                  std::int64_t requested,
                  std::int64_t* count,
                  void* elements)
      : type_(type), requested_(requested), count_(count), elements_(elements) {
    require(elements == nullptr || requested >= 0, "negative number of elements");
  }

  cudnnBackendAttributeType_t type() const { return type_; }
  bool countOnly() const { return elements_ == nullptr; }

  template <typename T>
  void scalar(cudnnBackendAttributeType_t type, T value) const {
    requireAttributeType(type_, type);
    if (!countOnly()) {
      require(requested_ == 1, "the attribute has one element");
      std::memcpy(elements_, &value, sizeof value);
    }
    giveCount(1);
  }

  /// As many as were asked for.
  template <typename T>
  void array(cudnnBackendAttributeType_t type, const std::vector<T>& values) const {
    requireAttributeType(type_, type);
    if (countOnly()) return giveCount(values.size());
    const auto count = std::min(values.size(), static_cast<std::size_t>(requested_));
    if (count > 0) std::memcpy(elements_, values.data(), count * sizeof(T));
    giveCount(count);
  }

  /// The caller's array holds one descriptor that the caller has made: `fill(descriptor)` completes
  /// it and says whether it could.
  template <typename Fill>
  void descriptor(Fill&& fill) const {
    requireAttributeType(type_, CUDNN_TYPE_BACKEND_DESCRIPTOR);
    if (!countOnly()) {
      require(requested_ == 1, "the attribute has one element");
      require(fill(*static_cast<const cudnnBackendDescriptor_t*>(elements_)),
              "not a descriptor for this attribute");
    }
    giveCount(1);
  }

  /// The caller's array holds descriptors that the caller has made: `fill(i, descriptor)` completes
  /// the i-th and says whether it could. With a null array the count is `count`.
  template <typename Fill>
  void descriptors(std::size_t count, Fill&& fill) const {
    requireAttributeType(type_, CUDNN_TYPE_BACKEND_DESCRIPTOR);
    if (countOnly()) return giveCount(count);
    const auto* handles = static_cast<const cudnnBackendDescriptor_t*>(elements_);
    const auto room = static_cast<std::size_t>(requested_);
    std::size_t filled = 0;
    for (std::size_t i = 0; i < count && filled < room; ++i) {
      if (fill(i, handles[filled])) ++filled;
    }
    giveCount(filled);
  }

 private:
  void giveCount(std::size_t count) const {
    if (count_ != nullptr) *count_ = static_cast<std::int64_t>(count);
  }

  cudnnBackendAttributeType_t type_;
  std::int64_t requested_;
  std::int64_t* count_;
  void* elements_;
};

}  // namespace ucudnn::simulator
