// Which works are ordered, and which race: vector clocks, as race detectors for threads use them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "simulator/runtime.hpp"

namespace ucudnn::simulator {

using StreamId = std::uint64_t;  ///< never used twice

/// For each stream, how many of its works happened before.
class VectorClock {
 public:
  std::uint64_t of(StreamId stream) const;
  std::uint64_t advance(StreamId stream) { return ++works_[stream]; }
  void join(const VectorClock& other);
  bool covers(const VectorClock& other) const;
  void forget(StreamId stream) { works_.erase(stream); }

 private:
  std::unordered_map<StreamId, std::uint64_t> works_;
};

/// The accesses of works that the host has not waited for yet. Not thread-safe.
class AccessLog {
 public:
  /// Adds a work of `stream`, which is work number clock.of(stream), and reports a violation for
  /// the first of its accesses that races with an earlier one.
  void add(StreamId stream, const VectorClock& clock, const Work& work);
  /// Drops what `host` has waited for: everything enqueued later is ordered after it.
  void prune(const VectorClock& host);
  bool mentions(StreamId stream) const;

 private:
  struct Entry {
    StreamId stream;
    std::uint64_t number;
    const char* name;
    Access access;
  };
  std::vector<Entry> entries_;
};

}  // namespace ucudnn::simulator
