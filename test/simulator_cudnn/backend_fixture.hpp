// A convolution as cuDNN's backend API has it, for the tests of that API.
#pragma once

#include <cstdint>
#include <vector>

#include "backend_descriptor.hpp"
#include "convolution_fixture.hpp"

namespace ucudnn::simulator::test {

/// A finalized tensor descriptor.
DescriptorPointer makeTensor(const Geometry& geometry, std::int64_t uid, std::int64_t alignment);

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

  /// The operation alone, finalized; y stands for its own y where it is not null.
  static DescriptorPointer node(const Convolution& convolution,
                                Operation operation,
                                const Options& options,
                                const Descriptor* y = nullptr);
  static std::vector<DescriptorPointer> configsOf(const Descriptor& graph,
                                                  cudnnBackendHeurMode_t mode);

  const Descriptor& graph() const { return *graph_; }
  /// The heuristics' proposals, configured.
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

}  // namespace ucudnn::simulator::test
