// Single outputs of a convolution.
#include "simulator/cudnn/convolution_output.hpp"
#include "simulator/cudnn/sampling.hpp"
#include "simulator/cudnn/taps.hpp"

namespace ucudnn::simulator {
namespace {

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

}  // namespace

void convolveSampled(const ConvolutionProblem& problem,
                     const ConvolutionData& data,
                     const Epilogue& epilogue,
                     const void* allocationBase,
                     std::size_t allocationBytes) {
  void* base = outputOf(problem, data);
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
