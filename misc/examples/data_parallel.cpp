// Data parallelism in C++: one process, a thread for each GPU, and unequal shares of the mini-batch
// for GPUs that differ. Two convolutions stand for a network. Each GPU computes the gradients of
// its share's samples; their sum is that of the whole mini-batch, which is compared at the end.
//
//   data_parallel [SAMPLES [SIZE]]     of the mini-batch, of the images
//
// Gradients are added up by NCCL if it is built with UCUDNN_USE_NCCL, else through the host.
#include <ucudnn/ucudnn.h>

#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "check.h"
#ifdef UCUDNN_USE_NCCL
#include <nccl.h>
#endif

namespace {

const int kLayers = 2, kChannels[kLayers + 1] = {3, 16, 16};
int imageSize = 64;                               // set once, before any thread begins
const std::size_t kLimit = std::size_t(1) << 20;  // of workspace, for each convolution

int filterCount(int layer) {
  return kChannels[layer + 1] * kChannels[layer] * 9;
}
std::size_t bytesOf(int samples, int channels) {
  return sizeof(float) * std::size_t(samples) * channels * imageSize * imageSize;
}

/// Reproducible numbers around 0.
std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = float(seed >> 8) / (1u << 24) - 0.5f;
  }
  return values;
}

void* copyToDevice(const std::vector<float>& values, std::size_t from, std::size_t count) {
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, count * sizeof(float)));
  CHECK(cudaMemcpy(memory, values.data() + from, count * sizeof(float), cudaMemcpyHostToDevice));
  return memory;
}

/// The descriptors of a layer for so many samples, and its algorithms.
struct Layer {
  Layer(UcudnnHandle_t handle, int layer, int samples) {
    CHECK(cudnnCreateTensorDescriptor(&x));
    CHECK(cudnnCreateTensorDescriptor(&y));
    CHECK(cudnnCreateFilterDescriptor(&w));
    CHECK(cudnnCreateConvolutionDescriptor(&convolution));
    const int in = kChannels[layer], out = kChannels[layer + 1];
    const auto type = CUDNN_DATA_FLOAT;
    const auto format = CUDNN_TENSOR_NCHW;
    CHECK(cudnnSetTensor4dDescriptor(x, format, type, samples, in, imageSize, imageSize));
    CHECK(cudnnSetTensor4dDescriptor(y, format, type, samples, out, imageSize, imageSize));
    CHECK(cudnnSetFilter4dDescriptor(w, type, format, out, in, 3, 3));
    const auto mode = CUDNN_CROSS_CORRELATION;
    CHECK(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, mode, type));
    // A query with a limit measures. ucudnnGetShares goes by what a handle was asked about.
    CHECK(cudnnGetConvolutionForwardAlgorithm(handle,
                                              x,
                                              w,
                                              convolution,
                                              y,
                                              CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT,
                                              kLimit,
                                              &forward));
    CHECK(
        cudnnGetConvolutionBackwardDataAlgorithm(handle,
                                                 w,
                                                 y,
                                                 convolution,
                                                 x,
                                                 CUDNN_CONVOLUTION_BWD_DATA_SPECIFY_WORKSPACE_LIMIT,
                                                 kLimit,
                                                 &backwardData));
    CHECK(cudnnGetConvolutionBackwardFilterAlgorithm(
        handle,
        x,
        y,
        convolution,
        w,
        CUDNN_CONVOLUTION_BWD_FILTER_SPECIFY_WORKSPACE_LIMIT,
        kLimit,
        &backwardFilter));
  }
  ~Layer() {
    CHECK(cudnnDestroyConvolutionDescriptor(convolution));
    CHECK(cudnnDestroyFilterDescriptor(w));
    CHECK(cudnnDestroyTensorDescriptor(y));
    CHECK(cudnnDestroyTensorDescriptor(x));
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  cudnnConvolutionFwdAlgo_t forward;
  cudnnConvolutionBwdDataAlgo_t backwardData;
  cudnnConvolutionBwdFilterAlgo_t backwardFilter;
};

/// Adds up gradients over all threads that have samples.
class Exchange {
 public:
  explicit Exchange(const std::vector<int>& devices) : ranks_(int(devices.size())) {
#ifdef UCUDNN_USE_NCCL
    communicators_.resize(devices.size());
    CHECK(ncclCommInitAll(communicators_.data(), ranks_, devices.data()));
#endif
  }
  ~Exchange() {
#ifdef UCUDNN_USE_NCCL
    for (ncclComm_t communicator : communicators_) CHECK(ncclCommDestroy(communicator));
#endif
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

#ifdef UCUDNN_USE_NCCL
  void add(int rank, void* gradient, std::size_t count, cudaStream_t stream) {
    CHECK(
        ncclAllReduce(gradient, gradient, count, ncclFloat, ncclSum, communicators_[rank], stream));
  }
#else
  void add(int, void* gradient, std::size_t count, cudaStream_t stream) {
    std::vector<float> own(count);
    const std::size_t bytes = count * sizeof(float);
    CHECK(cudaMemcpyAsync(own.data(), gradient, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::unique_lock<std::mutex> lock(mutex_);
    if (arrived_ == 0) sum_.assign(count, 0.0f);
    for (std::size_t i = 0; i < count; ++i) sum_[i] += own[i];
    const int round = round_;
    if (++arrived_ == ranks_) {
      arrived_ = 0;
      total_ = sum_;
      ++round_;
      complete_.notify_all();
    }
    complete_.wait(lock, [&] { return round_ != round; });
    own = total_;  // nobody begins the next sum but one before all have this one
    lock.unlock();
    CHECK(cudaMemcpyAsync(gradient, own.data(), bytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaStreamSynchronize(stream));
  }
#endif

 private:
  int ranks_;
#ifdef UCUDNN_USE_NCCL
  std::vector<ncclComm_t> communicators_;
#else
  std::mutex mutex_;
  std::condition_variable complete_;
  std::vector<float> sum_, total_;
  int arrived_ = 0, round_ = 0;
#endif
};

/// One GPU's thread: computes the gradients of `count` samples from the `first` on, and exchanges
/// them. `samples`: of the whole mini-batch. The loss is half the mean square of a sample's output.
struct Rank {
  int rank, device, first, count, samples;
  Exchange* exchange;
  std::vector<float> gradients[kLayers];  ///< the answer
  float stepMs;

  void run() {
    CHECK(cudaSetDevice(device));
    cudaStream_t stream;
    UcudnnHandle_t handle;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudnnCreate(&handle));
    CHECK(cudnnSetStream(handle, stream));
    std::vector<std::unique_ptr<Layer>> layers;
    std::vector<void*> values, errors, filters, filterGradients;
    const std::size_t pixels = std::size_t(kChannels[0]) * imageSize * imageSize;
    values.push_back(copyToDevice(numbers(samples * pixels, 1), first * pixels, count * pixels));
    for (int i = 0; i < kLayers; ++i) {
      layers.emplace_back(new Layer(handle, i, count));
      filters.push_back(copyToDevice(numbers(filterCount(i), 2 + i), 0, filterCount(i)));
      filterGradients.push_back(copyToDevice(numbers(filterCount(i), 0), 0, filterCount(i)));
      values.push_back(nullptr);
      CHECK(cudaMalloc(&values.back(), bytesOf(count, kChannels[i + 1])));
    }
    CHECK(cudaMalloc(&errors.emplace_back(), bytesOf(count, kChannels[1])));
    void* workspace;
    CHECK(cudaMalloc(&workspace, kLimit));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));

    const float one = 1, zero = 0, mean = 1.0f / float(samples);
    const auto backwardFilter = [&](int i, void* error) {
      CHECK(cudnnConvolutionBackwardFilter(handle,
                                           &mean,
                                           layers[i]->x,
                                           values[i],
                                           layers[i]->y,
                                           error,
                                           layers[i]->convolution,
                                           layers[i]->backwardFilter,
                                           workspace,
                                           kLimit,
                                           &zero,
                                           layers[i]->w,
                                           filterGradients[i]));
      exchange->add(rank, filterGradients[i], filterCount(i), stream);
    };
    for (int step = 0; step < 2; ++step) {  // the second is timed
      CHECK(cudaEventRecord(begin, stream));
      for (int i = 0; i < kLayers; ++i)
        CHECK(cudnnConvolutionForward(handle,
                                      &one,
                                      layers[i]->x,
                                      values[i],
                                      layers[i]->w,
                                      filters[i],
                                      layers[i]->convolution,
                                      layers[i]->forward,
                                      workspace,
                                      kLimit,
                                      &zero,
                                      layers[i]->y,
                                      values[i + 1]));
      // The loss's derivative by the output is the output itself.
      backwardFilter(1, values[2]);
      CHECK(cudnnConvolutionBackwardData(handle,
                                         &one,
                                         layers[1]->w,
                                         filters[1],
                                         layers[1]->y,
                                         values[2],
                                         layers[1]->convolution,
                                         layers[1]->backwardData,
                                         workspace,
                                         kLimit,
                                         &zero,
                                         layers[1]->x,
                                         errors[0]));
      backwardFilter(0, errors[0]);
      CHECK(cudaEventRecord(end, stream));
    }
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&stepMs, begin, end));
    for (int i = 0; i < kLayers; ++i) {
      gradients[i].resize(filterCount(i));
      CHECK(cudaMemcpy(gradients[i].data(),
                       filterGradients[i],
                       filterCount(i) * sizeof(float),
                       cudaMemcpyDeviceToHost));
    }
    for (auto* memory : {&values, &errors, &filters, &filterGradients})
      for (void* each : *memory) CHECK(cudaFree(each));
    CHECK(cudaFree(workspace));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    layers.clear();
    CHECK(cudnnDestroy(handle));
    CHECK(cudaStreamDestroy(stream));
  }
};

/// Runs all shares that are not zero. Returns what the ranks answer.
std::vector<Rank> train(const std::vector<int>& shares) {
  int samples = 0;
  std::vector<int> devices;
  std::vector<Rank> ranks;
  for (std::size_t device = 0; device < shares.size(); ++device) {
    if (shares[device] == 0) continue;
    ranks.push_back({int(ranks.size()), int(device), samples, shares[device], 0, nullptr, {}, 0});
    devices.push_back(int(device));
    samples += shares[device];
  }
  Exchange exchange(devices);
  std::vector<std::thread> threads;
  for (Rank& rank : ranks) {
    rank.samples = samples;
    rank.exchange = &exchange;
    threads.emplace_back([&rank] { rank.run(); });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * double(a[i] - b[i]);
    norm += double(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace

int main(int argc, char** argv) {
  const int samples = argc > 1 ? std::atoi(argv[1]) : 256;
  if (argc > 2) imageSize = std::atoi(argv[2]);
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  std::vector<int> devices, shares(count);
  for (int device = 0; device < count; ++device) devices.push_back(device);

  UcudnnHandle_t handle;
  CHECK(cudnnCreate(&handle));
  for (int i = 0; i < kLayers; ++i) Layer(handle, i, samples);
  CHECK(ucudnnGetShares(handle, samples, count, devices.data(), shares.data()));
  CHECK(cudnnDestroy(handle));

  const std::vector<Rank> ranks = train(shares);
  for (const Rank& rank : ranks)
    std::printf(
        "device %d: %d of %d samples, %.3f ms\n", rank.device, rank.count, samples, rank.stepMs);
  const std::vector<Rank> alone = train({samples});
  std::printf("device 0 alone: %.3f ms\n", alone[0].stepMs);
  double largest = 0;
  for (const Rank& rank : ranks)
    for (int i = 0; i < kLayers; ++i)
      largest = std::fmax(largest, distance(rank.gradients[i], alone[0].gradients[i]));
  const bool isRight = largest < 2e-3;  // TF32's rounding
  std::printf("gradients are %s: %.1e\n", isRight ? "the same" : "wrong", largest);
  return isRight ? 0 : 1;
}
