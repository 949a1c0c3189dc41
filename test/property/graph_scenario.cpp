#include "graph_scenario.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "../support/simulator.hpp"
#include "graph_comparison.hpp"

namespace ucudnn::test {
namespace {

constexpr double kFavored = 1.0 / 32;  // of its time, so that it is the fastest by far

/// A handle and a stream of a program.
class Session {
 public:
  Session(const Api& api, bool ownsStream) : api_(api) {
    check(api.create(&handle_), "cudnnCreate");
    if (!ownsStream) return;
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(api.setStream(handle_, stream_), "cudnnSetStream");
  }
  ~Session() {
    api_.destroy(handle_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  GraphClient client(const GraphProgram& program, GraphTensors& tensors) const {
    return {api_, handle_, stream_, program.problem, program.habits, tensors};
  }

 private:
  const Api& api_;
  cudnnHandle_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

Random randomOf(const GraphScenario& scenario, int client) {
  return Random(scenario.seed * 1000 + static_cast<std::uint64_t>(client));
}

GraphProblem problemOf(const GraphScenario& scenario, int client) {
  Random random = randomOf(scenario, client).split();
  return randomGraphProblem(random, scenario.computes);
}

/// A size at which something changes, or beside it.
std::size_t interestingBytes(Random& random, const std::vector<std::size_t>& needs) {
  const std::size_t need = needs.empty() ? 0 : random.pick(needs);
  return random.pick<std::size_t>({0,
                                   need,
                                   need,
                                   need > 0 ? need - 1 : 0,
                                   need / 2,
                                   need * 2,
                                   std::size_t{64} << 10,
                                   std::size_t{1} << 20,
                                   std::size_t{1} << 30});
}

/// The workspace that its plans need is filled in later.
GraphProgram randomProgram(const GraphScenario& scenario, int client) {
  Random random = randomOf(scenario, client);
  random.next();  // the problem's
  GraphProgram program;
  program.repeats = client > 0 && random.chance(0.3);
  program.problem = problemOf(scenario, program.repeats ? random.between(0, client - 1) : client);
  Habits& habits = program.habits;
  habits.way = static_cast<Way>(random.between(0, 3));
  habits.modes = {CUDNN_HEUR_MODE_A};
  if (random.chance(0.5)) habits.modes.push_back(CUDNN_HEUR_MODE_FALLBACK);
  habits.barsTensorCores = random.chance(0.25);
  habits.barsNondeterministic = random.chance(0.2);
  habits.barsCompiled = random.chance(0.2);
  habits.allocatesEachTime = random.chance(0.3);
  habits.remakesPacks = random.chance(0.7);
  habits.ownsStream = random.chance(0.8);
  habits.executions = random.between(20, 60);
  return program;
}

void chooseSizes(GraphProgram& program, Random random, const std::vector<std::size_t>& needs) {
  Habits& habits = program.habits;
  if (random.chance(0.5)) program.capBytes = interestingBytes(random, needs);
  if (random.chance(0.4)) program.freeBytes = interestingBytes(random, needs);
  if (random.chance(0.7)) habits.boundBytes = interestingBytes(random, needs);
  if (habits.way == Way::kPyTorch || habits.way == Way::kPyTorchBenchmark)
    habits.boundBytes = kUnlimited;
  if (habits.way != Way::kFrontend) return;
  habits.asksAllFirst = random.chance(0.5);
  // An older cuDNN does not tell a configuration's workspace.
  habits.boundsConfigurations = random.chance(0.5) && cudnnGetVersion() >= 90200;
  if (habits.boundBytes != kUnlimited && random.chance(0.5)) habits.passes = Passes::kBound;
  if (habits.boundsConfigurations && random.chance(0.3))
    habits.passes = Passes::kConfigurationsWorkspace;
}

std::vector<std::size_t> needsOf(const GraphClient& client) {
  std::vector<std::size_t> needs;
  for (int i = 0; i < static_cast<int>(client.configurations().size()); ++i)
    if (const auto need = client.needOf(i)) needs.push_back(*need);
  return needs;
}

void favor(const Descriptor& configuration) {
  scaleTime(configuration.get(), kFavored);
}

/// Runs with so much memory free. If the program does not survive that, it is the program's
/// failure.
ClientResult act(GraphClient& client, std::size_t freeBytes) {
  ClientResult result;
  setMemory(0, freeBytes);
  try {
    result = client.act();
  } catch (const std::exception& error) {
    result.failure = error.what();
    result.chosen = -1;
  }
  setMemory(0, kAmple);
  return result;
}

void setCap(std::size_t bytes) {
  if (bytes == kUnlimited)
    ::unsetenv("UCUDNN_WORKSPACE_LIMIT");
  else
    ::setenv("UCUDNN_WORKSPACE_LIMIT", (std::to_string(bytes) + "B").c_str(), 1);
}

/// `leastCap`: of the programs so far.
void runProgram(const GraphScenario& scenario,
                int client,
                std::size_t& leastCap,
                Report& report,
                GraphCounts& counts) {
  GraphProgram program = randomProgram(scenario, client);
  program.leastCapBefore = leastCap;
  const std::int64_t violations = violationCount();
  GraphTensors tensors(program.problem, scenario.computes);
  const Session plainSession(Api::plain(), program.habits.ownsStream);
  Random random = randomOf(scenario, client + 100);
  {
    const GraphClient asked = plainSession.client(program, tensors);
    chooseSizes(program, random.split(), needsOf(asked));
  }
  GraphClient plainClient = plainSession.client(program, tensors);
  const ClientResult plain = act(plainClient, program.freeBytes);
  program.isFavored = plain.chosen >= 0 && !program.repeats && random.chance(0.5);
  if (program.isFavored)
    favor(plainClient.configurations()[static_cast<std::size_t>(plain.chosen)]);
  report.trace(std::to_string(client) + ": " + program.text());
  leastCap = std::min(leastCap, program.capBytes);
  setCap(program.capBytes);
  const Session session(Api::preloaded(), program.habits.ownsStream);
  GraphClient oursClient = session.client(program, tensors);
  const ClientResult ours = act(oursClient, program.freeBytes);
  std::vector<std::string> findings = compare(scenario, program, plainClient, plain, ours, counts);
  if (!tensors.inputsAreIntact()) findings.emplace_back("RESULT an input was overwritten");
  if (violationCount() != violations)
    findings.push_back("MEMORY " + std::to_string(violationCount() - violations) + " violations");
  for (const std::string& finding : findings)
    report.fail(program.text(), "client " + std::to_string(client) + " " + finding);
}

}  // namespace

std::string GraphScenario::text() const {
  std::string text = computes ? "computes" : "computes nothing";
  for (const auto& [name, value] : environment) text += " " + name + "=" + value;
  return text + " times=" + std::to_string(timesSeed) + (usesDatabase ? " database" : "");
}

GraphScenario randomGraphScenario(std::uint64_t seed) {
  Random random(seed);
  GraphScenario scenario;
  scenario.seed = seed;
  scenario.computes = random.chance(0.2);
  if (random.chance(0.5)) scenario.environment["UCUDNN_BENCHMARK_SHARE"] = "always";
  if (random.chance(0.1))
    scenario.environment["UCUDNN_BATCH_SIZE_POLICY"] = random.pick({"undivided", "all"});
  scenario.usesDatabase = random.chance(0.25);
  scenario.timesSeed = random.chance(0.9) ? random.next() % 1000000 + 1 : 0;
  return scenario;
}

GraphCounts runGraphClients(const GraphScenario& scenario, int only, Report& report) {
  for (const auto& [name, value] : scenario.environment) ::setenv(name.c_str(), value.c_str(), 1);
  setArithmetic(scenario.computes ? Arithmetic::kFull : Arithmetic::kOff);
  setRandomTimes(scenario.timesSeed);
  GraphCounts counts;
  std::size_t leastCap = kUnlimited;
  for (int i = 0; i < kGraphClients; ++i)
    if (only < 0 || only == i) runProgram(scenario, i, leastCap, report, counts);
  return counts;
}

}  // namespace ucudnn::test
