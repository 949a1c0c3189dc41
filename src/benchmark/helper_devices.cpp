#include "benchmark/helper_devices.hpp"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <deque>
#include <exception>
#include <thread>
#include <utility>

#include "cuda/owners.hpp"
#include "support/fork.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

/// At the process's end, waits this long for a thread that is inside CUDA.
constexpr std::chrono::seconds kPatience{5};

/// A handle on its own stream, which orders with no other stream: a client may be capturing one.
struct Tools {
  Stream stream;
  CudnnHandle handle;

  explicit Tools(int device) {
    UCUDNN_CHECK_CUDA(cudaSetDevice(device));
    stream = makeStream();
    handle = makeOwned<CudnnHandle>(cudnn().create);
    UCUDNN_CHECK_CUDNN(cudnn().setStream(handle.get(), stream.get()));
  }
};

/// The client's signals are for its own threads.
void blockSignals() noexcept {
  sigset_t all;
  sigfillset(&all);
  static_cast<void>(pthread_sigmask(SIG_BLOCK, &all, nullptr));
}

}  // namespace

void Invitation::accept(cudnnHandle_t handle) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    ++inside_;
  }
  work_(handle);
  const std::lock_guard lock(mutex_);
  --inside_;
  left_.notify_all();
}

void Invitation::close() noexcept {
  std::unique_lock lock(mutex_);
  open_ = false;
  left_.wait(lock, [this] { return inside_ == 0; });
}

/// One device's thread. Thread-safe.
class HelperDevice {
 public:
  /// Throws std::system_error if there can't be one more thread.
  explicit HelperDevice(int device) : device_(device), thread_([this] { run(); }) {}

  /// Null: only gets ready.
  void invite(std::shared_ptr<Invitation> invitation) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    invitations_.push_back(std::move(invitation));
    changed_.notify_all();
  }

  void stop() {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    const bool ended = changed_.wait_for(lock, kPatience, [this] { return ended_; });
    lock.unlock();
    ended ? thread_.join() : thread_.detach();
  }

 private:
  void run() noexcept {
    blockSignals();
    work();
    const std::lock_guard lock(mutex_);
    ended_ = true;
    invitations_.clear();  // whoever waits for one learns that
    changed_.notify_all();
  }

  void work() noexcept try {
    const RelaxedCapture relaxed;
    std::unique_ptr<Tools> tools;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopped_ || !invitations_.empty(); });
      if (stopped_) break;
      const std::shared_ptr<Invitation> invitation = std::move(invitations_.front());
      invitations_.pop_front();
      lock.unlock();
      if (!tools) tools = makeTools(!invitation || invitation->isSetting());
      if (tools && invitation) {
        invitation->accept(tools->handle.get());
        HelperDevices::stopBeforeLoadedCode();
      }
      lock.lock();
    }
    lock.unlock();
    tools.reset();
  } catch (const std::exception& error) {
    logInfo("benchmark device {} is left out: {}", device_, error.what());
  }

  /// Null: tried again at the next invitation, as memory may be short only now.
  std::unique_ptr<Tools> makeTools(bool isSetting) noexcept {
    try {
      return std::make_unique<Tools>(device_);
    } catch (const std::exception& error) {
      if (isSetting && !std::exchange(hasFailed_, true))
        logWarn("benchmark device {} failed: {}", device_, error.what());
      else
        logInfo("no thread helps on device {}: {}", device_, error.what());
      return nullptr;
    }
  }

  const int device_;
  bool hasFailed_ = false;
  ForkMutex mutex_;
  ForkCondition changed_;
  std::deque<std::shared_ptr<Invitation>> invitations_;
  bool stopped_ = false, ended_ = false;
  std::thread thread_;  ///< the last: it uses the others
};

/// Ends the threads with the process or the library. A forked child has none of them.
struct HelperDevices::StopAtEnd {
  pid_t process = getpid();
  ~StopAtEnd() {
    if (getpid() == process) instance().stop();
  }
};

HelperDevices& HelperDevices::instance() {
  static HelperDevices& devices = *new HelperDevices;
  static const StopAtEnd stopAtEnd;  // made after CUDA's own, so run before them
  return devices;
}

/// Stops the threads a second time, earlier. The code that cuDNN loads for its first work, such as
/// a compiler, ends before the objects that were made earlier, and threads may be in it.
void HelperDevices::stopBeforeLoadedCode() {
  static const StopAtEnd stopAtEnd;
}

void HelperDevices::invite(int device, std::shared_ptr<Invitation> invitation) noexcept try {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  std::unique_ptr<HelperDevice>& helper = devices_[device];
  if (!helper) helper = std::make_unique<HelperDevice>(device);
  helper->invite(std::move(invitation));
} catch (const std::exception& error) {
  logInfo("benchmark device {} is left out: {}", device, error.what());
}

void HelperDevices::prepare(int device) noexcept {
  invite(device, nullptr);
}

void HelperDevices::stop() noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(stopped_, true)) return;
  for (auto& [device, helper] : devices_)
    if (helper) helper->stop();
}

}  // namespace ucudnn
