// A program of random image sizes and last batches, on plain cuDNN with its heuristics and on
// μ-cuDNN, each in a process of its own. Wall time on a GPU; on the simulator virtual time (set
// UCUDNN_SIMULATOR_MEASURING_COST=1).
//
//   ucudnn_shapes_benchmark [--sizes N] [--passes P] [--seed S] [--json FILE]
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "shapes.hpp"

using namespace ucudnn::test;

namespace {

struct Options {
  int sizes = 300;
  int passes = 2;
  int seed = 1;
  std::string json;
};

bool parse(int count, char** words, Options* options) {
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count) return false;
    const std::string name = words[i];
    if (name == "--json") {
      options->json = words[i + 1];
      continue;
    }
    int* const place = name == "--sizes"    ? &options->sizes
                       : name == "--passes" ? &options->passes
                       : name == "--seed"   ? &options->seed
                                            : nullptr;
    char* end = nullptr;
    const long number = std::strtol(words[i + 1], &end, 10);
    if (place == nullptr || *end != '\0' || number < 1 || number > 1000000) return false;
    *place = static_cast<int>(number);
  }
  return true;
}

std::string jsonOf(const Options& options, const ProgramTimes& plain, const ProgramTimes& ours) {
  std::ostringstream text;
  text << "{\"sizes\": " << options.sizes << ", \"seed\": " << options.seed << ", \"passes\": [";
  for (std::size_t pass = 0; pass < plain.passMs.size(); ++pass)
    text << (pass > 0 ? ", " : "") << "{\"cudnn_ms\": " << plain.passMs[pass]
         << ", \"ucudnn_ms\": " << ours.passMs[pass]
         << ", \"ratio\": " << ours.passMs[pass] / plain.passMs[pass] << "}";
  text << "]}\n";
  return text.str();
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!parse(count, words, &options)) {
    std::fprintf(stderr, "usage: %s [--sizes N] [--passes P] [--seed S] [--json FILE]\n", words[0]);
    return 2;
  }
  try {
    const auto shapes = randomShapes(options.sizes, static_cast<unsigned long long>(options.seed));
    const ProgramTimes plain = runProgramApart(Library::kPlain, shapes, options.passes, {});
    const ProgramTimes ours = runProgramApart(Library::kOurs, shapes, options.passes, {});
    std::printf("pass   cuDNN ms   ucudnn ms   ratio\n");
    for (std::size_t pass = 0; pass < plain.passMs.size(); ++pass)
      std::printf("%4zu %10.1f %11.1f %7.3f\n",
                  pass + 1,
                  plain.passMs[pass],
                  ours.passMs[pass],
                  ours.passMs[pass] / plain.passMs[pass]);
    if (!options.json.empty() &&
        !(std::ofstream(options.json) << jsonOf(options, plain, ours)).flush())
      throw std::runtime_error("can't write " + options.json);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
