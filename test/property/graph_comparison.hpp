// Compares a program of the graph API with us and without, and says what is wrong.
#pragma once

#include <string>
#include <vector>

#include "graph_client.hpp"
#include "graph_scenario.hpp"

namespace ucudnn::test {

constexpr std::size_t kAmple = std::size_t{100} << 30;
constexpr std::size_t kUnlimited = static_cast<std::size_t>(-1);

/// One program.
struct GraphProgram {
  GraphProblem problem;
  Habits habits;
  bool repeats = false;                     ///< its problem is one of another program's
  std::size_t leastCapBefore = kUnlimited;  ///< of the process's earlier programs
  std::size_t capBytes = kUnlimited;
  std::size_t freeBytes = kAmple;
  bool isFavored = false;  ///< the kernel that it chooses is the fastest by far

  std::string text() const;
};

/// The findings; graph_main.cpp says what must hold. `plainClient` asks cuDNN alone.
std::vector<std::string> compare(const GraphScenario& scenario,
                                 const GraphProgram& program,
                                 GraphClient& plainClient,
                                 const ClientResult& plain,
                                 const ClientResult& ours,
                                 GraphCounts& counts);

}  // namespace ucudnn::test
