// Random clients. Sizes are small, so that thousands run in a minute; limits and times are random,
// so that plans are as odd as those of large problems.
#include <algorithm>
#include <sstream>

#include "scenario.hpp"

namespace ucudnn::test {
namespace {

/// A convolution's multiplications are at most that many, for a benchmark runs it some hundred
/// times.
constexpr double kLargestWork = 3e4;
/// Backward data goes over every position of the input, also over those that a stride leaves out.
constexpr double kLargestBackwardWork = 3e5;

int outputSize(const ConvolutionCase& c, std::size_t d) {
  const int reach = (c.filter[d] - 1) * c.dilation[d] + 1;
  return (c.input[d] + 2 * c.pad[d] - reach) / c.stride[d] + 1;
}

/// As a part of what is allowed.
double work(const ConvolutionCase& c) {
  double forward = static_cast<double>(c.batch) * c.parts * c.filters * c.channels / c.groups;
  double backward = forward;
  for (std::size_t d = 0; d < c.input.size(); ++d) {
    forward *= static_cast<double>(c.filter[d]) * outputSize(c, d);
    backward *= static_cast<double>(c.filter[d]) * c.input[d];
  }
  return std::max(forward / kLargestWork, backward / kLargestBackwardWork);
}

/// Fewer channels, then a smaller image, then fewer samples.
void shrink(ConvolutionCase& c) {
  while (work(c) > 1 && c.channels + c.filters > 2 * c.groups) {
    c.channels = std::max(1, c.channels / c.groups / 2) * c.groups;
    c.filters = std::max(1, c.filters / c.groups / 2) * c.groups;
  }
  for (std::size_t d = 0; d < c.input.size() && work(c) > 1; ++d)
    c.input[d] = std::max(1, (c.filter[d] - 1) * c.dilation[d] + 2 - 2 * c.pad[d]);
  while (work(c) > 1 && c.batch > 1) c.batch = (c.batch + 1) / 2;
}

cudnnDataType_t randomType(Random& random) {
  if (random.chance(0.5)) return CUDNN_DATA_FLOAT;
  return random.pick({CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE});
}

std::size_t randomRank(Random& random) {
  if (random.chance(0.75)) return 2;
  return random.chance(0.6) ? 3 : 1;
}

/// One spatial dimension. Filters of 3 and 5 without stride and dilation suit the transforms, whose
/// workspaces make plans interesting.
void addDimension(ConvolutionCase& c, Random& random, bool plain, int filter) {
  const int dilation = plain ? 1 : random.pick({1, 1, 2, 3});
  const int reach = (filter - 1) * dilation + 1;
  c.filter.push_back(filter);
  c.dilation.push_back(dilation);
  c.stride.push_back(plain ? 1 : random.pick({1, 2, 2, 3}));
  c.pad.push_back(random.chance(0.5) ? reach / 2 : random.between(0, filter - 1));
  c.input.push_back(std::max(1, reach - 2 * c.pad.back()) + random.between(0, 9));
}

ConvolutionCase randomCase(Random& random) {
  ConvolutionCase c;
  c.type = randomType(random);
  c.math = random.pick({CUDNN_DEFAULT_MATH,
                        CUDNN_TENSOR_OP_MATH,
                        CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
                        CUDNN_FMA_MATH});
  c.format = random.chance(0.8) ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
  c.mode = random.chance(0.8) ? CUDNN_CROSS_CORRELATION : CUDNN_CONVOLUTION;
  c.groups = random.chance(0.8) ? 1 : random.between(2, 4);
  // Four at a time, as engines read them: then copies may be made for these.
  const int atOnce = random.chance(0.25) ? 4 : 1;
  const int most = atOnce == 1 ? 6 : 2;
  c.channels = c.groups * atOnce * random.between(1, most);
  c.filters = c.groups * atOnce * random.between(1, most);
  c.parts = random.chance(0.85) ? 1 : random.between(2, 3);
  c.batchGap = random.chance(0.85) ? 0 : random.between(1, 40);
  c.batch = random.chance(0.1) ? random.between(17, 40) : random.between(1, 16);
  const std::size_t rank = randomRank(random);
  const bool plain = random.chance(0.7);
  const int square = random.pick({1, 3, 3, 3, 5, 5, 2, 4, 7});
  for (auto* list : {&c.input, &c.filter, &c.pad, &c.stride, &c.dilation}) list->clear();
  for (std::size_t d = 0; d < rank; ++d)
    addDimension(c, random, plain, random.chance(0.9) ? square : random.between(1, 4));
  shrink(c);
  return c;
}

ProblemChoice randomProblem(Random& random) {
  ProblemChoice problem;
  problem.convolution = randomCase(random);
  problem.alpha = random.chance(0.7) ? 1 : random.pick({0.5, -2.0, 0.0});
  problem.beta = random.pick({0.0, 0.0, 0.5, 1.0});
  problem.activation = random.pick({CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY});
  problem.zInPlace = random.chance(0.3);
  return problem;
}

void chooseSettings(Scenario& scenario, Random& random) {
  auto& environment = scenario.environment;
  const auto choose = [&](double probability, const char* name, std::string value) {
    if (random.chance(probability)) environment[name] = std::move(value);
  };
  const auto text = [](auto number) { return std::to_string(number); };
  environment["UCUDNN_BATCH_SIZE_POLICY"] =
      random.pick({"undivided", "powerOfTwo", "powerOfTwo", "all"});
  scenario.deterministic = random.chance(0.15);
  environment["UCUDNN_DETERMINISTIC"] = scenario.deterministic ? "1" : "0";
  environment["UCUDNN_BORROW_OUTPUT"] = random.chance(0.2) ? "0" : "1";
  const auto limit = random.pick<std::size_t>(
      {0, 1, 511, 4096, 65536, std::size_t{1} << 20, std::size_t{16} << 30});
  if (random.chance(0.4)) {
    scenario.defaultLimit = limit;
    environment["UCUDNN_DEFAULT_WORKSPACE_LIMIT"] = text(limit);
  }
  if (random.chance(0.3)) {
    scenario.totalBytes = std::size_t{512} << random.between(0, 14);
    environment["UCUDNN_TOTAL_WORKSPACE_SIZE"] = text(scenario.totalBytes);
    environment["UCUDNN_TOTAL_WORKSPACE_POLICY"] = random.pick({"divide", "share", "auto"});
  }
  choose(0.5, "UCUDNN_BENCHMARK_SHARE", random.pick<std::string>({"0", "0.02", "0.5", "always"}));
  choose(0.3, "UCUDNN_BENCHMARK_MEMORY", random.pick<std::string>({"0", "4096", "1MiB", "1GiB"}));
  choose(0.5, "UCUDNN_KERNELS", random.pick<std::string>({"engines", "all", "all"}));
  choose(0.3, "UCUDNN_TUNING", "fast");
  choose(0.3, "UCUDNN_GRAPH_MEMORY", random.pick<std::string>({"0", "4096", "256KiB"}));
  choose(0.05, "UCUDNN_BENCHMARK_STALL", "1");
  choose(0.05, "UCUDNN_EQUIVALENCE_TEST", "1");
  if (scenario.devices > 1) {
    environment["UCUDNN_SIMULATOR_DEVICES"] = "H200,H200";
    choose(0.4, "UCUDNN_BENCHMARK_DEVICES", random.pick<std::string>({"all", "0", "1"}));
  }
  environment["UCUDNN_SIMULATOR_RANDOM_TIMES"] = text(scenario.seed + 1);
  choose(0.15, "UCUDNN_MAX_ERROR", random.pick<std::string>({"1e-2", "1e-6", "1e-9"}));
}

/// The device's memory is so slow that images of this size are cut in bands, if there are few.
void playInBands(Scenario& scenario, Random& random) {
  scenario.environment["UCUDNN_SIMULATOR_DEVICES"] = "Tiny";
  for (ProblemChoice& problem : scenario.problems) {
    ConvolutionCase& c = problem.convolution;
    c.batch = std::min(c.batch, random.between(1, 3));
    if (c.format == CUDNN_TENSOR_NCHW && c.math == CUDNN_FMA_MATH) c.math = CUDNN_DEFAULT_MATH;
  }
}

}  // namespace

std::string Scenario::settingsText() const {
  std::ostringstream text;
  for (const auto& [name, value] : environment) text << name << '=' << value << ' ';
  text << "threads=" << threads;
  if (usesDatabase) text << " database";
  if (limitsMemory) text << " short-memory";
  return text.str();
}

Scenario randomScenario(std::uint64_t seed) {
  Random random(seed * 0x5851F42D4C957F2DU + 1);
  Scenario scenario;
  scenario.seed = seed;
  scenario.devices = random.chance(0.25) ? 2 : 1;
  scenario.threads = random.chance(0.5) ? 1 : random.between(2, 3);
  scenario.usesDatabase = random.chance(0.25);
  scenario.limitsMemory = random.chance(0.3);
  scenario.rounds = random.between(8, 20);
  chooseSettings(scenario, random);
  for (int i = 0; i < kProblemsPerClient; ++i) scenario.problems.push_back(randomProblem(random));
  if (scenario.devices == 1 && random.chance(0.4)) playInBands(scenario, random);
  return scenario;
}

}  // namespace ucudnn::test
