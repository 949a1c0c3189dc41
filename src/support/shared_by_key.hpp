// Values that are shared by all who name the same key.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "support/fork.hpp"

namespace ucudnn {

/// A value for each key. It is made for the first who asks, and destroyed when the last holder is
/// gone. Thread-safe. The process's instances are never destroyed, because static destructors use
/// handles.
template <typename Key, typename Value>
class SharedByKey {
 public:
  /// Makes a new value of the arguments. Throws the exceptions of its constructor, std::bad_alloc.
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
