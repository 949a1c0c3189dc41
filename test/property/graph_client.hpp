// A program of cuDNN's graph API: it builds plans of one graph, filters them in the way of a
// framework, passes exactly what it filtered by, and runs the plan that it has chosen.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>
#include <string>
#include <vector>

#include "graph_problem.hpp"

namespace ucudnn::test {

enum class Way {
  kPyTorch,           ///< the first whose workspace can be allocated
  kPyTorchBenchmark,  ///< asks all, runs all in one workspace, keeps the fastest
  kFrontend,          ///< the first within a bound; what is passed, `Passes` says
  kXla,               ///< engines by index; runs all within a bound, keeps the fastest
};

/// The workspace size that cudnn-frontend's users pass.
enum class Passes { kPlansWorkspace, kBound, kConfigurationsWorkspace };

struct Habits {
  Way way = Way::kPyTorch;
  std::vector<cudnnBackendHeurMode_t> modes;
  bool barsTensorCores = false, barsNondeterministic = false, barsCompiled = false;
  std::size_t boundBytes = static_cast<std::size_t>(-1);
  Passes passes = Passes::kPlansWorkspace;
  bool boundsConfigurations = false;  ///< else plans
  bool asksAllFirst = false;          ///< the frontend: builds and asks all plans before it chooses
  bool allocatesEachTime = false;
  bool remakesPacks = true;
  bool ownsStream = true;
  bool keepsOutputs = false;
  int executions = 20;

  std::string text() const;
};

/// The outcome for one configuration of a graph, by its place among the heuristics' proposals.
struct Tried {
  bool isBarred = false;
  cudnnStatus_t finalized = CUDNN_STATUS_SUCCESS;
  std::optional<std::size_t> configurationBytes;  ///< as the client was told, if it asked
  std::optional<std::size_t> toldBytes;
  int askedBefore = 0;  ///< plans of the graph that it had asked about before
  std::optional<cudnnStatus_t> executed;
  std::optional<double> timedMs;
};

struct ClientResult {
  std::vector<Tried> tried;
  int chosen = -1;  ///< the configuration whose plan ran; -1: it found none
  std::size_t passedBytes = 0;
  std::optional<std::size_t> rememberedBytes;  ///< XLA: what the plan needed when it was timed
  std::vector<double> callMs;                  ///< on the stream's clock
  std::vector<double> output;                  ///< of the last call
  std::vector<std::vector<double>> outputs;    ///< of each call, where the program keeps them
  std::string failure;                         ///< of a call after the choice
};

class GraphClient {
 public:
  GraphClient(const Api& api,
              cudnnHandle_t handle,
              cudaStream_t stream,
              const GraphProblem& problem,
              const Habits& habits,
              GraphTensors& tensors);

  /// Chooses, and runs what it has chosen.
  ClientResult act();

  /// Runs the plan of one configuration so often, with what cuDNN says that it needs.
  ClientResult runConfiguration(int place, int executions);

  const std::vector<Descriptor>& configurations() const { return configurations_; }
  /// The workspace that cuDNN names for a configuration; empty: its plan can't be built.
  std::optional<std::size_t> needOf(int place) const;

 private:
  struct Built {
    int place;
    Descriptor plan;
    std::size_t toldBytes = 0;
    double ms = 0;
  };

  bool isBarred(int place) const;
  std::optional<Built> build(int place);
  std::optional<Built> buildByIndex(int place);
  Descriptor planOf(const Descriptor& configuration) const;
  std::size_t ask(Built& built);
  std::size_t askConfiguration(int place);
  cudnnStatus_t execute(const Built& built, void* workspace);
  bool timed(Built& built, void* workspace, int samples);

  std::optional<Built> chooseAsPyTorch();
  std::optional<Built> chooseAsPyTorchBenchmark();
  std::optional<Built> chooseAsFrontend();
  std::optional<Built> chooseAsXla();
  std::optional<std::size_t> boundedBytes(Built& built);
  void run(const Built& built);

  const Api& api_;
  cudnnHandle_t handle_;
  cudaStream_t stream_;
  const GraphProblem& problem_;
  const Habits& habits_;
  GraphTensors& tensors_;
  Descriptor graph_;
  std::vector<Descriptor> configurations_;
  std::optional<Descriptor> pack_;
  void* packsWorkspace_ = nullptr;
  ClientResult result_;
  int asked_ = 0;
};

}  // namespace ucudnn::test
