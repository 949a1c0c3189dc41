// A program that forks, as those do whose data loaders are processes, while its threads use cuDNN.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph_threads.hpp"

namespace plain {

class GraphForks {
 public:
  void run() {
    constexpr int kChildren = 100;
    cudnnHandle_t handle = nullptr;
    CHECK(cudnnCreate(&handle));
    GraphThreads::limit();
    {
      Asked asked(handle, GraphThreads::shapeOf(1));
      asked.ask();
      std::vector<std::thread> threads;
      for (const auto& work : {makeDescriptors, makePlans, makeHandles, setLimits})
        threads.emplace_back([&, work] {
          try {
            for (int i = 0; !done_; ++i) work(i);
          } catch (const std::exception& error) {
            std::printf("%s\n", error.what());
            ++failures_;
          }
        });
      int failed = 0;
      for (int i = 0; i < kChildren && failed == 0; ++i) {
        // Does the work of a static object's destructor, and that of a worker that uses a GPU.
        failed += isWell(child([&, i] {
          makeDescriptors(i);
          asked.ask();
          asked.execute(handle);
          for (const auto& work : {makePlans, makeHandles, setLimits}) work(i);
          cudnnDestroy(handle);
        }))
                      ? 0
                      : 1;
      }
      done_ = true;
      for (std::thread& thread : threads) thread.join();
      check(failures_, "threads");
      check(failed, "children");
    }
    CHECK(cudnnDestroy(handle));
  }

 private:
  using Asked = GraphThreads::Asked;

  static void makeDescriptors(int) {
    for (int i = 0; i < 100; ++i) const Backend made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  }
  static void makePlans(int i) {
    cudnnHandle_t handle = nullptr;
    CHECK(cudnnCreate(&handle));
    {
      Asked asked(handle, GraphThreads::shapeOf(i));
      asked.ask();
      for (int k = 0; k < 3; ++k) asked.execute(handle);
      CHECK(cudaStreamSynchronize(nullptr));
    }
    CHECK(cudnnDestroy(handle));
  }
  static void makeHandles(int) {
    cudnnHandle_t handle = nullptr;
    CHECK(cudnnCreate(&handle));
    CHECK(cudnnDestroy(handle));
  }
  static void setLimits(int i) {
    CHECK(GraphThreads::limit()(static_cast<std::size_t>(1 + i % 5) << 16));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }

  template <typename Work>
  static pid_t child(Work work) {
    const pid_t made = fork();
    if (made != 0) return made;
    try {
      work();
      _exit(0);
    } catch (const std::exception& error) {
      std::printf("child: %s\n", error.what());
      std::fflush(stdout);
      _exit(3);
    }
  }

  static bool isWell(pid_t child) {
    constexpr int kMostWaits = 3000;  // of 10 ms
    int status = 0;
    for (int i = 0; i < kMostWaits; ++i) {
      if (waitpid(child, &status, WNOHANG) == child) return status == 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::printf("child %d hangs\n", static_cast<int>(child));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return false;
  }

  std::atomic<bool> done_{false};
  std::atomic<int> failures_{0};
};

}  // namespace plain
