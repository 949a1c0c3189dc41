// Operations beside the convolutions on tensors in host memory: their results are those of tensors
// on the device, bit by bit where nothing is added up.
#include <functional>
#include <sstream>

#include "host_tensors.hpp"
#include "small_tensors.hpp"

namespace ucudnn::test {
namespace {

enum class Kind { kAdd, kBias, kActivate, kActivateBack, kPool, kPoolBack, kSoftmax, kSoftmaxBack };

/// One operation with its tensors, the output last.
class SmallLayer {
 public:
  SmallLayer(Kind kind, std::mt19937& random) : kind_(kind), random_(random) {
    EXPECT_CUDNN(cudnnCreateActivationDescriptor(&activation_));
    EXPECT_CUDNN(cudnnCreatePoolingDescriptor(&pooling_));
    const int types = pick(0, 7);
    type_ = types == 0   ? CUDNN_DATA_DOUBLE
            : types == 1 ? CUDNN_DATA_HALF
            : types == 2 ? CUDNN_DATA_BFLOAT16
                         : CUDNN_DATA_FLOAT;
    const bool isPooling = kind == Kind::kPool || kind == Kind::kPoolBack;
    Sizes sizes = {pick(1, 6), pick(1, 12), pick(4, 24), pick(4, 24)};
    if (!isPooling && pick(0, 3) == 0) sizes.push_back(pick(1, 8));
    isChannelsLast_ = pick(0, 3) == 0;
    setModes();
    build(sizes);
    inPlace_ = kind == Kind::kActivate && pick(0, 2) == 0;
  }
  ~SmallLayer() {
    EXPECT_CUDNN(cudnnDestroyActivationDescriptor(activation_));
    EXPECT_CUDNN(cudnnDestroyPoolingDescriptor(pooling_));
  }
  SmallLayer(const SmallLayer&) = delete;
  SmallLayer& operator=(const SmallLayer&) = delete;

  const std::vector<std::unique_ptr<SmallTensor>>& tensors() const { return tensors_; }
  cudnnDataType_t type() const { return type_; }
  bool isInPlace() const { return inPlace_; }

  std::string describe() const {
    std::ostringstream text;
    text << "type " << type_ << (inPlace_ ? ", in place" : "");
    for (const auto& tensor : tensors_)
      text << ", sizes " << ::testing::PrintToString(tensor->geometry().sizes) << " strides "
           << ::testing::PrintToString(tensor->geometry().strides);
    return text.str();
  }

  template <typename Handle>
  cudnnStatus_t run(Handle handle, const Factors& factors, const std::vector<void*>& p) const {
    const void* const alpha = factors.alpha();
    const void* const beta = factors.beta();
    std::vector<cudnnTensorDescriptor_t> d;
    for (const auto& tensor : tensors_) d.push_back(tensor->desc());
    if (inPlace_) d.front() = d.back();
    switch (kind_) {
      case Kind::kAdd:
        return cudnnAddTensor(handle, alpha, d[0], p[0], beta, d[1], p[1]);
      case Kind::kBias:
        return cudnnConvolutionBackwardBias(handle, alpha, d[0], p[0], beta, d[1], p[1]);
      case Kind::kActivate:
        return cudnnActivationForward(handle, activation_, alpha, d[0], p[0], beta, d[1], p[1]);
      case Kind::kActivateBack:
        return cudnnActivationBackward(
            handle, activation_, alpha, d[0], p[0], d[1], p[1], d[2], p[2], beta, d[3], p[3]);
      case Kind::kPool:
        return cudnnPoolingForward(handle, pooling_, alpha, d[0], p[0], beta, d[1], p[1]);
      case Kind::kPoolBack:
        return cudnnPoolingBackward(
            handle, pooling_, alpha, d[0], p[0], d[1], p[1], d[2], p[2], beta, d[3], p[3]);
      case Kind::kSoftmax:
        return cudnnSoftmaxForward(
            handle, CUDNN_SOFTMAX_ACCURATE, mode_, alpha, d[0], p[0], beta, d[1], p[1]);
      case Kind::kSoftmaxBack:
        return cudnnSoftmaxBackward(
            handle, CUDNN_SOFTMAX_ACCURATE, mode_, alpha, d[0], p[0], d[1], p[1], beta, d[2], p[2]);
    }
    return CUDNN_STATUS_BAD_PARAM;
  }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<>(least, most)(random_); }

  void setModes() {
    const cudnnActivationMode_t modes[] = {
        CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_TANH, CUDNN_ACTIVATION_ELU};
    EXPECT_CUDNN(
        cudnnSetActivationDescriptor(activation_, modes[pick(0, 2)], CUDNN_NOT_PROPAGATE_NAN, 1));
    window_ = pick(2, 3);
    pad_ = pick(0, 1);
    stride_ = pick(1, 3);
    EXPECT_CUDNN(cudnnSetPooling2dDescriptor(
        pooling_,
        pick(0, 1) == 0 ? CUDNN_POOLING_MAX : CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
        CUDNN_NOT_PROPAGATE_NAN,
        window_,
        window_,
        pad_,
        pad_,
        stride_,
        stride_));
    mode_ = pick(0, 1) == 0 ? CUDNN_SOFTMAX_MODE_CHANNEL : CUDNN_SOFTMAX_MODE_INSTANCE;
  }

  void add(const Sizes& sizes) {
    int gap = pick(0, 5) == 0 && kind_ != Kind::kPoolBack ? pick(1, 9) : 0;
    // On a GPU cuDNN's bias gradient reads several values at once: other gaps misalign them.
    if (kind_ == Kind::kBias && !onSimulator()) gap *= 8;
    tensors_.push_back(std::make_unique<SmallTensor>(
        type_, sizes, isChannelsLast_, gap, static_cast<unsigned>(random_())));
  }

  void build(const Sizes& x) {
    Sizes y = x;
    for (std::size_t i = 2; i < x.size(); ++i) y[i] = (x[i] + 2 * pad_ - window_) / stride_ + 1;
    Sizes few = x;
    for (int& size : few) size = pick(0, 1) == 0 ? 1 : size;
    Sizes bias(x.size(), 1);
    bias[1] = x[1];
    switch (kind_) {
      case Kind::kAdd:
        return add({pick(0, 1) == 0 ? bias : few, x});
      case Kind::kBias:
        return add({x, bias});
      case Kind::kActivate:
      case Kind::kSoftmax:
        return add({x, x});
      case Kind::kActivateBack:
        return add({x, x, x, x});
      case Kind::kPool:
        return add({x, y});
      case Kind::kPoolBack:
        return add({y, y, x, x});
      case Kind::kSoftmaxBack:
        return add({x, x, x});
    }
  }
  void add(const std::vector<Sizes>& all) {
    for (const Sizes& sizes : all) add(sizes);
  }

  const Kind kind_;
  std::mt19937& random_;
  cudnnDataType_t type_ = CUDNN_DATA_FLOAT;
  bool isChannelsLast_ = false, inPlace_ = false;
  int window_ = 2, pad_ = 0, stride_ = 2;
  cudnnSoftmaxMode_t mode_ = CUDNN_SOFTMAX_MODE_CHANNEL;
  cudnnActivationDescriptor_t activation_ = nullptr;
  cudnnPoolingDescriptor_t pooling_ = nullptr;
  std::vector<std::unique_ptr<SmallTensor>> tensors_;
};

/// A layer's tensors in some places.
class PlacedLayer {
 public:
  PlacedLayer(const SmallLayer& layer, const std::vector<Place>& places) : layer_(layer) {
    for (std::size_t i = 0; i < places.size(); ++i)
      memories_.push_back(std::make_unique<Memory>(places[i], layer.tensors()[i]->values()));
  }

  template <typename Handle>
  cudnnStatus_t run(Handle handle, const Factors& factors) {
    std::vector<void*> pointers;
    for (const auto& memory : memories_) pointers.push_back(memory->get());
    if (layer_.isInPlace()) pointers.front() = pointers.back();
    return layer_.run(handle, factors, pointers);
  }
  std::vector<char> output() {
    EXPECT_CUDA(cudaStreamSynchronize(nullptr));
    return memories_.back()->read();
  }

 private:
  const SmallLayer& layer_;
  std::vector<std::unique_ptr<Memory>> memories_;
};

std::string namesOf(const std::vector<Place>& places) {
  std::string names;
  for (const Place place : places)
    names += place == Place::kDevice ? "d" : place == Place::kPinned ? "p" : "h";
  return names;
}

class SmallLayersTest : public HostTensorsTest {
 protected:
  /// Random layers in random places within random budgets: within what a refusal names, too.
  void compare(Kind kind, unsigned seed);
};

void SmallLayersTest::compare(Kind kind, unsigned seed) {
  std::mt19937 random(seed);
  int refused = 0, compared = 0;
  for (int i = 0; i < (onSimulator() ? 60 : 20); ++i) {
    const SmallLayer layer(kind, random);
    const Factors factors(layer.type(), random() % 3 == 0 ? 2 : 1, random() % 3 == 0 ? 0.5 : 0);
    std::vector<Place> places(layer.tensors().size());
    for (Place& place : places) place = static_cast<Place>(random() % 3);
    places[random() % places.size()] = Place::kPinned;
    if (layer.isInPlace()) places.front() = places.back() = Place::kPinned;
    const std::size_t budget = std::size_t{1} << (9 + random() % 10);
    SCOPED_TRACE("case " + std::to_string(i) + " of seed " + std::to_string(seed) + ": " +
                 layer.describe() + ", in places " + namesOf(places) + " within " +
                 std::to_string(budget) + " bytes");
    const Handles handles;
    PlacedLayer inCore(layer, std::vector<Place>(places.size(), Place::kDevice));
    const cudnnStatus_t known = inCore.run(handles.native, factors);
    if (known == CUDNN_STATUS_NOT_SUPPORTED || known == CUDNN_STATUS_BAD_PARAM) continue;
    ASSERT_CUDNN(known);
    ++compared;
    const std::vector<char> expected = inCore.output();
    ASSERT_CUDNN(handles.ours.setDeviceMemory(budget));
    PlacedLayer placed(layer, places);
    cudnnStatus_t status = placed.run(handles.ours, factors);
    if (status == CUDNN_STATUS_ALLOC_FAILED) {
      ++refused;
      ASSERT_LT(budget, bytesNamed());
      ASSERT_CUDNN(handles.ours.setDeviceMemory(bytesNamed()));
      status = placed.run(handles.ours, factors);
    }
    ASSERT_CUDNN(status);
    const auto check = [&] {
      const std::vector<char> output = placed.output();
      const double difference = distance(layer.tensors().back()->geometry(), output, expected);
      EXPECT_LE(difference, layer.type() == CUDNN_DATA_DOUBLE ? 1e-13 : 1e-6);
      // A GPU's kernels depend on sizes.
      EXPECT_TRUE(kind == Kind::kBias || !onSimulator() || output == expected)
          << difference << " apart";
    };
    check();
    if (factors.doubles[1] == 0 && !layer.isInPlace()) {  // by the plan of the first call
      ASSERT_CUDNN(placed.run(handles.ours, factors));
      check();
    }
    if (HasFailure()) return;
  }
  EXPECT_LT(refused, 40);
  EXPECT_GT(compared, onSimulator() ? 20 : 6);
}

TEST_F(SmallLayersTest, Add) {
  compare(Kind::kAdd, 1);
}
TEST_F(SmallLayersTest, BiasGradient) {
  compare(Kind::kBias, 2);
}
TEST_F(SmallLayersTest, Activation) {
  compare(Kind::kActivate, 3);
}
TEST_F(SmallLayersTest, ActivationGradient) {
  compare(Kind::kActivateBack, 4);
}
TEST_F(SmallLayersTest, Pooling) {
  compare(Kind::kPool, 5);
}
TEST_F(SmallLayersTest, PoolingGradient) {
  compare(Kind::kPoolBack, 6);
}
TEST_F(SmallLayersTest, Softmax) {
  compare(Kind::kSoftmax, 7);
}
TEST_F(SmallLayersTest, SoftmaxGradient) {
  compare(Kind::kSoftmaxBack, 8);
}

/// RELU of a float tensor of 2 x 8 x 64 x 64, at 1 for alpha and 0 for beta.
class Relu {
 public:
  explicit Relu(const Sizes& sizes = {2, 8, 64, 64})
      : x_(CUDNN_DATA_FLOAT, sizes, false, 0, 1), y_(CUDNN_DATA_FLOAT, sizes, false, 0, 2) {
    EXPECT_CUDNN(cudnnCreateActivationDescriptor(&activation_));
    EXPECT_CUDNN(cudnnSetActivationDescriptor(
        activation_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  }
  ~Relu() { EXPECT_CUDNN(cudnnDestroyActivationDescriptor(activation_)); }
  Relu(const Relu&) = delete;
  Relu& operator=(const Relu&) = delete;

  cudnnStatus_t run(UcudnnHandle_t handle, void* x, void* y) const {
    return cudnnActivationForward(
        handle, activation_, factors_.alpha(), x_.desc(), x, factors_.beta(), y_.desc(), y);
  }
  const std::vector<char>& x() const { return x_.values(); }
  std::vector<char> expected() const {
    std::vector<char> values = x_.values();
    for (std::size_t i = 0; i < values.size(); i += sizeof(float))
      if (values[i + 3] < 0) std::fill_n(&values[i], sizeof(float), 0);
    return values;
  }

 private:
  const SmallTensor x_, y_;
  const Factors factors_{CUDNN_DATA_FLOAT, 1, 0};
  cudnnActivationDescriptor_t activation_ = nullptr;
};

// Off, CUDA is not even asked where tensors are.
TEST_F(SmallLayersTest, OnTheDeviceTheCallIsCudnns) {
  if (!onSimulator()) GTEST_SKIP() << "counts the simulator's calls";
  const Relu relu;
  const Handles handles;
  Memory x(Place::kDevice, relu.x()), y(Place::kDevice, relu.x());
  const auto calls = [&](const char* function) {
    const std::int64_t before = callCount(function);
    EXPECT_CUDNN(relu.run(handles.ours, x.get(), y.get()));
    return callCount(function) - before;
  };
  EXPECT_EQ(1, calls(nullptr));
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  EXPECT_EQ(2, calls("cudaPointerGetAttributes"));
  EXPECT_EQ(0, calls("cudaMemcpyAsync") + calls("cudaMemcpy2DAsync") + calls("cudaEventRecord"));
  EXPECT_EQ(1, calls("cudnnActivationForward"));
  EXPECT_EQ(relu.expected(), y.read());
}

// Both directions of the link are busy all the time, and the host doesn't wait.
TEST_F(SmallLayersTest, EachTensorCrossesTheLinkOnce) {
  if (!onSimulator()) GTEST_SKIP() << "reads the simulator's clocks";
  setArithmetic(Arithmetic::kOff);
  const Relu relu({16, 16, 256, 256});
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(std::size_t{16} << 20));
  Memory x(Place::kPinned, relu.x()), y(Place::kPinned, relu.x());
  ASSERT_CUDNN(relu.run(handles.ours, x.get(), y.get()));
  ASSERT_CUDA(cudaDeviceSynchronize());
  const double before = clockMs(nullptr), hostMs = hostClockMs();
  ASSERT_CUDNN(relu.run(handles.ours, x.get(), y.get()));
  EXPECT_EQ(hostMs, hostClockMs());
  const double linkMs = static_cast<double>(relu.x().size()) / 55e6;  // of an H200
  EXPECT_LE(linkMs, clockMs(nullptr) - before);
  EXPECT_GE(1.15 * linkMs, clockMs(nullptr) - before);
  ASSERT_CUDA(cudaDeviceSynchronize());
}

TEST_F(SmallLayersTest, ACapturedCallRunsAtEachLaunch) {
  const Relu relu;
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  Memory x(Place::kPinned, relu.x()), y(Place::kPinned, relu.x());
  Memory pageable(Place::kPageable, relu.x());
  ASSERT_CUDNN(relu.run(handles.ours, pageable.get(), y.get()));
  {
    Captured captured(handles.ours);
    EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, relu.run(handles.ours, x.get(), y.get()));
    EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, relu.run(handles.ours, pageable.get(), y.get()));
    captured.end();
  }
  EXPECT_FALSE(linesWith(logFile(), {"must have run once before it is captured"}).empty());
  EXPECT_FALSE(linesWith(logFile(), {"pageable memory can't be copied"}).empty());
  ASSERT_CUDNN(relu.run(handles.ours, x.get(), y.get()));
  ASSERT_CUDA(cudaStreamSynchronize(nullptr));
  const std::vector<char> poison(relu.x().size(), '\x7f');
  ASSERT_CUDA(cudaMemcpy(y.get(), poison.data(), poison.size(), cudaMemcpyDefault));
  Captured captured(handles.ours);
  EXPECT_CUDNN(relu.run(handles.ours, x.get(), y.get()));
  captured.end();
  EXPECT_EQ(poison, y.read());
  captured.launch();
  captured.wait();
  EXPECT_EQ(relu.expected(), y.read());
}

// Each function of a call fails once. The next call is right.
TEST_F(SmallLayersTest, FailuresStayWithTheirCall) {
  if (!onSimulator()) GTEST_SKIP() << "needs the simulator's failures";
  const Relu relu;
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  Memory x(Place::kPinned, relu.x()), y(Place::kPageable, relu.x());
  ASSERT_CUDNN(relu.run(handles.ours, x.get(), y.get()));
  const std::int64_t before = callCount();
  ASSERT_CUDNN(relu.run(handles.ours, x.get(), y.get()));
  const std::int64_t calls = callCount() - before;
  int failures = 0;
  for (std::int64_t n = 1; n <= calls; ++n) {
    failCall(n);
    const cudnnStatus_t status = relu.run(handles.ours, x.get(), y.get());
    failCall(0);
    static_cast<void>(cudaGetLastError());
    failures += status != CUDNN_STATUS_SUCCESS ? 1 : 0;
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUDNN(relu.run(handles.ours, x.get(), y.get()));
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_EQ(relu.expected(), y.read());
  }
  EXPECT_LT(calls / 2, failures);
}

TEST_F(SmallLayersTest, WhatCanNotBeCutIsRefused) {
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  const Factors factors(CUDNN_DATA_FLOAT, 1, 0);
  const SmallTensor x(CUDNN_DATA_FLOAT, {2, 3, 4, 5}, false, 0, 1);
  const SmallTensor other(CUDNN_DATA_FLOAT, {2, 3, 4, 6}, false, 0, 1);
  const SmallTensor six(CUDNN_DATA_FLOAT, {2, 3, 1, 1, 4, 5}, false, 0, 1);
  Memory a(Place::kPinned, x.values()), c(Place::kPinned, other.values());
  const auto add = [&](const SmallTensor& from, const SmallTensor& to) {
    return cudnnAddTensor(
        handles.ours, factors.alpha(), from.desc(), a.get(), factors.beta(), to.desc(), c.get());
  };
  const SmallTensor flat(CUDNN_DATA_FLOAT, {2, 3, 4, 5, 1}, false, 0, 1);
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, add(x, other));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, add(flat, x));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, add(x, flat));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, add(six, six));
  EXPECT_EQ(
      CUDNN_STATUS_BAD_PARAM,
      cudnnAddTensor(
          handles.ours, factors.alpha(), x.desc(), nullptr, factors.beta(), x.desc(), c.get()));
  EXPECT_FALSE(linesWith(logFile(), {"cudnnAddTensor on host memory fails", "sizes"}).empty());
  EXPECT_CUDNN(add(x, x));
  ASSERT_CUDA(cudaStreamSynchronize(nullptr));
}

}  // namespace
}  // namespace ucudnn::test
