// A hash map that forgets the entries that have not been used for longest.
#pragma once

#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>

namespace ucudnn {

/// Holds at most `capacity` entries, because a client may bring new problems, limits and streams
/// for ever. References stay valid until the entry is forgotten. Not thread-safe.
template <typename Key, typename Value, typename Hash>
class BoundedMap {
 public:
  explicit BoundedMap(std::size_t capacity) : capacity_(capacity) {}

  /// Null if the key is not there. Counts as a use.
  Value* find(const Key& key) {
    const auto place = places_.find(key);
    if (place == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, place->second);
    return &place->second->second;
  }

  /// The same without counting as a use.
  const Value* peek(const Key& key) const {
    const auto place = places_.find(key);
    return place == places_.end() ? nullptr : &place->second->second;
  }

  /// Calls `look(key, value)`, the latest used first.
  template <typename Look>
  void forEach(Look look) const {
    for (const auto& [key, value] : entries_) look(key, value);
  }

  /// Adds a default value if the key is not there. Then forgets the oldest entry if there are too
  /// many. If it throws, nothing has changed.
  Value& operator[](const Key& key) {
    if (Value* const known = find(key)) return *known;
    Entries added;
    added.emplace_front(key, Value());
    places_[key] = added.begin();
    entries_.splice(entries_.begin(), added);
    if (entries_.size() > capacity_) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return entries_.front().second;
  }

  /// Whether the key was there.
  bool erase(const Key& key) {
    const auto place = places_.find(key);
    if (place == places_.end()) return false;
    entries_.erase(place->second);
    places_.erase(place);
    return true;
  }

  void clear() {
    places_.clear();
    entries_.clear();
  }

  std::size_t size() const noexcept { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<Key, Value>>;

  std::size_t capacity_;
  Entries entries_;  ///< the latest used first
  std::unordered_map<Key, typename Entries::iterator, Hash> places_;
};

}  // namespace ucudnn
