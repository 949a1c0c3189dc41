// The arguments of calls to the doubles of the C ABI, as plain words.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace ucudnn_test {

struct Call {
  std::string function;
  std::vector<std::uintptr_t> arguments;
};

inline std::vector<Call>& calls() {
  static std::vector<Call> all;
  return all;
}

template <typename T>
std::uintptr_t word(T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
template <typename T, typename = typename std::enable_if<!std::is_pointer<T>::value>::type>
std::uintptr_t word(T value) {
  return static_cast<std::uintptr_t>(value);
}

template <typename T>
typename std::enable_if<std::is_pointer<T>::value, T>::type fromWord(std::uintptr_t value) {
  return reinterpret_cast<T>(value);
}
template <typename T>
typename std::enable_if<!std::is_pointer<T>::value, T>::type fromWord(std::uintptr_t value) {
  return static_cast<T>(value);
}

template <typename... T>
void record(const char* function, T... arguments) {
  calls().push_back(Call{function, {word(arguments)...}});
}

}  // namespace ucudnn_test
