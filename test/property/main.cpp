// The property test: random clients of μ-cuDNN on the simulator, each in a process of its own, with
// plain cuDNN beside it. A client follows every answer that it gets.
//
//   ucudnn_property [--seed S] [--count N] [--trace]
//
// runs the clients of the seeds S, ..., S + N - 1, with five problems each. Exit status 1: at least
// one of them found something wrong, which is printed with the seed that replays it.
// UCUDNN_LOG_FILE and UCUDNN_LOG_LEVEL make the library's log beside it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../support/temporary_directory.hpp"
#include "client.hpp"

using namespace ucudnn::test;

namespace {

constexpr unsigned kClientSeconds = 120;  // a hang, not slowness: a client takes a second at most

struct Options {
  unsigned long long seed = 1;
  unsigned long long count = 100;
  bool traces = false;
};

bool parse(int count, char** words, Options* options) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--trace") {
      options->traces = true;
      continue;
    }
    if (i + 1 == count) return false;
    char* end = nullptr;
    const unsigned long long number = std::strtoull(words[++i], &end, 10);
    if (*end != '\0') return false;
    if (word == "--seed")
      options->seed = number;
    else if (word == "--count")
      options->count = number;
    else
      return false;
  }
  return true;
}

/// What one process of the client has to complain about; empty: nothing.
std::string complaints(const Scenario& scenario, bool traces) {
  const ForkResult result = runForked(
      [&](const Answer& answer) {
        Report report(answer, traces);
        runClient(scenario, report);
      },
      kClientSeconds);
  std::string text = result.answer;
  if (result.status != 0) text += "FAILED status " + std::to_string(result.status) + "\n";
  if (!result.output.empty()) text += "FAILED printed:\n" + result.output;
  return text;
}

/// False: something is wrong.
bool runSeed(unsigned long long seed, bool traces) {
  const TemporaryDirectory directory;
  Scenario scenario = randomScenario(seed);
  const char* const log = std::getenv("UCUDNN_LOG_FILE");
  scenario.environment["UCUDNN_LOG_FILE"] = log != nullptr ? log : directory.file("log");
  if (scenario.usesDatabase) scenario.environment["UCUDNN_DATABASE"] = directory.file("database");
  for (int start = 1; start <= (scenario.usesDatabase ? 2 : 1); ++start) {
    const std::string text = complaints(scenario, traces);
    if (traces || !text.empty())
      std::printf("seed %llu, start %d, %s\n%s",
                  seed,
                  start,
                  randomScenario(seed).settingsText().c_str(),
                  text.c_str());
    if (text.find("FAILED") == std::string::npos) continue;
    std::printf("again: misc/property.sh %d %llu\n", kProblemsPerClient, seed);
    std::fflush(stdout);
    return false;
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!parse(count, words, &options)) {
    std::fprintf(stderr, "usage: %s [--seed S] [--count N] [--trace]\n", words[0]);
    return 2;
  }
  unsigned long long wrong = 0;
  for (unsigned long long i = 0; i < options.count; ++i)
    if (!runSeed(options.seed + i, options.traces)) ++wrong;
  std::printf("%llu clients, %llu problems: %llu clients found something wrong\n",
              options.count,
              options.count * kProblemsPerClient,
              wrong);
  return wrong == 0 ? 0 : 1;
}
