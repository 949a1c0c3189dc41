// The simulator's counters: calls (and the one that is to fail), live handles, violations.
// Everything here is thread-safe, may be called at any time, and is never torn down: clients
// destroy handles from static destructors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "simulator/runtime.hpp"

namespace ucudnn::simulator {

/// Guarded by a mutex of its own, which is held while no other lock is taken.
class Accounting {
 public:
  static Accounting& instance();

  bool callFails(const char* function);
  void failCall(std::int64_t callsFromNow);
  std::int64_t callCount(const char* functionOrNull);

  void countHandle(const char* kind, int change);
  std::int64_t liveHandles(const char* kindOrNull);
  std::int64_t liveResources();  ///< all kinds but descriptors

  void reportViolation(const std::string& message);
  std::int64_t violationCount();

  /// "1 event, 2 stream": the kinds that are not 0, of resources or of everything.
  std::string leaks(bool descriptorsToo);

  void lock() { mutex_.lock(); }  ///< Machine's, around a fork
  void unlock() { mutex_.unlock(); }

 private:
  /// Counters by name. A name that comes again at the same address is found by that. Nothing is
  /// allocated for a known name: a test waits for a handle's address to come back.
  class Counters {
   public:
    using ByName = std::map<std::string, std::int64_t, std::less<>>;

    std::int64_t& operator[](const char* name);
    const ByName& all() const { return byName_; }

   private:
    struct Known {
      const char* address = nullptr;
      ByName::value_type* counter = nullptr;
    };

    ByName byName_;
    std::array<Known, 1024> byAddress_;  ///< names take each other's places
  };

  Accounting();

  std::mutex mutex_;
  Counters calls_;
  Counters handles_;
  std::int64_t callTotal_ = 0;
  std::int64_t failingCall_;  ///< compared with callTotal_; 0: none
  std::int64_t violations_ = 0;
};

}  // namespace ucudnn::simulator
