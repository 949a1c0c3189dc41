// Descriptors of cuDNN's backend API as values. Needs no CUDA runtime: some of it also runs on the
// real cuDNN of a machine without a GPU.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cudnn_names.h"

namespace ucudnn::simulator::test {

#define ASSERT_CUDNN(call) ASSERT_EQ(CUDNN_STATUS_SUCCESS, (call))
#define EXPECT_CUDNN(call) EXPECT_EQ(CUDNN_STATUS_SUCCESS, (call))

/// Owns one cudnnBackendDescriptor_t. Statuses come back to the caller.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  cudnnBackendDescriptor_t get() const { return handle_; }
  cudnnStatus_t finalize() const { return cudnnBackendFinalize(handle_); }

  template <typename T>
  cudnnStatus_t set(cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type,
                    const std::vector<T>& values) const {
    return cudnnBackendSetAttribute(
        handle_, name, type, static_cast<std::int64_t>(values.size()), values.data());
  }
  cudnnStatus_t setInt(cudnnBackendAttributeName_t name, std::int64_t value) const {
    return cudnnBackendSetAttribute(handle_, name, CUDNN_TYPE_INT64, 1, &value);
  }
  cudnnStatus_t setInts(cudnnBackendAttributeName_t name,
                        const std::vector<std::int64_t>& values) const {
    return set(name, CUDNN_TYPE_INT64, values);
  }
  cudnnStatus_t setDescriptor(cudnnBackendAttributeName_t name, const Descriptor& other) const {
    cudnnBackendDescriptor_t handle = other.get();
    return cudnnBackendSetAttribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  }

  /// One element; a failure is the test's.
  template <typename T>
  T one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    T value{};
    std::int64_t count = 0;
    EXPECT_CUDNN(cudnnBackendGetAttribute(handle_, name, type, 1, &count, &value));
    EXPECT_EQ(1, count);
    return value;
  }
  template <typename T>
  std::vector<T> all(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    std::int64_t count = 0;
    EXPECT_CUDNN(cudnnBackendGetAttribute(handle_, name, type, 0, &count, nullptr));
    std::vector<T> values(static_cast<std::size_t>(count));
    EXPECT_CUDNN(cudnnBackendGetAttribute(handle_, name, type, count, &count, values.data()));
    return values;
  }
  /// Descriptors that are made here, `room` of them, and completed by the call.
  std::vector<std::unique_ptr<Descriptor>> descriptors(cudnnBackendAttributeName_t name,
                                                       cudnnBackendDescriptorType_t type,
                                                       std::int64_t room) const;

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

using DescriptorPointer = std::unique_ptr<Descriptor>;

/// An engine with its knobs, as a database would keep it.
struct EngineText {
  std::int64_t engine = -1;
  std::map<std::int64_t, std::int64_t> knobs;

  bool operator==(const EngineText& other) const {
    return engine == other.engine && knobs == other.knobs;
  }
  bool operator<(const EngineText& other) const {
    return engine != other.engine ? engine < other.engine : knobs < other.knobs;
  }
};
std::ostream& operator<<(std::ostream& stream, const EngineText& text);

EngineText textOf(const Descriptor& config);

std::int64_t workspaceOf(const Descriptor& plan);
bool hasNote(const Descriptor& engine, cudnnBackendNumericalNote_t note);
bool hasBehavior(const Descriptor& engine, cudnnBackendBehaviorNote_t note);

/// The engine of a configuration.
DescriptorPointer engineOf(const Descriptor& config);

}  // namespace ucudnn::simulator::test
