// Random programs of the graph API, several in a process, and what must hold for each beside plain
// cuDNN.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "report.hpp"

namespace ucudnn::test {

/// Programs of a process: a seed's share of what is counted.
constexpr int kGraphClients = 5;

struct GraphScenario {
  std::uint64_t seed = 0;
  std::map<std::string, std::string> environment;
  bool computes = false;      ///< results are compared; the problems are small then
  bool usesDatabase = false;  ///< the process runs twice, the second time from the database
  std::uint64_t timesSeed = 0;

  std::string text() const;
};

GraphScenario randomGraphScenario(std::uint64_t seed);

/// Counts events, so that a test can tell whether it has tried anything.
struct GraphCounts {
  long long clients = 0;  ///< that found a plan
  long long capped = 0;   ///< whose plan needs more than the cap
  long long gained = 0;   ///< that ended faster than their own kernel by 1 %
  long long refused = 0;  ///< that found no plan with plain cuDNN

  void add(const GraphCounts& other) {
    clients += other.clients;
    capped += other.capped;
    gained += other.gained;
    refused += other.refused;
  }
};

/// REQUIRES: a process of its own, with libucudnn_preload.so in front of cuDNN on the simulator.
/// `only`: that client alone; -1: all.
GraphCounts runGraphClients(const GraphScenario& scenario, int only, Report& report);

}  // namespace ucudnn::test
