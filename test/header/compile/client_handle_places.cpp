// The handle in all the places where clients put one, for every compiler; handle_test.cpp says what
// it does there.
#include <ucudnn/ucudnn.h>

#include <array>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

union Constructed {
  UcudnnHandle_t handle;
  void* pointer;
  Constructed() : pointer(nullptr) {}
};

union Aggregate {
  UcudnnHandle_t handle;
  void* pointer;
};

struct Deleter {
  void operator()(UcudnnHandle_t* handle) const { delete handle; }
};

extern "C" UcudnnHandle_t* everyHandle(void) {
  static UcudnnHandle_t handles[16];
  return handles;
}
extern "C" UcudnnHandle_t currentHandle(void) {
  return everyHandle()[0];
}

bool initialize(cudnnHandle_t native, void* untyped) {
  UcudnnHandle_t plain, zero(0), null(NULL), nullPointer(nullptr), braces{}, bracedNull{nullptr};
  UcudnnHandle_t byZero = 0, byNull = NULL, byNullPointer = nullptr, byBraces = {};
  UcudnnHandle_t byBracedNull = {nullptr}, byBracedZero = {0}, byNative = native, direct(native);
  UcudnnHandle_t explicitly(untyped), cast = static_cast<UcudnnHandle_t>(untyped);
  byNative = nullptr;
  byNative = 0;
  byNative = NULL;
  byNative = {};
  Constructed constructed;
  Aggregate aggregate = {nullptr};
  const bool none = plain || zero || null || nullPointer || braces || bracedNull || byZero ||
                    byNull || byNullPointer || byBraces || byBracedNull || byBracedZero;
  return !none && direct == native && native == direct && explicitly != nullptr &&
         nullptr != cast && direct == explicitly && !(byNative != nullptr) && !constructed.handle &&
         !aggregate.handle;
}

std::size_t contain() {
  thread_local UcudnnHandle_t pool[4];
  std::vector<UcudnnHandle_t> vector(4, nullptr);
  std::array<UcudnnHandle_t, 4> array = {};
  std::unordered_map<UcudnnHandle_t, int> map;
  std::tuple<int, UcudnnHandle_t> tuple(0, nullptr);
  std::unique_ptr<UcudnnHandle_t, Deleter> unique(new UcudnnHandle_t(nullptr));
  std::shared_ptr<UcudnnHandle_t> shared(new UcudnnHandle_t, Deleter());
  std::unique_ptr<UcudnnHandle_t[]> dynamic(new UcudnnHandle_t[4]);
  map[pool[0]] = 1;
  map[std::get<1>(tuple)] = 2;
  map[*unique] = map[*shared] = map[dynamic[1]] = map[currentHandle()] = 3;
  return map.size() + vector.size() + array.size();
}
