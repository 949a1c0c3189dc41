// A convolution as cuDNN's backend API has it, for the tests of that API.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convolution_fixture.hpp"

namespace ucudnn::simulator::test {

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

/// The graph of one operation of a Convolution, with its descriptors. Unique ids are 1 (x), 2 (w)
/// and 3 (y).
class BackendGraph {
 public:
  struct Options {
    std::int64_t alignment = 16;
    bool doubleFactors = false;
    bool withHandle = true;
  };

  BackendGraph(Convolution& convolution, Operation operation, Options options);
  BackendGraph(Convolution& convolution, Operation operation)
      : BackendGraph(convolution, operation, Options()) {}

  const Descriptor& graph() const { return *graph_; }
  /// What heuristics give, configured.
  std::vector<DescriptorPointer> configs(cudnnBackendHeurMode_t mode) const;
  /// Those of the modes A, B and FALLBACK, each once.
  std::vector<DescriptorPointer> allConfigs() const;
  DescriptorPointer config(const EngineText& text, cudnnStatus_t expected) const;
  DescriptorPointer engine(std::int64_t index, cudnnStatus_t expected) const;
  DescriptorPointer plan(const Descriptor& config) const;
  /// With the buffers of the convolution, and a workspace of exactly the size that is needed.
  cudnnStatus_t run(const Descriptor& plan) const;
  cudnnStatus_t run(const Descriptor& plan, void* workspace) const;

 private:
  Convolution& convolution_;
  DescriptorPointer graph_;
};

std::int64_t workspaceOf(const Descriptor& plan);
bool hasNote(const Descriptor& engine, cudnnBackendNumericalNote_t note);
bool hasBehavior(const Descriptor& engine, cudnnBackendBehaviorNote_t note);

/// The engine of a configuration.
DescriptorPointer engineOf(const Descriptor& config);

/// A finalized tensor descriptor.
DescriptorPointer makeTensor(const Geometry& geometry, std::int64_t uid, std::int64_t alignment);

}  // namespace ucudnn::simulator::test
