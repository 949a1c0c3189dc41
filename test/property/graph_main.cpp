// The property test of the graph API: random programs that know nothing of μ-cuDNN, five in each
// process, with libucudnn_preload.so in front of cuDNN on the simulator, and past it.
//
//   LD_PRELOAD=libucudnn_preload.so ucudnn_graph_property [--seed S] [--count N] [--client I]
//                                                         [--trace]
//
// runs the processes of the seeds S, ..., S + N - 1, or only the I-th program of each. It checks
// the following, by the word that a finding begins with:
//
//   SLOWER   in the end a call takes no longer on the device than the program's own plan, by more
//            than 1 %, where that fits the cap; of programs that time all their plans, without a
//            cap, no longer than the plan that they would have chosen alone
//   TOLD     no plan is told more workspace than it needs, unless a measured plan gains from it,
//            and the program has asked about no other plan of the graph
//   REFUSED  a program that finds a plan with cuDNN alone finds one, and its calls succeed
//   STATUS   plans are built and run with cuDNN's own statuses
//   MEMORY   nothing is written beyond what was passed
//   RESULT   results are those of the program's own plan
//   printed  nothing is
//
// Exit status 1: something was found, and printed with the seed that replays it.
#include <cstdio>
#include <string>

#include "cudnn_api.hpp"
#include "graph_scenario.hpp"
#include "seeds.hpp"

using namespace ucudnn::test;

namespace {

constexpr unsigned kSeconds = 120;  // a hang, not slowness

/// Reads and cuts off the line of counts at the end of a process's answer.
GraphCounts takeCounts(std::string& text) {
  GraphCounts counts;
  const std::size_t place = text.rfind("COUNTS");
  if (place == std::string::npos) return counts;
  std::sscanf(text.c_str() + place,
              "COUNTS %lld %lld %lld %lld",
              &counts.clients,
              &counts.capped,
              &counts.gained,
              &counts.refused);
  text.erase(place);
  return counts;
}

std::string complaints(const GraphScenario& scenario, const Seeds& seeds, GraphCounts& counts) {
  const ForkResult result = runForked(
      [&](const Answer& answer) {
        Report report(answer, seeds.traces);
        if (Api::preloaded().execute == Api::plain().execute)
          throw std::runtime_error("FAILED libucudnn_preload.so is not in front of cuDNN");
        const GraphCounts own = runGraphClients(scenario, seeds.client, report);
        answer.write("COUNTS " + std::to_string(own.clients) + " " + std::to_string(own.capped) +
                     " " + std::to_string(own.gained) + " " + std::to_string(own.refused) + "\n");
      },
      kSeconds);
  std::string text = result.answer;
  counts.add(takeCounts(text));
  return text + complaintsOf(result);
}

bool run(const Seeds& seeds, unsigned long long seed, GraphCounts& counts) {
  const GraphScenario scenario = randomGraphScenario(seed);
  return runSeed(
      seeds,
      seed,
      scenario,
      [&](const GraphScenario& each) { return complaints(each, seeds, counts); },
      scenario.text(),
      "misc/scripts/property.sh --graphs " + std::to_string(kGraphClients));
}

}  // namespace

int main(int count, char** words) {
  Seeds seeds;
  if (!seeds.parse(count, words, true)) {
    std::fprintf(stderr, "usage: %s [--seed S] [--count N] [--client I] [--trace]\n", words[0]);
    return 2;
  }
  unsigned long long wrong = 0;
  GraphCounts counts;
  for (unsigned long long i = 0; i < seeds.count; ++i)
    if (!run(seeds, seeds.first + i, counts)) ++wrong;
  std::printf("%lld programs ran (%lld beyond their cap, %lld faster), %lld find no plan\n",
              counts.clients,
              counts.capped,
              counts.gained,
              counts.refused);
  std::printf("%llu clients, %llu programs: %llu clients found something wrong\n",
              seeds.count,
              seeds.count * kGraphClients,
              wrong);
  // A run that hasn't tried anything proves nothing.
  constexpr unsigned long long kSomeClients = 20;
  const bool hasTried = counts.capped > 0 && counts.gained > 0 && counts.refused > 0;
  if (seeds.count >= kSomeClients && seeds.client < 0 && !hasTried) {
    std::printf("nothing was tried\n");
    return 1;
  }
  return wrong == 0 ? 0 : 1;
}
