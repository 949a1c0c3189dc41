#include "simulator/cudnn/convolution.hpp"

#include <algorithm>
#include <vector>

#include "simulator/cudnn/convolution_output.hpp"
#include "simulator/cudnn/gemm.hpp"
#include "simulator/cudnn/known_sums.hpp"
#include "simulator/cudnn/taps.hpp"

namespace ucudnn::simulator {
namespace {

// Destination positions gathered at a time: eight panels, so that 512 channels of 3x3 taps (2.3 MB)
// still fit a second-level cache.
constexpr int kBlockColumns = 8 * kPanelColumns;

// The destination positions of one block, as coordinates.
struct Block {
  int count = 0;
  std::array<std::array<int, 3>, kBlockColumns> position;

  Block(const Taps& taps, int first) {
    count = std::min(kBlockColumns, taps.destinationSize() - first);
    for (int i = 0; i < count; ++i) {
      const int p = first + i;
      position[toSize(i)] = {p / (taps.destination[1] * taps.destination[2]),
                             p / taps.destination[2] % taps.destination[1],
                             p % taps.destination[2]};
    }
  }
};

// Where each tap finds its source in one channel for each position of the block; -1: nowhere.
void findSources(const Taps& taps, const Block& block, std::vector<int>* sources) {
  sources->clear();
  for (int d = 0; d < taps.filter[0]; ++d) {
    for (int h = 0; h < taps.filter[1]; ++h) {
      for (int w = 0; w < taps.filter[2]; ++w) {
        for (int i = 0; i < block.count; ++i) {
          const auto& position = block.position[toSize(i)];
          const int z = taps.at(0, d, position[0]);
          const int y = taps.at(1, h, position[1]);
          const int x = taps.at(2, w, position[2]);
          sources->push_back(
              z < 0 || y < 0 || x < 0 ? -1 : (z * taps.source[1] + y) * taps.source[2] + x);
        }
      }
    }
  }
}

// Panels whose columns are the block's positions and whose rows are (channel, tap).
void gatherByPosition(const Taps& taps,
                      const Block& block,
                      const std::vector<int>& sources,
                      const double* slab,
                      int channels,
                      double* panels) {
  const int depth = channels * taps.filterSize();
  for (int channel = 0; channel < channels; ++channel) {
    const double* from = slab + toSize(channel) * toSize(taps.sourceSize());
    for (int tap = 0; tap < taps.filterSize(); ++tap) {
      const int row = channel * taps.filterSize() + tap;
      const int* source = sources.data() + toSize(tap) * toSize(block.count);
      for (int i = 0; i < block.count; ++i) {
        const auto panel = toSize(i / kPanelColumns) * toSize(depth) + toSize(row);
        panels[panel * kPanelColumns + toSize(i % kPanelColumns)] =
            source[i] < 0 ? 0 : from[source[i]];
      }
    }
  }
}

// Panels whose columns are (channel, tap) and whose rows are the block's positions.
void gatherByTap(const Taps& taps,
                 const Block& block,
                 const std::vector<int>& sources,
                 const double* slab,
                 int channels,
                 double* panels) {
  for (int channel = 0; channel < channels; ++channel) {
    const double* from = slab + toSize(channel) * toSize(taps.sourceSize());
    for (int tap = 0; tap < taps.filterSize(); ++tap) {
      const int column = channel * taps.filterSize() + tap;
      const int* source = sources.data() + toSize(tap) * toSize(block.count);
      double* to = panels + toSize(column / kPanelColumns) * toSize(block.count) * kPanelColumns +
                   toSize(column % kPanelColumns);
      for (int i = 0; i < block.count; ++i) {
        to[toSize(i) * kPanelColumns] = source[i] < 0 ? 0 : from[source[i]];
      }
    }
  }
}

// One group's filters as the left factor: rows are output channels of the operation, columns
// (reduced channel, tap).
std::vector<double> readFilters(const ConvolutionProblem& problem, const void* w, int group) {
  const View view(problem.w);
  const int filters = problem.filters() / problem.groups();
  const int channels = view.dims[1];
  const int taps = view.dims[2] * view.dims[3] * view.dims[4];
  std::vector<double> rows(toSize(filters) * toSize(channels) * toSize(taps));
  std::vector<double> one(toSize(channels) * toSize(taps));
  const bool transposed = problem.operation == Operation::kBackwardData;
  for (int k = 0; k < filters; ++k) {
    readSample(view, w, group * filters + k, 0, channels, one.data());
    for (int c = 0; c < channels; ++c) {
      const int row = transposed ? c * filters + k : k * channels + c;
      std::copy_n(
          one.data() + toSize(c) * toSize(taps), taps, rows.data() + toSize(row) * toSize(taps));
    }
  }
  return rows;
}

// Forward and backward data: each output is a dot product of a filter row and a gathered column.
// `out` has space for the sums of all outputs.
void convolveByPosition(const ConvolutionProblem& problem,
                        const void* source,
                        const void* w,
                        const TensorShape& sourceShape,
                        double* out) {
  const Taps taps(problem);
  const View from(sourceShape);
  const int groups = problem.groups();
  const int channels = sourceShape.dims[1] / groups;
  const int rows = View(outputShape(problem)).dims[1] / groups;
  const int depth = channels * taps.filterSize();
  std::vector<double> slab(toSize(channels) * toSize(taps.sourceSize()));
  std::vector<double> panels(toSize(depth) * kBlockColumns);
  std::vector<double> sums(toSize(rows) * kBlockColumns);
  std::vector<int> sources;
  for (int group = 0; group < groups; ++group) {
    const std::vector<double> filters = readFilters(problem, w, group);
    for (int n = 0; n < problem.batch(); ++n) {
      readSample(from, source, n, group * channels, channels, slab.data());
      for (int first = 0; first < taps.destinationSize(); first += kBlockColumns) {
        const Block block(taps, first);
        findSources(taps, block, &sources);
        gatherByPosition(taps, block, sources, slab.data(), channels, panels.data());
        std::fill(sums.begin(), sums.end(), 0.0);
        multiplyAdd(rows,
                    block.count,
                    depth,
                    filters.data(),
                    depth,
                    panels.data(),
                    sums.data(),
                    kBlockColumns);
        for (int row = 0; row < rows; ++row) {
          const auto channel = toSize(n * groups + group) * toSize(rows) + toSize(row);
          std::copy_n(&sums[toSize(row) * kBlockColumns],
                      block.count,
                      out + channel * toSize(taps.destinationSize()) + toSize(first));
        }
      }
    }
  }
}

// Backward filter: sums over samples, then positions. `out` is as for convolveByPosition.
void convolveByTap(const ConvolutionProblem& problem, const void* x, const void* dy, double* out) {
  const Taps taps(problem);
  const View input(problem.x);
  const View gradient(problem.y);
  const int groups = problem.groups();
  const int channels = problem.channels() / groups;
  const int filters = problem.filters() / groups;
  const int columns = channels * taps.filterSize();
  const int positions = taps.destinationSize();
  const int paddedColumns = (columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  std::vector<double> slab(toSize(channels) * toSize(taps.sourceSize()));
  std::vector<double> rows(toSize(filters) * toSize(positions));
  std::vector<double> panels(toSize(paddedColumns) * kBlockColumns);
  std::vector<double> sums(toSize(filters) * toSize(columns));
  std::vector<int> sources;
  for (int group = 0; group < groups; ++group) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int n = 0; n < problem.batch(); ++n) {
      readSample(input, x, n, group * channels, channels, slab.data());
      readSample(gradient, dy, n, group * filters, filters, rows.data());
      for (int first = 0; first < positions; first += kBlockColumns) {
        const Block block(taps, first);
        findSources(taps, block, &sources);
        gatherByTap(taps, block, sources, slab.data(), channels, panels.data());
        multiplyAdd(filters,
                    columns,
                    block.count,
                    rows.data() + first,
                    positions,
                    panels.data(),
                    sums.data(),
                    columns);
      }
    }
    out = std::copy(sums.begin(), sums.end(), out);
  }
}

std::shared_ptr<const Sums> sumsOf(const ConvolutionProblem& problem,
                                   const ConvolutionData& data,
                                   const View& output) {
  if (auto known = KnownSums::instance().find(problem, data)) return known;
  std::size_t count = 1;
  for (const int size : output.dims) count *= toSize(size);
  auto sums = std::make_shared<Sums>(count);
  if (problem.operation == Operation::kForward)
    convolveByPosition(problem, data.x, data.w, problem.x, sums->data());
  else if (problem.operation == Operation::kBackwardData)
    convolveByPosition(problem, data.y, data.w, problem.y, sums->data());
  else
    convolveByTap(problem, data.x, data.y, sums->data());
  KnownSums::instance().keep(problem, data, sums);
  return sums;
}

/// Samples [first, first + count) of the problem and of its data.
ConvolutionProblem partOf(ConvolutionProblem problem, ConvolutionData& data, int first, int count) {
  const auto move = [first](const TensorShape& shape, void*& pointer) {
    pointer = static_cast<char*>(pointer) +
              toSize(first) * toSize(shape.strides[0]) * elementBytes(shape.type);
  };
  move(problem.x, data.x);
  move(problem.y, data.y);
  problem.x.dims[0] = problem.y.dims[0] = count;
  return problem;
}

void convolvePart(const ConvolutionProblem& problem,
                  const ConvolutionData& data,
                  int first,
                  const Output& output) {
  const View part(outputShape(problem));
  const std::shared_ptr<const Sums> sums = sumsOf(problem, data, part);
  const double* sum = sums->data();
  for (int n = 0; n < part.dims[0]; ++n)
    for (int c = 0; c < part.dims[1]; ++c)
      for (int d = 0; d < part.dims[2]; ++d)
        for (int h = 0; h < part.dims[3]; ++h)
          for (int w = 0; w < part.dims[4]; ++w) output.write(first + n, c, d, h, w, *sum++);
}

}  // namespace

void convolveFull(const ConvolutionProblem& problem,
                  const ConvolutionData& data,
                  const Epilogue& epilogue) {
  constexpr std::size_t kMostSums = std::size_t{1} << 23;
  const Output output(outputShape(problem), outputOf(problem, data), epilogue);
  if (problem.operation == Operation::kBackwardFilter)
    return convolvePart(problem, data, 0, output);
  const int step = elementCount(outputShape(problem)) <= kMostSums ? problem.batch() : 1;
  for (int first = 0; first < problem.batch(); first += step) {
    ConvolutionData part = data;
    const ConvolutionProblem each = partOf(problem, part, first, step);
    convolvePart(each, part, first, output);
  }
}

}  // namespace ucudnn::simulator
