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
#include <string>

#include "../support/temporary_directory.hpp"
#include "client.hpp"
#include "seeds.hpp"

using namespace ucudnn::test;

namespace {

constexpr unsigned kClientSeconds = 120;  // a hang, not slowness: a client takes a second at most

std::string complaints(const Scenario& scenario, bool traces) {
  const ForkResult result = runForked(
      [&](const Answer& answer) {
        Report report(answer, traces);
        runClient(scenario, report);
      },
      kClientSeconds);
  return result.answer + complaintsOf(result);
}

bool run(const Seeds& seeds, unsigned long long seed) {
  const TemporaryDirectory directory;
  Scenario scenario = randomScenario(seed);
  const std::string text = scenario.settingsText();
  const char* const log = std::getenv("UCUDNN_LOG_FILE");
  scenario.environment["UCUDNN_LOG_FILE"] = log != nullptr ? log : directory.file("log");
  return runSeed(
      seeds,
      seed,
      scenario,
      [&](const Scenario& each) { return complaints(each, seeds.traces); },
      text,
      "misc/scripts/property.sh " + std::to_string(kProblemsPerClient));
}

}  // namespace

int main(int count, char** words) {
  return runSeeds(count, words, kProblemsPerClient, run);
}
