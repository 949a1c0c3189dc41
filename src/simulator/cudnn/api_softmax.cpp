#include <cmath>
#include <vector>

#include "simulator/cudnn/elementwise.hpp"

using namespace ucudnn::simulator;

namespace {

// The shape of one number for each softmax: over (C, H, W) of a sample, or over C at each position.
TensorShape groupShape(TensorShape shape, cudnnSoftmaxMode_t mode) {
  for (std::size_t d = 1; d < static_cast<std::size_t>(shape.rank); ++d) {
    if (mode == CUDNN_SOFTMAX_MODE_INSTANCE || d == 1) shape.dims[d] = 1;
  }
  return packedShape(shape);
}

// Folds value(index) into one number for each softmax.
template <typename Fold, typename Value>
std::vector<double> foldGroups(const TensorShape& shape,
                               const TensorShape& groups,
                               double initial,
                               Fold&& fold,
                               Value&& value) {
  std::vector<double> results(elementCount(groups), initial);
  forEachOffset(shape, [&](std::int64_t, const auto& index) {
    double& result = results[static_cast<std::size_t>(broadcastOffset(groups, index))];
    result = fold(result, value(index));
  });
  return results;
}

void checkChoice(cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode) {
  require(algorithm >= CUDNN_SOFTMAX_FAST && algorithm <= CUDNN_SOFTMAX_LOG, "unknown algorithm");
  require(mode == CUDNN_SOFTMAX_MODE_INSTANCE || mode == CUDNN_SOFTMAX_MODE_CHANNEL,
          "unknown mode");
}

double add(double a, double b) {
  return a + b;
}

}  // namespace

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle,
                                                         cudnnSoftmaxAlgorithm_t algo,
                                                         cudnnSoftmaxMode_t mode,
                                                         const void* alpha,
                                                         const cudnnTensorDescriptor_t xDesc,
                                                         const void* x,
                                                         const void* beta,
                                                         const cudnnTensorDescriptor_t yDesc,
                                                         void* y) {
  return guarded(__func__, [&] {
    require(handle != nullptr, "null handle");
    checkChoice(algo, mode);
    const TensorShape from = scalarShape(xDesc);
    const TensorShape to = scalarShape(yDesc);
    require(from.sameDims(to) && from.type == to.type, "x and y do not match");
    const double scale = readFactor(alpha, to.type);
    const double keep = readFactor(beta, to.type);
    const TensorShape groups = groupShape(from, mode);
    submitMemory(handle, "softmaxForward", {{from, x, "x"}, {to, y, "y", true}}, [=] {
      const auto at = [&](const std::vector<double>& values, const auto& index) {
        return values[static_cast<std::size_t>(broadcastOffset(groups, index))];
      };
      // In double even FAST may subtract the maximum: the result is the same but for its overflow.
      const std::vector<double> maxima = foldGroups(
          from,
          groups,
          -HUGE_VAL,
          [](double a, double b) { return std::fmax(a, b); },
          [&](const auto& index) { return loadAt(from, x, index); });
      const std::vector<double> sums = foldGroups(from, groups, 0, add, [&](const auto& index) {
        return std::exp(loadAt(from, x, index) - at(maxima, index));
      });
      writeElements(to, y, keep, [&](const auto& index) {
        const double shifted = loadAt(from, x, index) - at(maxima, index);
        const double sum = at(sums, index);
        return scale *
               (algo == CUDNN_SOFTMAX_LOG ? shifted - std::log(sum) : std::exp(shifted) / sum);
      });
    });
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle,
                                                          cudnnSoftmaxAlgorithm_t algo,
                                                          cudnnSoftmaxMode_t mode,
                                                          const void* alpha,
                                                          const cudnnTensorDescriptor_t yDesc,
                                                          const void* y,
                                                          const cudnnTensorDescriptor_t dyDesc,
                                                          const void* dy,
                                                          const void* beta,
                                                          const cudnnTensorDescriptor_t dxDesc,
                                                          void* dx) {
  return guarded(__func__, [&] {
    require(handle != nullptr, "null handle");
    checkChoice(algo, mode);
    const TensorShape out = scalarShape(yDesc);
    const TensorShape gradient = scalarShape(dyDesc);
    const TensorShape to = scalarShape(dxDesc);
    require(out.sameDims(to) && gradient.sameDims(to) && out.type == to.type &&
                gradient.type == to.type,
            "the tensors do not match");
    require(out.sameStrides(gradient), "the strides of y and dy differ");
    const double scale = readFactor(alpha, to.type);
    const double keep = readFactor(beta, to.type);
    const TensorShape groups = groupShape(out, mode);
    submitMemory(
        handle,
        "softmaxBackward",
        {{out, y, "y"}, {gradient, dy, "dy"}, {to, dx, "dx", true}},
        [=] {
          const bool isLog = algo == CUDNN_SOFTMAX_LOG;
          const std::vector<double> sums = foldGroups(out, groups, 0, add, [&](const auto& index) {
            const double slope = loadAt(gradient, dy, index);
            return isLog ? slope : slope * loadAt(out, y, index);
          });
          writeElements(to, dx, keep, [&](const auto& index) {
            const double slope = loadAt(gradient, dy, index);
            const double result = loadAt(out, y, index);
            const double sum = sums[static_cast<std::size_t>(broadcastOffset(groups, index))];
            return scale * (isLog ? slope - std::exp(result) * sum : result * (slope - sum));
          });
        });
  });
}
