#include "simulator/runtime/ordering.hpp"

#include <algorithm>

#include "simulator/runtime/accounting.hpp"

namespace ucudnn::simulator {

namespace {

/// Whether rows of the same pitch touch the same columns.
bool columnsMeet(const Access& a, const Access& b) {
  const std::size_t pitch = std::max(a.pitch, b.pitch);
  const auto column = [pitch](const Access& access) {
    return reinterpret_cast<std::uintptr_t>(access.base) % pitch;
  };
  const std::size_t fromAToB = (column(b) + pitch - column(a)) % pitch;
  return fromAToB < a.bytes || fromAToB + b.bytes > pitch;
}

bool conflict(const Access& a, const Access& b) {
  if (!a.write && !b.write) return false;
  const auto aBegin = reinterpret_cast<std::uintptr_t>(a.base);
  const auto bBegin = reinterpret_cast<std::uintptr_t>(b.base);
  if (aBegin >= bBegin + b.extent() || bBegin >= aBegin + a.extent()) return false;
  const bool isOneGrid = a.pitch == b.pitch || a.rows == 1 || b.rows == 1;
  return a.rows * b.rows == 1 || !isOneGrid || columnsMeet(a, b);
}

bool covers(const Access& outer, const Access& inner) {
  const auto outerBegin = reinterpret_cast<std::uintptr_t>(outer.base);
  const auto innerBegin = reinterpret_cast<std::uintptr_t>(inner.base);
  if (outer.rows > 1)  // the same rows, as of a slot that is filled again
    return outer.base == inner.base && outer.bytes == inner.bytes && outer.rows == inner.rows &&
           outer.pitch == inner.pitch;
  return outerBegin <= innerBegin && innerBegin + inner.extent() <= outerBegin + outer.bytes;
}

}  // namespace

std::uint64_t VectorClock::of(StreamId stream) const {
  const auto found = works_.find(stream);
  return found == works_.end() ? 0 : found->second;
}

void VectorClock::join(const VectorClock& other) {
  for (const auto& [stream, count] : other.works_) {
    std::uint64_t& mine = works_[stream];
    mine = std::max(mine, count);
  }
}

bool VectorClock::covers(const VectorClock& other) const {
  return std::all_of(other.works_.begin(), other.works_.end(), [this](const auto& entry) {
    return of(entry.first) >= entry.second;
  });
}

void AccessLog::add(StreamId stream, const VectorClock& clock, const Work& work) {
  const auto races = [&](const Entry& entry) {
    return clock.of(entry.stream) < entry.number &&
           std::any_of(work.accesses.begin(), work.accesses.end(), [&](const Access& access) {
             return conflict(access, entry.access);
           });
  };
  const auto race = std::find_if(entries_.begin(), entries_.end(), races);
  if (race != entries_.end()) {
    reportViolation(std::string("race: ") + work.name + " and " + race->name +
                    " touch the same memory on streams that nothing orders");
  }
  // Leaves out accesses that are ordered before this work and lie within the memory that it writes:
  // they can't race unless this work races too.
  const auto superseded = [&](const Entry& entry) {
    return clock.of(entry.stream) >= entry.number &&
           std::any_of(work.accesses.begin(), work.accesses.end(), [&](const Access& access) {
             return (access.write || !entry.access.write) && covers(access, entry.access);
           });
  };
  if (!work.accesses.empty()) {
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), superseded), entries_.end());
  }
  const std::uint64_t number = clock.of(stream);
  for (const Access& access : work.accesses) {
    if (access.bytes != 0) entries_.push_back({stream, number, work.name, access});
  }
}

void AccessLog::prune(const VectorClock& host) {
  const auto waitedFor = [&](const Entry& entry) { return host.of(entry.stream) >= entry.number; };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), waitedFor), entries_.end());
}

bool AccessLog::mentions(StreamId stream) const {
  return std::any_of(entries_.begin(), entries_.end(), [stream](const Entry& entry) {
    return entry.stream == stream;
  });
}

}  // namespace ucudnn::simulator
