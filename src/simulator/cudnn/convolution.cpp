#include "simulator/cudnn/convolution.hpp"

#include <algorithm>
#include <vector>

#include "simulator/cudnn/activation.hpp"
#include "simulator/cudnn/gemm.hpp"
#include "simulator/cudnn/sampling.hpp"
#include "simulator/cudnn/taps.hpp"
#include "simulator/cudnn/view.hpp"

namespace ucudnn::simulator {
namespace {

// Destination positions gathered at a time: eight panels, so that 512 channels of 3x3 taps (2.3 MB)
// still fit a second-level cache.
constexpr int kBlockColumns = 8 * kPanelColumns;

std::size_t toSize(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// Writes finished sums.
class Output {
 public:
  Output(const TensorShape& shape, void* base, const Epilogue& epilogue)
      : view_(shape),
        source_(epilogue.beta != 0 ? epilogue.sourceShape : shape),
        base_(base),
        epilogue_(epilogue) {}

  const View& view() const { return view_; }

  void write(int n, int c, int d, int h, int w, double sum) const {
    double value = epilogue_.alpha * sum;
    if (epilogue_.beta != 0) {
      value +=
          epilogue_.beta *
          loadElement(source_.type, source_.at(epilogue_.source, source_.offset(n, c, d, h, w)));
    }
    if (epilogue_.bias != nullptr) {
      const auto bytes = elementBytes(epilogue_.biasType);
      value += loadElement(epilogue_.biasType,
                           static_cast<const char*>(epilogue_.bias) +
                               toSize(c) * toSize(epilogue_.biasStride) * bytes);
    }
    value = activate(value, epilogue_.activation);
    storeElement(view_.type, view_.at(base_, view_.offset(n, c, d, h, w)), value);
  }

 private:
  View view_;
  View source_;
  void* base_;
  const Epilogue& epilogue_;
};

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
void convolveByPosition(const ConvolutionProblem& problem,
                        const void* source,
                        const void* w,
                        const TensorShape& sourceShape,
                        const Output& output) {
  const Taps taps(problem);
  const View from(sourceShape);
  const int groups = problem.groups();
  const int channels = sourceShape.dims[1] / groups;
  const int rows = output.view().dims[1] / groups;
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
          for (int i = 0; i < block.count; ++i) {
            const auto& p = block.position[toSize(i)];
            output.write(n,
                         group * rows + row,
                         p[0],
                         p[1],
                         p[2],
                         sums[toSize(row) * kBlockColumns + toSize(i)]);
          }
        }
      }
    }
  }
}

// Backward filter: sums over samples, then positions.
void convolveByTap(const ConvolutionProblem& problem,
                   const void* x,
                   const void* dy,
                   const Output& output) {
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
    const double* sum = sums.data();
    for (int k = 0; k < filters; ++k) {
      for (int c = 0; c < channels; ++c) {
        for (int d = 0; d < taps.filter[0]; ++d) {
          for (int h = 0; h < taps.filter[1]; ++h) {
            for (int w = 0; w < taps.filter[2]; ++w) {
              output.write(group * filters + k, c, d, h, w, *sum++);
            }
          }
        }
      }
    }
  }
}

// One output of forward or backward data, in the order of convolveByPosition.
double sumAtPosition(const ConvolutionProblem& problem,
                     const Taps& taps,
                     const View& from,
                     const void* source,
                     const View& filter,
                     const void* w,
                     const std::array<int, 5>& index) {
  const bool backward = problem.operation == Operation::kBackwardData;
  const int groups = problem.groups();
  const int channels = from.dims[1] / groups;
  const int rows = (backward ? problem.channels() : problem.filters()) / groups;
  const int group = index[1] / rows;
  double sum = 0;
  for (int c = 0; c < channels; ++c) {
    const int channel = group * channels + c;
    const int k = backward ? channel : index[1];
    const int filterChannel = backward ? index[1] % rows : c;
    for (int d = 0; d < taps.filter[0]; ++d) {
      const int z = taps.at(0, d, index[2]);
      for (int h = 0; z >= 0 && h < taps.filter[1]; ++h) {
        const int y = taps.at(1, h, index[3]);
        for (int t = 0; y >= 0 && t < taps.filter[2]; ++t) {
          const int x = taps.at(2, t, index[4]);
          if (x < 0) continue;
          sum += loadElement(filter.type, filter.at(w, filter.offset(k, filterChannel, d, h, t))) *
                 loadElement(from.type, from.at(source, from.offset(index[0], channel, z, y, x)));
        }
      }
    }
  }
  return sum;
}

// One output of backward filter, in the order of convolveByTap. `gradientAt` and `inputAt` load a
// number by its offset.
template <typename GradientAt, typename InputAt>
double sumAtTap(const ConvolutionProblem& problem,
                const Taps& taps,
                const View& input,
                const View& gradient,
                const std::array<int, 5>& index,
                GradientAt&& gradientAt,
                InputAt&& inputAt) {
  const int channels = problem.channels() / problem.groups();
  const int group = index[0] / (problem.filters() / problem.groups());
  const int channel = group * channels + index[1];
  const int* sourceW = taps.table[2].data() + toSize(index[4]) * toSize(taps.destination[2]);
  double sum = 0;
  for (int n = 0; n < problem.batch(); ++n) {
    for (int d = 0; d < taps.destination[0]; ++d) {
      const int sourceD = taps.at(0, index[2], d);
      for (int h = 0; sourceD >= 0 && h < taps.destination[1]; ++h) {
        const int sourceH = taps.at(1, index[3], h);
        if (sourceH < 0) continue;
        const std::int64_t gradientRow = gradient.offset(n, index[0], d, h, 0);
        const std::int64_t inputRow = input.offset(n, channel, sourceD, sourceH, 0);
        for (int w = 0; w < taps.destination[2]; ++w) {
          if (sourceW[w] < 0) continue;
          sum += gradientAt(gradientRow + w * gradient.strides[4]) *
                 inputAt(inputRow + sourceW[w] * input.strides[4]);
        }
      }
    }
  }
  return sum;
}

double sumAtTap(const ConvolutionProblem& problem,
                const Taps& taps,
                const View& input,
                const void* x,
                const View& gradient,
                const void* dy,
                const std::array<int, 5>& index) {
  if (input.type == CUDNN_DATA_FLOAT) {
    // Most of the time of a sampled run goes here, nearly all of it on floats.
    const auto loader = [](const void* base) {
      return [base](std::int64_t i) {
        return static_cast<double>(static_cast<const float*>(base)[i]);
      };
    };
    return sumAtTap(problem, taps, input, gradient, index, loader(dy), loader(x));
  }
  const auto loader = [](const View& view, const void* base) {
    return [&view, base](std::int64_t i) { return loadElement(view.type, view.at(base, i)); };
  };
  return sumAtTap(problem, taps, input, gradient, index, loader(gradient, dy), loader(input, x));
}

void* outputBase(const ConvolutionProblem& problem, const ConvolutionData& data) {
  switch (problem.operation) {
    case Operation::kForward:
      return data.y;
    case Operation::kBackwardData:
      return data.x;
    default:
      return data.w;
  }
}

}  // namespace

void convolveFull(const ConvolutionProblem& problem,
                  const ConvolutionData& data,
                  const Epilogue& epilogue) {
  const Output output(outputShape(problem), outputBase(problem, data), epilogue);
  switch (problem.operation) {
    case Operation::kForward:
      return convolveByPosition(problem, data.x, data.w, problem.x, output);
    case Operation::kBackwardData:
      return convolveByPosition(problem, data.y, data.w, problem.y, output);
    case Operation::kBackwardFilter:
      return convolveByTap(problem, data.x, data.y, output);
  }
}

void convolveSampled(const ConvolutionProblem& problem,
                     const ConvolutionData& data,
                     const Epilogue& epilogue,
                     const void* allocationBase,
                     std::size_t allocationBytes) {
  void* base = outputBase(problem, data);
  const Output output(outputShape(problem), base, epilogue);
  const Taps taps(problem);
  const View x(problem.x);
  const View w(problem.w);
  const View y(problem.y);
  const auto first =
      toSize(static_cast<const char*>(base) - static_cast<const char*>(allocationBase));
  forEachSample(output.view(), first, allocationBytes, [&](const std::array<int, 5>& i) {
    double sum = 0;
    switch (problem.operation) {
      case Operation::kForward:
        sum = sumAtPosition(problem, taps, x, data.x, w, data.w, i);
        break;
      case Operation::kBackwardData:
        sum = sumAtPosition(problem, taps, y, data.y, w, data.w, i);
        break;
      case Operation::kBackwardFilter:
        sum = sumAtTap(problem, taps, x, data.x, y, data.y, i);
        break;
    }
    output.write(i[0], i[1], i[2], i[3], i[4], sum);
  });
}

}  // namespace ucudnn::simulator
