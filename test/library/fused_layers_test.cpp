// Layers as one pass over tensors in any places: their results are those of cuDNN's functions, one
// after the other on the device.
#include <functional>

#include "fused_cases.hpp"

namespace ucudnn::test {
namespace {

class FusedLayersTest : public HostTensorsTest {};

/// Runs a call within the budget, or within what its refusal names.
cudnnStatus_t runWithin(std::size_t budget,
                        UcudnnHandle_t handle,
                        const std::function<std::size_t()>& named,
                        const std::function<cudnnStatus_t()>& call,
                        int* refused) {
  EXPECT_CUDNN(handle.setDeviceMemory(budget));
  const cudnnStatus_t status = call();
  if (status != CUDNN_STATUS_ALLOC_FAILED) return status;
  ++*refused;
  EXPECT_LT(budget, named());
  EXPECT_CUDNN(handle.setDeviceMemory(named()));
  return call();
}

TEST_F(FusedLayersTest, ResultsAreThoseOfCudnnsFunctions) {
  std::mt19937 random(2028);
  int refused = 0, unknown = 0;
  const int cases = onSimulator() ? 150 : 40;
  for (int i = 0; i < cases; ++i) {
    ConvolutionCase parameters = randomCase(random);
    parameters.batch = 1 + static_cast<int>(random() % 7);
    // On a GPU cuDNN's bias gradient reads several values at once: other gaps misalign them.
    if (!onSimulator()) parameters.batchGap *= 8;
    FusedCase layer(parameters, random);
    std::ostringstream what;
    what << "case " << i << ": " << parameters
         << (layer.layer().transposed != 0 ? " transposed" : "")
         << (layer.hasPooling() ? " pooled" : "");
    SCOPED_TRACE(what.str());
    const Handles handles;
    FusedCase::Outputs known;
    if (!layer.compute(handles.native, known)) {
      ++unknown;
      continue;
    }
    PlacedFused placed(layer, known, [&] { return static_cast<Place>(random() % 3); });
    const std::size_t budget = std::size_t{1} << (12 + random() % 10);
    const auto named = [&] { return bytesNamed(); };
    const bool keepsY = !layer.hasPooling() || random() % 3 != 0;
    const bool readsPooled = random() % 2 == 0;
    for (int again = 0; again < 2; ++again) {
      ASSERT_CUDNN(runWithin(
          budget,
          handles.ours,
          named,
          [&] { return placed.forward(handles.ours, keepsY); },
          &refused));
      placed.expectForward(known, keepsY);
      ASSERT_CUDNN(runWithin(
          budget,
          handles.ours,
          named,
          [&] { return placed.backward(handles.ours, readsPooled); },
          &refused));
      placed.expectBackward(known, parameters);
    }
    if (HasFailure()) return;
  }
  EXPECT_LE(unknown, cases / 4);
  EXPECT_LT(0, refused);
  EXPECT_LT(refused, onSimulator() ? cases : 2 * cases);  // of four calls each
}

/// A layer with bias, RELU and pooling, of seven samples.
ConvolutionCase sampleCase() {
  ConvolutionCase parameters = planeCase();
  parameters.batch = 7;
  parameters.input = {32, 20};
  return parameters;
}

/// A case with all that a layer may have, and what cuDNN makes of it.
struct WholeCase {
  explicit WholeCase(cudnnHandle_t native) {
    for (unsigned seed = 1; layer == nullptr || !isWhole(layer->layer()); ++seed) {
      random.seed(seed);
      layer = std::make_unique<FusedCase>(sampleCase(), random);
    }
    EXPECT_TRUE(layer->compute(native, known));
  }
  static bool isWhole(const ucudnnFusedLayer_t& layer) {
    return layer.bias != nullptr && layer.activation != nullptr && layer.pooling != nullptr &&
           layer.transposed == 0;
  }

  std::mt19937 random;
  std::unique_ptr<FusedCase> layer;
  FusedCase::Outputs known;
};

// One call takes the gradient of the activation that made its x; the call of the layer before, of
// none: as if each took its own.
TEST_F(FusedLayersTest, AnActivationsGradientIsTakenWithTheNextLayers) {
  const Handles handles;
  std::mt19937 random(3);
  std::unique_ptr<FusedCase> layer;
  do {
    layer = std::make_unique<FusedCase>(sampleCase(), random);
  } while (layer->hasPooling() || layer->layer().activation == nullptr ||
           layer->layer().transposed != 0);
  FusedCase::Outputs known;
  ASSERT_TRUE(layer->compute(handles.native, known));
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  ucudnnFusedLayer_t& given = layer->layer();
  // x and y are equal in size, so the activation could be that of x as well.
  Memory x(Place::kPinned, layer->x()), w(Place::kPinned, layer->w()), y(Place::kPinned, known.y);
  Memory dx(Place::kPinned, known.dx), dy(Place::kPinned, layer->dOutput());
  Memory masked(Place::kDevice, layer->dOutput()), expected(Place::kDevice, known.dx);
  const Factors factors(CUDNN_DATA_FLOAT, 1, 0);
  const auto differentiate = [&](Memory& written, Memory& gradient) {
    Memory from(Place::kDevice, written.read());
    return cudnnActivationBackward(handles.native,
                                   given.activation,
                                   factors.alpha(),
                                   given.y,
                                   from.get(),
                                   given.y,
                                   gradient.get(),
                                   given.y,
                                   from.get(),
                                   factors.beta(),
                                   given.y,
                                   gradient.get());
  };
  ASSERT_CUDNN(differentiate(y, masked));
  ASSERT_CUDNN(differentiate(x, expected));
  Memory already(Place::kPinned, masked.read());
  given.xActivation = given.activation;
  const auto run = [&](Memory& dOutput, void* knownY) {
    return ucudnnFusedBackward(handles.ours,
                               &given,
                               x.get(),
                               w.get(),
                               knownY,
                               nullptr,
                               dOutput.get(),
                               dx.get(),
                               nullptr,
                               nullptr);
  };
  const auto expectExpected = [&] {
    ASSERT_CUDA(cudaStreamSynchronize(nullptr));
    EXPECT_LE(distance(layer->geometryOf(UCUDNN_BACKWARD_DATA), dx.read(), expected.read()),
              onSimulator() ? 0 : toleranceBetweenAlgorithms());
  };
  ASSERT_CUDNN(run(dy, y.get()));
  expectExpected();
  ASSERT_CUDNN(run(already, nullptr));
  expectExpected();
}

// Tensors of samples are copied once for each part, the others once.
TEST_F(FusedLayersTest, EachTensorCrossesTheLinkOnce) {
  if (!onSimulator()) GTEST_SKIP() << "counts the simulator's calls";
  const Handles handles;
  WholeCase whole(handles.native);
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  PlacedFused placed(*whole.layer, whole.known, [] { return Place::kPinned; });
  const auto copies = [&](const char* function, const std::function<cudnnStatus_t()>& call) {
    EXPECT_CUDNN(call());
    const auto count = [&] {
      return callCount("cudaMemcpyAsync") + callCount("cudaMemcpy2DAsync");
    };
    const std::int64_t before = count(), calls = callCount(function);
    EXPECT_CUDNN(call());
    const std::int64_t parts = callCount(function) - calls;
    EXPECT_LT(1, parts);
    return std::make_pair(parts, count() - before);
  };
  const auto [parts, forward] =
      copies("cudnnPoolingForward", [&] { return placed.forward(handles.ours); });
  EXPECT_EQ(3 * parts + 2, forward);  // x, y and pooled; w and bias
  const auto [backwardParts, backward] =
      copies("cudnnPoolingBackward", [&] { return placed.backward(handles.ours); });
  EXPECT_EQ(5 * backwardParts + 3, backward);  // x, y, pooled, its gradient and dx; w, dw and db
  ASSERT_CUDA(cudaStreamSynchronize(nullptr));
}

TEST_F(FusedLayersTest, ACapturedCallRunsAtEachLaunch) {
  const Handles handles;
  WholeCase whole(handles.native);
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  PlacedFused first(*whole.layer, whole.known, [] { return Place::kPinned; });
  PlacedFused placed(*whole.layer, whole.known, [] { return Place::kPinned; });
  {
    Captured captured(handles.ours);
    EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, placed.forward(handles.ours));
    captured.end();
  }
  ASSERT_CUDNN(first.forward(handles.ours));
  ASSERT_CUDNN(first.backward(handles.ours));
  ASSERT_CUDA(cudaStreamSynchronize(nullptr));
  Captured captured(handles.ours);
  EXPECT_CUDNN(placed.forward(handles.ours));
  EXPECT_CUDNN(placed.backward(handles.ours));
  captured.end();
  for (int i = 0; i < 2; ++i) captured.launch();
  captured.wait();
  placed.expectForward(whole.known);
  placed.expectBackward(whole.known, sampleCase());
}

// Each function of a call fails once. The next call is right.
TEST_F(FusedLayersTest, FailuresStayWithTheirCall) {
  if (!onSimulator()) GTEST_SKIP() << "needs the simulator's failures";
  const Handles handles;
  WholeCase whole(handles.native);
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  PlacedFused placed(*whole.layer, whole.known, [] { return Place::kPinned; });
  ASSERT_CUDNN(placed.backward(handles.ours));
  const std::int64_t before = callCount();
  ASSERT_CUDNN(placed.backward(handles.ours));
  const std::int64_t calls = callCount() - before;
  int failures = 0;
  for (std::int64_t n = 1; n <= calls; ++n) {
    failCall(n);
    const cudnnStatus_t status = placed.backward(handles.ours);
    failCall(0);
    static_cast<void>(cudaGetLastError());
    failures += status != CUDNN_STATUS_SUCCESS ? 1 : 0;
    ASSERT_CUDA(cudaDeviceSynchronize());
    if (n % 8 != 0) continue;
    ASSERT_CUDNN(placed.backward(handles.ours));
    placed.expectBackward(whole.known, sampleCase());
    ASSERT_FALSE(HasFailure()) << n;
  }
  EXPECT_LT(calls / 2, failures);
}

TEST_F(FusedLayersTest, WhatIsMissingIsNamed) {
  const Handles handles;
  WholeCase whole(handles.native);
  PlacedFused placed(*whole.layer, whole.known, [] { return Place::kPinned; });
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, placed.forward(handles.ours));
  EXPECT_FALSE(linesWith(logFile(), {"UCUDNN_DEVICE_MEMORY is not set"}).empty());
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  ucudnnFusedLayer_t& layer = whole.layer->layer();
  const ucudnnFusedLayer_t complete = layer;
  const auto expectRefused = [&](const char* why) {
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, placed.forward(handles.ours)) << why;
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, placed.backward(handles.ours)) << why;
    layer = complete;
  };
  layer.size = 8;
  expectRefused("size");
  layer.w = nullptr;
  expectRefused("w");
  layer.pooled = nullptr;
  expectRefused("pooled");
  layer.pooled = layer.bias;
  expectRefused("batch sizes");
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            ucudnnFusedForward(handles.ours, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
  EXPECT_FALSE(linesWith(logFile(), {"ucudnnFusedForward fails", "batch sizes differ"}).empty());
  EXPECT_FALSE(linesWith(logFile(), {"ucudnnFusedForward fails", "descriptor is missing"}).empty());
}

}  // namespace
}  // namespace ucudnn::test
