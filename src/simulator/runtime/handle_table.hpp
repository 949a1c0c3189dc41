// Handles that are numbers in disguise: never used twice, so that a stale one is always noticed,
// and outside the addresses a process can have, so that following one faults.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <unordered_map>
#include <utility>

namespace ucudnn::simulator {

/// Not thread-safe. `Handle` is one of CUDA's pointer types.
template <typename Handle, typename Object>
class HandleTable {
 public:
  Handle add(std::unique_ptr<Object> object) {
    const std::uintptr_t number = ++last_;
    objects_.emplace(number, std::move(object));
    return reinterpret_cast<Handle>(kFirst + number * kStep);
  }

  Object* find(Handle handle) const {
    const auto found = objects_.find(numberOf(handle));
    return found == objects_.end() ? nullptr : found->second.get();
  }

  bool erase(Handle handle) { return objects_.erase(numberOf(handle)) != 0; }

  template <typename Visitor>
  void forEach(Visitor visit) const {
    for (const auto& [number, object] : objects_) visit(*object);
  }

  template <typename Predicate>
  int eraseIf(Predicate matches) {
    int erased = 0;
    for (auto object = objects_.begin(); object != objects_.end();) {
      const bool match = matches(*object->second);
      object = match ? objects_.erase(object) : std::next(object);
      erased += match ? 1 : 0;
    }
    return erased;
  }

 private:
  static constexpr std::uintptr_t kFirst = 0x0051'0000'0000'0000;  // not canonical on x86-64
  static constexpr std::uintptr_t kStep = 16;                      // aligned as a pointer would be

  static std::uintptr_t numberOf(Handle handle) {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    return value < kFirst || (value - kFirst) % kStep != 0 ? 0 : (value - kFirst) / kStep;
  }

  std::unordered_map<std::uintptr_t, std::unique_ptr<Object>> objects_;
  std::uintptr_t last_ = 0;
};

}  // namespace ucudnn::simulator
