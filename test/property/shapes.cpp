#include "shapes.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>

#include "../support/checked.hpp"
#include "../support/simulator.hpp"
#include "forked.hpp"
#include "random.hpp"

namespace ucudnn::test {
namespace {

double nowMs() {
  if (onSimulator()) return hostClockMs();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

int outputSize(int input, const Shape& shape) {
  return (input + 2 * shape.pad - shape.filter) / shape.stride + 1;
}

/// Memory that grows as a framework's cache does: what is there is used again.
class Cache {
 public:
  void* get(std::size_t bytes) {
    if (!buffer_ || buffer_->bytes() < bytes) {
      buffer_.reset();
      buffer_ = std::make_unique<DeviceBuffer>(bytes);
    }
    return buffer_->get();
  }

 private:
  std::unique_ptr<DeviceBuffer> buffer_;
};

/// Descriptors and memory of a program, for one shape after another.
template <typename Handle>
class Program {
 public:
  Program() {
    check(cudnnCreate(&handle_));
    check(cudnnCreateTensorDescriptor(&x_));
    check(cudnnCreateTensorDescriptor(&y_));
    check(cudnnCreateFilterDescriptor(&w_));
    check(cudnnCreateConvolutionDescriptor(&convolution_));
  }
  ~Program() {
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(convolution_);
    cudnnDestroy(handle_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void reserve(const std::vector<Shape>& shapes) {
    for (const Shape& shape : shapes) use(shape);
  }

  void run(const Shape& shape) {
    use(shape);
    runForward();
    runBackwardData();
    runBackwardFilter();
  }

 private:
  void use(const Shape& s) {
    const int height = outputSize(s.height, s), width = outputSize(s.width, s);
    constexpr auto kFormat = CUDNN_TENSOR_NCHW;
    constexpr auto kType = CUDNN_DATA_FLOAT;
    check(cudnnSetTensor4dDescriptor(x_, kFormat, kType, s.batch, s.channels, s.height, s.width));
    check(cudnnSetTensor4dDescriptor(y_, kFormat, kType, s.batch, s.filters, height, width));
    check(
        cudnnSetFilter4dDescriptor(w_, kType, kFormat, s.filters, s.channels, s.filter, s.filter));
    check(cudnnSetConvolution2dDescriptor(convolution_,
                                          s.pad,
                                          s.pad,
                                          s.stride,
                                          s.stride,
                                          1,
                                          1,
                                          CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT));
    const auto bytes = [](auto... sizes) { return (std::size_t{4} * ... * std::size_t(sizes)); };
    xMemory_ = xCache_.get(bytes(s.batch, s.channels, s.height, s.width));
    yMemory_ = yCache_.get(bytes(s.batch, s.filters, height, width));
    wMemory_ = wCache_.get(bytes(s.filters, s.channels, s.filter, s.filter));
  }

  template <typename Entry, typename Ask>
  static Entry first(Ask ask) {
    Entry entries[8];
    int count = 0;
    check(ask(8, &count, entries));
    for (int i = 0; i < count; ++i)
      if (entries[i].status == CUDNN_STATUS_SUCCESS) return entries[i];
    throw std::runtime_error("no algorithm");
  }

  void runForward() {
    const auto found = first<cudnnConvolutionFwdAlgoPerf_t>([&](int most, int* count, auto* to) {
      return cudnnGetConvolutionForwardAlgorithm_v7(
          handle_, x_, w_, convolution_, y_, most, count, to);
    });
    std::size_t bytes = 0;
    check(cudnnGetConvolutionForwardWorkspaceSize(
        handle_, x_, w_, convolution_, y_, found.algo, &bytes));
    check(cudnnConvolutionForward(handle_,
                                  &kOne,
                                  x_,
                                  xMemory_,
                                  w_,
                                  wMemory_,
                                  convolution_,
                                  found.algo,
                                  workspace_.get(bytes),
                                  bytes,
                                  &kZero,
                                  y_,
                                  yMemory_));
  }

  void runBackwardData() {
    const auto found =
        first<cudnnConvolutionBwdDataAlgoPerf_t>([&](int most, int* count, auto* to) {
          return cudnnGetConvolutionBackwardDataAlgorithm_v7(
              handle_, w_, y_, convolution_, x_, most, count, to);
        });
    std::size_t bytes = 0;
    check(cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle_, w_, y_, convolution_, x_, found.algo, &bytes));
    check(cudnnConvolutionBackwardData(handle_,
                                       &kOne,
                                       w_,
                                       wMemory_,
                                       y_,
                                       yMemory_,
                                       convolution_,
                                       found.algo,
                                       workspace_.get(bytes),
                                       bytes,
                                       &kZero,
                                       x_,
                                       xMemory_));
  }

  void runBackwardFilter() {
    const auto found =
        first<cudnnConvolutionBwdFilterAlgoPerf_t>([&](int most, int* count, auto* to) {
          return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
              handle_, x_, y_, convolution_, w_, most, count, to);
        });
    std::size_t bytes = 0;
    check(cudnnGetConvolutionBackwardFilterWorkspaceSize(
        handle_, x_, y_, convolution_, w_, found.algo, &bytes));
    check(cudnnConvolutionBackwardFilter(handle_,
                                         &kOne,
                                         x_,
                                         xMemory_,
                                         y_,
                                         yMemory_,
                                         convolution_,
                                         found.algo,
                                         workspace_.get(bytes),
                                         bytes,
                                         &kZero,
                                         w_,
                                         wMemory_));
  }

  const float kOne = 1, kZero = 0;
  Handle handle_{};
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  Cache xCache_, yCache_, wCache_, workspace_;
  void *xMemory_ = nullptr, *yMemory_ = nullptr, *wMemory_ = nullptr;
};

}  // namespace

std::vector<Shape> randomShapes(int count, unsigned long long seed) {
  Random random(seed);
  std::vector<Shape> shapes;
  while (static_cast<int>(shapes.size()) < count) {
    const int filters = random.pick({64, 128});
    if (random.chance(0.5))
      shapes.push_back({4, 64, filters, random.between(60, 220), random.between(60, 220), 3, 1, 1});
    else
      shapes.push_back({random.between(1, 63), 64, filters, 56, 56, 3, 1, 1});
  }
  return shapes;
}

std::vector<Shape> alexnetShapes() {
  return {{256, 3, 64, 224, 224, 11, 2, 4},
          {256, 64, 192, 27, 27, 5, 2, 1},
          {256, 192, 384, 13, 13, 3, 1, 1},
          {256, 384, 384, 13, 13, 3, 1, 1},
          {256, 384, 256, 13, 13, 3, 1, 1}};
}

template <typename Handle>
ProgramTimes runProgram(const std::vector<Shape>& shapes, int passes) {
  setArithmetic(Arithmetic::kOff);
  Program<Handle> program;
  program.reserve(shapes);
  check(cudaDeviceSynchronize());
  ProgramTimes times;
  for (int pass = 0; pass < passes; ++pass) {
    const double start = nowMs();
    for (const Shape& shape : shapes) program.run(shape);
    check(cudaDeviceSynchronize());
    times.passMs.push_back(nowMs() - start);
  }
  return times;
}
template ProgramTimes runProgram<UcudnnHandle_t>(const std::vector<Shape>&, int);
template ProgramTimes runProgram<cudnnHandle_t>(const std::vector<Shape>&, int);

ProgramTimes runProgramApart(Library library,
                             const std::vector<Shape>& shapes,
                             int passes,
                             const std::map<std::string, std::string>& environment) {
  const EnvironmentGuard guard(environment);
  const auto run =
      library == Library::kOurs ? runProgram<UcudnnHandle_t> : runProgram<cudnnHandle_t>;
  const ForkResult result = runForked(
      [&](const Answer& answer) {
        std::ostringstream text;
        text.precision(12);
        for (const double ms : run(shapes, passes).passMs) text << ms << ' ';
        answer.write(text.str());
      },
      600);
  if (result.status != 0)
    throw std::runtime_error("the program ended with status " + std::to_string(result.status) +
                             ": " + result.answer + result.output);
  ProgramTimes times;
  std::istringstream numbers(result.answer);
  for (double ms; numbers >> ms;) times.passMs.push_back(ms);
  return times;
}

}  // namespace ucudnn::test
