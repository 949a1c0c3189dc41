// Feeds hostile inputs, as they are in test/corpus and mutated, to all that reads them.
//
//   ucudnn_fuzz SECONDS [SEED [KIND]]
//
// First the corpus, then mutations of it for so many seconds.
// Without a SEED it is 1: the same inputs in the same order each time. With a KIND (csv, variables,
// json, databases) only that. Exit status: 0, nothing was found; 1, something was, which is said,
// and the input lies in ucudnn-fuzz-finding. A crash or a hang (30 s) ends the program, and the
// input lies there too.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "support/log.hpp"
#include "support/temporary_directory.hpp"
#include "target.hpp"

namespace {

using namespace ucudnn::fuzz;

constexpr const char* kFinding = "ucudnn-fuzz-finding";
/// Processor time: others may want the processor, too.
constexpr double kMostSeconds = 5;
constexpr int kHangSeconds = 30;

/// Sanitizers make all slower.
#if defined(__SANITIZE_ADDRESS__)
constexpr double kSlowness = 4;
#else
constexpr double kSlowness = 1;
#endif

double processorSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void onHang(int) {
  constexpr char kMessage[] = "an input hangs; it lies in ucudnn-fuzz-finding\n";
  static_cast<void>(!::write(STDERR_FILENO, kMessage, sizeof kMessage - 1));
  ::_exit(1);
}

/// Runs one input, which lies in the finding's file meanwhile. False: it has found something.
bool survives(Target& target, const std::string& bytes, Mutator& mutator) {
  writeFile(kFinding, bytes);
  ::alarm(static_cast<unsigned>(kHangSeconds * kSlowness));
  const double begin = processorSeconds();
  try {
    target.run(bytes, mutator);
    require(processorSeconds() - begin < kMostSeconds * kSlowness, "it takes too long");
  } catch (const std::exception& error) {
    fmt::print(stderr,
               "{}: {}; the input of {} bytes lies in {}\n",
               target.name(),
               error.what(),
               bytes.size(),
               kFinding);
    return false;
  }
  ::alarm(0);
  return true;
}

bool survivesCorpus(Target& target) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    Mutator mutator(0);
    if (!survives(target, target.input(i), mutator)) return false;
  }
  return true;
}

bool survivesMutations(std::vector<std::unique_ptr<Target>>& targets,
                       std::uint64_t seed,
                       std::chrono::steady_clock::time_point end) {
  std::vector<long long> runs(targets.size());
  for (std::uint64_t round = 0; std::chrono::steady_clock::now() < end; ++round) {
    const std::size_t which = round % targets.size();
    Target& target = *targets[which];
    // Each round by itself, so that one can be repeated.
    Mutator mutator(seed * 1000003 + round);
    const std::string other = target.input(mutator.below(target.size()));
    const std::string base = target.input(mutator.below(target.size()));
    for (int i = 0; i < target.perRound(); ++i, ++runs[which]) {
      if (survives(target, mutator.mutate(base, other), mutator)) continue;
      fmt::print(stderr, "seed {}, round {}\n", seed, round);
      return false;
    }
  }
  for (std::size_t i = 0; i < targets.size(); ++i)
    fmt::print("{}: {} inputs of the corpus, {} mutated\n",
               targets[i]->name(),
               targets[i]->size(),
               runs[i]);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::atoi(argv[1]) <= 0) {
    fmt::print(stderr, "Usage: ucudnn_fuzz SECONDS [SEED [KIND]]\n");
    return 2;
  }
  const std::chrono::seconds time(std::atoi(argv[1]));
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::string kind = argc > 3 ? argv[3] : "";
  std::signal(SIGALRM, onHang);
  ucudnn::Log::instance().configure(ucudnn::LogLevel::kOff, "");
  const ucudnn::test::TemporaryDirectory directory;
  try {
    std::vector<std::unique_ptr<Target>> targets;
    if (kind.empty() || kind == "csv") targets.push_back(makeLayerTarget());
    if (kind.empty() || kind == "variables") targets.push_back(makeVariableTarget());
    if (kind.empty() || kind == "json") targets.push_back(makeJsonTarget(directory.path()));
    if (kind.empty() || kind == "databases")
      targets.push_back(makeDatabaseTarget(directory.path()));
    require(!targets.empty(), "no such kind: " + kind);
    for (const auto& target : targets)
      if (!survivesCorpus(*target)) return 1;
    if (!survivesMutations(targets, seed, std::chrono::steady_clock::now() + time)) return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  std::filesystem::remove(kFinding);
  return 0;
}
