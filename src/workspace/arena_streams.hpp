// Which stream uses which of several arenas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace ucudnn {

/// Remembers streams while they are looked up, kMostStreams at most. Not thread-safe.
class ArenaStreams {
 public:
  static constexpr std::size_t kMostStreams = 256;

  /// Forgets all and takes these.
  void assign(const std::map<std::uint64_t, std::size_t>& arenas, std::uint64_t now) {
    streams_.clear();
    for (const auto& [stream, arena] : arenas) streams_[stream] = {arena, now};
  }

  /// The stream's arena. One that is not known gets `leastUsed`.
  std::size_t arenaOf(std::uint64_t stream, std::size_t leastUsed, std::uint64_t now) {
    const auto [place, isNew] = streams_.try_emplace(stream, Entry{leastUsed, now});
    place->second.seen = now;
    const std::size_t arena = place->second.arena;
    if (isNew && streams_.size() > kMostStreams) forgetOldest();
    return arena;
  }

  bool knows(std::uint64_t stream) const { return streams_.count(stream) > 0; }
  std::size_t size() const noexcept { return streams_.size(); }

 private:
  struct Entry {
    std::size_t arena = 0;
    std::uint64_t seen = 0;
  };

  void forgetOldest() {
    auto oldest = streams_.begin();
    for (auto stream = streams_.begin(); stream != streams_.end(); ++stream)
      if (stream->second.seen < oldest->second.seen) oldest = stream;
    streams_.erase(oldest);
  }

  std::map<std::uint64_t, Entry> streams_;
};

}  // namespace ucudnn
