// What those share who name the same key.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "support/fork.hpp"

namespace ucudnn {

/// A value for each key: made for the first that asks, gone with the last that holds it.
/// Thread-safe. The process's are never destroyed: handles are used in static destructors.
template <typename Key, typename Value>
class SharedByKey {
 public:
  /// The arguments are those that a new value is made of. Throws what that throws, std::bad_alloc.
  template <typename... Arguments>
  std::shared_ptr<Value> get(const Key& key, Arguments&&... arguments) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<Value>& place = values_[key];
    std::shared_ptr<Value> value = place.lock();
    if (!value) place = value = std::make_shared<Value>(std::forward<Arguments>(arguments)...);
    return value;
  }

 private:
  ForkMutex mutex_;
  std::map<Key, std::weak_ptr<Value>> values_;
};

}  // namespace ucudnn
