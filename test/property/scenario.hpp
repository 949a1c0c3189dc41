// The contents of one client process of the property test, all chosen by a seed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../library/fixture.hpp"
#include "random.hpp"

namespace ucudnn::test {

/// A convolution with the scaling factors of its calls and what bias+activation has besides.
struct ProblemChoice {
  ConvolutionCase convolution;
  double alpha = 1;
  double beta = 0;
  cudnnActivationMode_t activation = CUDNN_ACTIVATION_RELU;
  bool zInPlace = false;
};

/// Problems of a client: a seed's share of what is counted.
constexpr int kProblemsPerClient = 5;

struct Scenario {
  std::uint64_t seed = 0;
  std::map<std::string, std::string> environment;
  bool deterministic = false;
  std::size_t totalBytes = 0;
  std::optional<std::size_t> defaultLimit;  ///< UCUDNN_DEFAULT_WORKSPACE_LIMIT
  bool usesDatabase = false;  ///< the client runs twice, the second time from the database
  bool limitsMemory = false;
  int devices = 1;
  int threads = 1;
  int rounds = 0;
  std::vector<ProblemChoice> problems;

  std::string settingsText() const;
};

Scenario randomScenario(std::uint64_t seed);

}  // namespace ucudnn::test
