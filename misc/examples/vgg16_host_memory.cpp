// Forward and backward of VGG-16 (Simonyan and Zisserman 2014, configuration D) whose tensors don't
// fit the GPU. Each layer is one fused call, so that each tensor crosses the link once;
// ucudnnMalloc keeps on the device what fits.
//
//   vgg16_host_memory MIB [TIMES [MATH [IMAGE [NARROW [SAMPLES]]]]]
//
// MIB: the device memory. TIMES: a mini-batch's tensors over three quarters of MIB; 2. MATH: fma or
// tf32. IMAGE: pixels of a side; 224. NARROW: what channels are divided by; 1. SAMPLES: of the
// mini-batch, in place of those that TIMES gives. Prints, a line each, the time per image where all
// tensors are on the device, of as many samples as take half of MIB, or of all if these take less;
// where they all are in host memory; and where ucudnnMalloc puts them. Beside the latter two: what
// no overlap can beat, by the kernels' times of the first line and the link's rates.
#include <ucudnn/ucudnn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "check.h"

namespace {

struct Options {
  std::size_t budget = 0;
  int times = 2;
  bool isFma = true;
  int image = 224, narrow = 1;
  int samples = 0;  // 0: as `times` says
};

enum class Memory { kLibrarys, kHost };  // by ucudnnMalloc, or pinned

struct Tensor {
  std::size_t bytes = 0;
  void* memory = nullptr;
  cudnnTensorDescriptor_t descriptor = nullptr;
};

bool isOnHost(const void* memory) {
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, memory));
  return attributes.type == cudaMemoryTypeHost;
}

// One call of a step: what it reads and writes, and how long it took.
struct Call {
  std::function<void()> run;
  std::vector<const Tensor*> reads, writes;
  double ms = 0;
};

/// Random numbers of this magnitude, which repeat.
void fill(const Tensor& tensor, double magnitude) {
  std::vector<float> numbers(std::size_t{1} << 20);
  unsigned seed = 1;
  for (float& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    number = static_cast<float>(magnitude * (static_cast<double>(seed >> 8) / (1 << 23) - 1));
  }
  const std::size_t all = numbers.size() * sizeof(float);
  for (std::size_t at = 0; at < tensor.bytes; at += all)
    CHECK(cudaMemcpy(static_cast<char*>(tensor.memory) + at,
                     numbers.data(),
                     std::min(all, tensor.bytes - at),
                     cudaMemcpyDefault));
}

struct Layer {
  ucudnnFusedLayer_t fused{};
  const Tensor* x = nullptr;
  Tensor w, bias, y, pooled, dw, db, dx;
  bool isFirst = false;

  const Tensor& output() const { return pooled.memory != nullptr ? pooled : y; }
};

// Channels, filter size, padding, and whether a pooling follows. The last three are what VGG calls
// fully connected: convolutions of all pixels that are left.
struct Shape {
  int filters, size, pad;
  bool isPooled;
};

class Network {
 public:
  Network(UcudnnHandle_t handle, const Options& options, int samples, Memory memory)
      : handle_(handle), options_(options), samples_(samples), memory_(memory) {
    CHECK(cudnnCreateActivationDescriptor(&relu_));
    CHECK(cudnnSetActivationDescriptor(relu_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
    CHECK(cudnnCreatePoolingDescriptor(&pooling_));
    CHECK(cudnnSetPooling2dDescriptor(
        pooling_, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
    int size = options.image, channels = 3;
    input_ = tensor(channels, size, size);
    fill(input_, 1);
    const Tensor* x = &input_;
    for (const Shape& shape : shapes()) {
      layers_.push_back(std::unique_ptr<Layer>(new Layer));
      addLayer(*layers_.back(), shape, *x, channels, size);
      x = &layers_.back()->output();
    }
    allocateGradients();
    const Layer& last = *layers_.back();
    probabilities_ = tensor(channels, 1, 1);
    labels_ = tensor(channels, 1, 1);
    fill(labels_, 1);
    gradient_ = tensor(channels, 1, 1);
    addCalls(last);
  }
  ~Network() {
    for (const auto& memory : all_)
      CHECK(memory_ == Memory::kHost ? int(cudaFreeHost(memory.first))
                                     : int(ucudnnFree(handle_, memory.first)));
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Bytes of all tensors.
  std::size_t bytes() const {
    std::size_t bytes = 0;
    for (const auto& memory : all_) bytes += memory.second;
    return bytes;
  }

  /// A step, in ms. Each call's time is noted.
  double step() {
    std::vector<cudaEvent_t> events(calls_.size() + 1);
    for (cudaEvent_t& event : events) CHECK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(events[0], nullptr));
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      calls_[i].run();
      CHECK(cudaEventRecord(events[i + 1], nullptr));
    }
    CHECK(cudaEventSynchronize(events.back()));
    float ms = 0;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      CHECK(cudaEventElapsedTime(&ms, events[i], events[i + 1]));
      calls_[i].ms = ms;
    }
    CHECK(cudaEventElapsedTime(&ms, events.front(), events.back()));
    for (cudaEvent_t event : events) CHECK(cudaEventDestroy(event));
    return ms;
  }
  /// The fastest of some, once all has been measured.
  double steps() {
    for (int i = 0; i < 2; ++i) step();
    double least = step();
    for (int i = 0; i < 2; ++i) least = std::min(least, step());
    return least;
  }
  const std::vector<Call>& calls() const { return calls_; }
  int samples() const { return samples_; }
  std::size_t bytesOnHost() const {
    std::size_t bytes = 0;
    for (const auto& each : all_) bytes += isOnHost(each.first) ? each.second : 0;
    return bytes;
  }

 private:
  std::vector<Shape> shapes() const {
    std::vector<Shape> shapes;
    const int filters[] = {64, 128, 256, 512, 512}, counts[] = {2, 2, 3, 3, 3};
    for (int block = 0; block < 5; ++block)
      for (int i = 0; i < counts[block]; ++i)
        shapes.push_back({filters[block] / options_.narrow, 3, 1, i + 1 == counts[block]});
    shapes.push_back({4096 / options_.narrow, options_.image / 32, 0, false});
    shapes.push_back({4096 / options_.narrow, 1, 0, false});
    shapes.push_back({1000 / options_.narrow, 1, 0, false});
    return shapes;
  }

  void allocate(Tensor& tensor) {
    CHECK(memory_ == Memory::kHost ? int(cudaMallocHost(&tensor.memory, tensor.bytes))
                                   : int(ucudnnMalloc(handle_, &tensor.memory, tensor.bytes)));
    all_.emplace_back(tensor.memory, tensor.bytes);
  }
  Tensor tensor(int channels, int height, int width, int samples = 0) {
    if (samples == 0) samples = samples_;
    Tensor made;
    made.bytes = sizeof(float) * samples * channels * height * width;
    CHECK(cudnnCreateTensorDescriptor(&made.descriptor));
    CHECK(cudnnSetTensor4dDescriptor(
        made.descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, samples, channels, height, width));
    allocate(made);
    return made;
  }

  /// Layers take turns with two: a gradient is done with when the next one is.
  void allocateGradients() {
    Tensor buffers[2];
    for (std::size_t i = 1; i < layers_.size(); ++i)
      buffers[i % 2].bytes = std::max(buffers[i % 2].bytes, layers_[i]->x->bytes);
    for (Tensor& buffer : buffers) allocate(buffer);
    for (std::size_t i = 1; i < layers_.size(); ++i) {
      layers_[i]->dx = *layers_[i]->x;
      layers_[i]->dx.memory = buffers[i % 2].memory;
    }
  }

  void addLayer(Layer& layer, const Shape& shape, const Tensor& x, int& channels, int& size) {
    ucudnnFusedLayer_t& fused = layer.fused;
    layer.isFirst = layers_.size() == 1;
    layer.x = &x;
    fused.size = sizeof fused;
    fused.x = x.descriptor;
    CHECK(cudnnCreateFilterDescriptor(&fused.w));
    CHECK(cudnnSetFilter4dDescriptor(fused.w,
                                     CUDNN_DATA_FLOAT,
                                     CUDNN_TENSOR_NCHW,
                                     shape.filters,
                                     channels,
                                     shape.size,
                                     shape.size));
    CHECK(cudnnCreateConvolutionDescriptor(&fused.convolution));
    CHECK(cudnnSetConvolution2dDescriptor(fused.convolution,
                                          shape.pad,
                                          shape.pad,
                                          1,
                                          1,
                                          1,
                                          1,
                                          CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT));
    CHECK(cudnnSetConvolutionMathType(fused.convolution,
                                      options_.isFma ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH));
    layer.w.bytes = layer.dw.bytes =
        sizeof(float) * shape.filters * channels * shape.size * shape.size;
    allocate(layer.w);
    allocate(layer.dw);
    fill(layer.w, std::sqrt(6.0 / (channels * shape.size * shape.size)));  // He et al. 2015
    channels = shape.filters;
    size = size + 2 * shape.pad - shape.size + 1;
    layer.bias = tensor(channels, 1, 1, 1);
    layer.db = tensor(channels, 1, 1, 1);
    fill(layer.bias, 0.1);
    layer.y = tensor(channels, size, size);
    fused.bias = layer.bias.descriptor;
    fused.y = layer.y.descriptor;
    if (layers_.size() < shapes().size()) fused.activation = relu_;
    const bool isPooling = !layer.isFirst && layers_[layers_.size() - 2]->fused.pooling != nullptr;
    if (!layer.isFirst && !isPooling) fused.xActivation = relu_;
    if (!shape.isPooled) return;
    size /= 2;
    layer.pooled = tensor(channels, size, size);
    fused.pooling = pooling_;
    fused.pooled = layer.pooled.descriptor;
  }

  void addCalls(const Layer& last) {
    for (const auto& each : layers_) {
      Layer* const l = each.get();
      calls_.push_back({[=] {
                          CHECK(ucudnnFusedForward(handle_,
                                                   &l->fused,
                                                   l->x->memory,
                                                   l->w.memory,
                                                   l->bias.memory,
                                                   l->y.memory,
                                                   l->pooled.memory));
                        },
                        {l->x, &l->w},
                        {&l->y, &l->pooled}});
    }
    const float one = 1, zero = 0;
    const auto mode = CUDNN_SOFTMAX_MODE_INSTANCE;
    const Tensor* const y = &last.y;
    calls_.push_back({[=] {
                        CHECK(cudnnSoftmaxForward(handle_,
                                                  CUDNN_SOFTMAX_ACCURATE,
                                                  mode,
                                                  &one,
                                                  y->descriptor,
                                                  y->memory,
                                                  &zero,
                                                  probabilities_.descriptor,
                                                  probabilities_.memory));
                        CHECK(cudnnSoftmaxBackward(handle_,
                                                   CUDNN_SOFTMAX_ACCURATE,
                                                   mode,
                                                   &one,
                                                   probabilities_.descriptor,
                                                   probabilities_.memory,
                                                   labels_.descriptor,
                                                   labels_.memory,
                                                   &zero,
                                                   gradient_.descriptor,
                                                   gradient_.memory));
                      },
                      {},
                      {}});
    const Tensor* gradient = &gradient_;
    for (auto each = layers_.rbegin(); each != layers_.rend(); ++each) {
      Layer* const l = each->get();
      const bool isPooling = l->fused.pooling != nullptr;
      calls_.push_back({[=] {
                          CHECK(ucudnnFusedBackward(handle_,
                                                    &l->fused,
                                                    l->x->memory,
                                                    l->w.memory,
                                                    isPooling ? l->y.memory : nullptr,
                                                    nullptr,  // computed again
                                                    gradient->memory,
                                                    l->dx.memory,
                                                    l->dw.memory,
                                                    l->db.memory));
                        },
                        {l->x, gradient},
                        {&l->dx, &l->dw}});
      if (isPooling) calls_.back().reads.push_back(&l->y);
      if (!l->isFirst) calls_.back().reads.push_back(&l->w);
      gradient = &l->dx;
    }
  }

  const UcudnnHandle_t handle_;
  const Options options_;
  const int samples_;
  const Memory memory_;
  cudnnActivationDescriptor_t relu_ = nullptr;
  cudnnPoolingDescriptor_t pooling_ = nullptr;
  Tensor input_, probabilities_, labels_, gradient_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<Call> calls_;
  std::vector<std::pair<void*, std::size_t>> all_;
};

/// Bytes in a ms to the device, and to the host.
std::vector<double> linkRates() {
  const std::size_t bytes = std::size_t{256} << 20;
  void *host = nullptr, *device = nullptr;
  CHECK(cudaMallocHost(&host, bytes));
  CHECK(cudaMalloc(&device, bytes));
  cudaEvent_t events[2];
  for (cudaEvent_t& event : events) CHECK(cudaEventCreate(&event));
  std::vector<double> rates;
  for (const bool isIn : {true, false}) {
    float ms = 0;
    for (int i = 0; i < 2; ++i) {
      CHECK(cudaEventRecord(events[0], nullptr));
      CHECK(cudaMemcpyAsync(
          isIn ? device : host, isIn ? host : device, bytes, cudaMemcpyDefault, nullptr));
      CHECK(cudaEventRecord(events[1], nullptr));
      CHECK(cudaEventSynchronize(events[1]));
      CHECK(cudaEventElapsedTime(&ms, events[0], events[1]));
    }
    rates.push_back(static_cast<double>(bytes) / ms);
  }
  for (cudaEvent_t event : events) CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(host));
  return rates;
}

/// The sum over calls of the longest of kernels and copies in each direction, in ms.
double boundOf(const Network& network, const std::vector<double>& kernelMs) {
  const std::vector<double> rates = linkRates();
  double all = 0;
  for (std::size_t i = 0; i < kernelMs.size(); ++i) {
    const Call& call = network.calls()[i];
    const auto ms = [&](const std::vector<const Tensor*>& tensors, double rate) {
      double bytes = 0;
      for (const Tensor* each : tensors)
        if (each->memory != nullptr && isOnHost(each->memory))
          bytes += static_cast<double>(each->bytes);
      return bytes / rate;
    };
    all += std::max(
        {kernelMs[i] * network.samples(), ms(call.reads, rates[0]), ms(call.writes, rates[1])});
  }
  return all;
}

/// How many samples' tensors take so many bytes.
int samplesIn(UcudnnHandle_t handle, const Options& options, std::size_t bytes) {
  std::size_t taken[2];
  for (const int samples : {1, 2}) {
    const Network network(handle, options, samples, Memory::kHost);
    taken[samples - 1] = network.bytes();
  }
  const std::size_t each = taken[1] - taken[0], fixed = taken[0] - each;
  return bytes < fixed + each ? 1 : static_cast<int>((bytes - fixed) / each);
}

void compare(UcudnnHandle_t handle, const Options& options) {
  // A quarter is for what is under way, and for kernels' workspace.
  const int outOfCore = options.samples > 0
                            ? options.samples
                            : options.times * samplesIn(handle, options, options.budget / 4 * 3);
  const int inCore = std::min(outOfCore, samplesIn(handle, options, options.budget / 2));
  std::vector<double> kernelMs;
  double inCoreMs = 0;
  {
    Network network(handle, options, inCore, Memory::kLibrarys);
    inCoreMs = network.steps() / inCore;
    for (const Call& call : network.calls()) kernelMs.push_back(call.ms / inCore);
    std::printf("in core        N=%-5d %8.3f ms an image%s\n",
                inCore,
                inCoreMs,
                network.bytesOnHost() > 0 ? ": some tensors are on the host" : "");
  }
  for (const Memory memory : {Memory::kHost, Memory::kLibrarys}) {
    Network network(handle, options, outOfCore, memory);
    const double ms = network.steps() / outOfCore;
    const double bound = boundOf(network, kernelMs) / outOfCore;
    std::printf(
        "%-14s N=%-5d %8.3f ms an image, %.2f of in core; at least %.2f; %.0f of %.0f MiB "
        "on the host\n",
        memory == Memory::kHost ? "on the host" : "ucudnnMalloc",
        outOfCore,
        ms,
        ms / inCoreMs,
        bound / inCoreMs,
        static_cast<double>(network.bytesOnHost()) / (1 << 20),
        static_cast<double>(network.bytes()) / (1 << 20));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** words) {
  Options options;
  const std::string math = count > 3 ? words[3] : "fma";
  if (count > 1) options.budget = std::strtoull(words[1], nullptr, 10) << 20;
  if (count > 2) options.times = std::atoi(words[2]);
  if (count > 4) options.image = std::atoi(words[4]);
  if (count > 5) options.narrow = std::atoi(words[5]);
  if (count > 6) options.samples = std::atoi(words[6]);
  options.isFma = math == "fma";
  if (options.budget == 0 || options.times < 1 || options.image < 32 || options.image % 32 != 0 ||
      options.narrow < 1 || options.narrow > 64 || options.samples < 0 ||
      (math != "fma" && math != "tf32")) {
    std::fprintf(stderr,
                 "usage: %s MIB [TIMES [MATH [IMAGE [NARROW [SAMPLES]]]]]; MATH: fma or tf32; "
                 "IMAGE: a multiple of 32; NARROW: 1 to 64\n",
                 words[0]);
    return 2;
  }
  UcudnnHandle_t handle;
  CHECK(cudnnCreate(&handle));
  CHECK(handle.setDeviceMemory(options.budget));
  compare(handle, options);
  CHECK(cudnnDestroy(handle));
  return 0;
}
