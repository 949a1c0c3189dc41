// A program whose shapes change, as detection and the last batches of an epoch make them: it asks
// cuDNN's heuristics for every convolution, as PyTorch does, and waits once a pass.
#pragma once

#include <string>
#include <vector>

#include "../library/fixture.hpp"

namespace ucudnn::test {

/// A shape of the program; its three operations run one after another.
struct Shape {
  int batch, channels, filters, height, width, filter, pad, stride;
};

/// `count` shapes: random images, and random last batches of one image size.
std::vector<Shape> randomShapes(int count, unsigned long long seed);
/// AlexNet's convolutions at N=256.
std::vector<Shape> alexnetShapes();

/// Times of one run of a program, in ms: on the simulator the host's virtual clock, else wall time.
struct ProgramTimes {
  std::vector<double> passMs;
};

/// Goes `passes` times over the shapes; for each operation Get_v7 without a limit, the workspace's
/// size of its first algorithm, and the call with exactly that. Computes nothing on the simulator.
/// REQUIRES: one of UcudnnHandle_t and cudnnHandle_t. Throws on any error.
template <typename Handle>
ProgramTimes runProgram(const std::vector<Shape>& shapes, int passes);

/// The same in a process of its own, with these variables. Throws where that fails.
enum class Library { kPlain, kOurs };
ProgramTimes runProgramApart(Library library,
                             const std::vector<Shape>& shapes,
                             int passes,
                             const std::map<std::string, std::string>& environment);

}  // namespace ucudnn::test
