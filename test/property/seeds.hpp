// The command line of a property test, and what becomes of a seed.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "../support/temporary_directory.hpp"
#include "forked.hpp"

namespace ucudnn::test {

struct Seeds {
  unsigned long long first = 1;
  unsigned long long count = 100;
  int client = -1;  ///< all of each seed
  bool traces = false;

  /// False: another command line. `mayName`: a client alone.
  bool parse(int words, char** text, bool mayName) {
    for (int i = 1; i < words; ++i) {
      const std::string word = text[i];
      if (word == "--trace") {
        traces = true;
        continue;
      }
      if (i + 1 == words) return false;
      char* end = nullptr;
      const unsigned long long number = std::strtoull(text[++i], &end, 10);
      if (*end != '\0') return false;
      if (word == "--seed")
        first = number;
      else if (word == "--count")
        count = number;
      else if (word == "--client" && mayName)
        client = static_cast<int>(number);
      else
        return false;
    }
    return true;
  }
};

/// The complaints about a process itself; empty: none.
inline std::string complaintsOf(const ForkResult& result) {
  std::string text;
  if (result.status != 0) text += "FAILED status " + std::to_string(result.status) + "\n";
  if (!result.output.empty()) text += "FAILED printed:\n" + result.output;
  return text;
}

/// Runs a scenario, twice if it keeps a database. `complaints`: of one process; empty: nothing.
/// False: something is wrong, and is printed with the command that does it `again`.
template <typename Scenario, typename Complaints>
bool runSeed(const Seeds& seeds,
             unsigned long long seed,
             Scenario scenario,
             Complaints complaints,
             const std::string& text,
             const std::string& again) {
  const TemporaryDirectory directory;
  if (scenario.usesDatabase) scenario.environment["UCUDNN_DATABASE"] = directory.file("database");
  for (int start = 1; start <= (scenario.usesDatabase ? 2 : 1); ++start) {
    const std::string found = complaints(scenario);
    if (seeds.traces || !found.empty())
      std::printf("seed %llu, start %d, %s\n%s", seed, start, text.c_str(), found.c_str());
    if (found.find("FAILED") == std::string::npos) continue;
    std::printf("again: %s %llu\n", again.c_str(), seed);
    std::fflush(stdout);
    return false;
  }
  return true;
}

/// What a test's main() does. `run`: a seed; false: something was wrong. Returns the exit status.
template <typename Run>
int runSeeds(int count, char** words, int problemsEach, Run run) {
  Seeds seeds;
  if (!seeds.parse(count, words, false)) {
    std::fprintf(stderr, "usage: %s [--seed S] [--count N] [--trace]\n", words[0]);
    return 2;
  }
  unsigned long long wrong = 0;
  for (unsigned long long i = 0; i < seeds.count; ++i)
    if (!run(seeds, seeds.first + i)) ++wrong;
  std::printf("%llu clients, %llu problems: %llu clients found something wrong\n",
              seeds.count,
              seeds.count * static_cast<unsigned long long>(problemsEach),
              wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace ucudnn::test
