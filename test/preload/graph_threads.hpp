// Threads use the handle of a plan in several ways while another asks the plan for its workspace,
// which by cuDNN's rules needs no handle.
#pragma once

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include "graph_layer.hpp"

namespace plain {

class GraphThreads {
 public:
  /// One thread ends the handle, another asks.
  static void end() {
    constexpr int kRounds = 40;  // enough for AddressSanitizer and ThreadSanitizer to find each
    for (int i = 0; i < kRounds; ++i) {
      cudnnHandle_t handle = nullptr;
      CHECK(cudnnCreate(&handle));
      const Asked asked(handle, shapeOf(i));
      std::atomic<int> ready{0};
      const auto begin = [&] {
        for (++ready; ready < 2;) std::this_thread::yield();
      };
      std::exception_ptr failure;
      std::thread asks = thread(failure, [&] {
        begin();
        asked.ask();
      });
      begin();
      std::this_thread::sleep_for(std::chrono::microseconds(i * 50 % 1000));
      CHECK(cudnnDestroy(handle));
      asks.join();
      if (failure) std::rethrow_exception(failure);
    }
  }

  /// One thread executes on stream after stream, another asks about other plans; if `isLimited`, a
  /// third changes the cap of all handles.
  static void executeBeside(bool isLimited) {
    constexpr int kExecuted = 12, kAsked = 100;
    const Streams streams;
    cudnnHandle_t handle = nullptr;
    CHECK(cudnnCreate(&handle));
    std::vector<std::unique_ptr<Asked>> executed, asked;
    for (int i = 0; i < kExecuted; ++i)
      executed.emplace_back(std::make_unique<Asked>(handle, shapeOf(i)))->ask();
    for (int i = 0; i < kAsked; ++i)
      asked.push_back(std::make_unique<Asked>(handle, shapeOf(kExecuted + i)));
    std::atomic<bool> done{false};
    std::exception_ptr failures[2];
    std::thread asks = thread(failures[0], [&] {
      for (const auto& each : asked) each->ask();
    });
    std::thread limits = thread(failures[1], [&] {
      for (std::size_t i = 0; isLimited && !done; ++i) {
        CHECK(limit()((1 + i % 5) << 16));
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
    });
    std::thread ends([&] {
      asks.join();
      done = true;
    });
    try {
      for (std::size_t i = 0; !done || i < 2 * kExecuted; ++i) {
        CHECK(cudnnSetStream(handle, streams.get(i)));
        executed[i % kExecuted]->execute(handle);
        CHECK(cudaStreamSynchronize(streams.get(i)));  // the next one has the same memory
      }
    } catch (...) {
      failures[0] = std::current_exception();
    }
    ends.join();
    limits.join();
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    CHECK(cudnnDestroy(handle));
  }

  /// The plans of a shape's forward convolution and gradients.
  class Asked : GraphLayer {
   public:
    Asked(cudnnHandle_t handle, const Shape& shape) : GraphLayer(shape) {
      for (const auto operation : {GraphOperation::kForward,
                                   GraphOperation::kBackwardData,
                                   GraphOperation::kBackwardFilter})
        for (const Backend& configuration : configurations(graph(handle, operation))) {
          Backend plan = planOf(handle, configuration);
          if (cudnnBackendFinalize(plan.get()) == CUDNN_STATUS_SUCCESS)
            plans_.push_back(std::move(plan));
        }
    }
    void ask() const {
      for (const Backend& plan : plans_)
        static_cast<void>(bytesOf(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    }
    void execute(cudnnHandle_t handle) {
      const Backend& plan = plans_.front();
      if (space_ == nullptr)
        space_ = std::make_unique<Memory>(bytesOf(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
      const Backend pack = packOf({kX, kW, kY}, {x_.get(), w_.get(), y_.get()}, space_->get());
      CHECK(cudnnBackendExecute(handle, plan.get(), pack.get()));
    }

   private:
    std::vector<Backend> plans_;
    std::unique_ptr<Memory> space_;
  };

  /// No two alike.
  static Shape shapeOf(int i) {
    Shape shape;
    shape.batch = 2 + i % 7;
    shape.channels = 1 + i % 31;
    shape.filters = 1 + i % 5;
    shape.image = {6 + i % 11, 6};
    shape.filter = 3;
    return shape;
  }

  /// ucudnnSetProcessWorkspaceLimit, or what does nothing where there is no μ-cuDNN.
  /// Looked up once: a child mustn't wait for a sanitizer's locks around the loader.
  static int (*limit())(std::size_t) {
    static int (*const found)(std::size_t) = lookUpLimit();
    return found;
  }

 private:
  static int (*lookUpLimit())(std::size_t) {
    void* const library = dlopen(UCUDNN_SONAME, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return [](std::size_t) { return 0; };
    return reinterpret_cast<int (*)(std::size_t)>(dlsym(library, "ucudnnSetProcessWorkspaceLimit"));
  }

  class Streams {
   public:
    Streams() {
      for (cudaStream_t& stream : streams_)
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    ~Streams() {
      for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    }
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;
    cudaStream_t get(std::size_t i) const { return streams_[i % streams_.size()]; }

   private:
    std::array<cudaStream_t, 64> streams_{};
  };

  template <typename Work>
  static std::thread thread(std::exception_ptr& failure, Work work) {
    return std::thread([&failure, work] {
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
    });
  }
};

}  // namespace plain
