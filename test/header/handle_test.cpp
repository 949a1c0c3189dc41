// UcudnnHandle_t in all the places where real clients put a cudnnHandle_t: misc/docs/CLIENTS.md,
// "At compile time", 4.
#include <gtest/gtest.h>
#include <ucudnn/ucudnn.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

static_assert(sizeof(UcudnnHandle_t) == sizeof(cudnnHandle_t), "one pointer");
static_assert(alignof(UcudnnHandle_t) == alignof(cudnnHandle_t), "one pointer");
static_assert(std::is_trivially_copyable<UcudnnHandle_t>::value, "memcpy, registers");
static_assert(std::is_trivially_destructible<UcudnnHandle_t>::value, "static handles outlive us");
static_assert(std::is_standard_layout<UcudnnHandle_t>::value, "C sees a pointer");
static_assert(std::is_nothrow_default_constructible<UcudnnHandle_t>::value, "");
static_assert(std::is_nothrow_constructible<UcudnnHandle_t, std::nullptr_t>::value, "");
static_assert(std::is_convertible<cudnnHandle_t, UcudnnHandle_t>::value, "implicit from native");
static_assert(std::is_convertible<UcudnnHandle_t, cudnnHandle_t>::value, "implicit to native");
static_assert(std::is_convertible<std::nullptr_t, UcudnnHandle_t>::value, "implicit from nullptr");
static_assert(std::is_constructible<UcudnnHandle_t, void*>::value, "explicit from void*");
static_assert(!std::is_convertible<void*, UcudnnHandle_t>::value, "never implicit from void*");
static_assert(!std::is_constructible<UcudnnHandle_t, int*>::value, "no other pointer");
static_assert(!std::is_constructible<UcudnnHandle_t, int>::value, "0 is a pointer, 1 is not");
static_assert(std::is_same<ucudnn::UcudnnHandle_t, UcudnnHandle_t>::value, "the published name");

namespace {

// Needs no dynamic initialization, so it is null even for a constructor that runs before this
// file's own.
constexpr UcudnnHandle_t kNull;
static_assert(kNull == nullptr, "constant initialization");

int storage[4];

cudnnHandle_t native(int index = 0) {
  return reinterpret_cast<cudnnHandle_t>(&storage[index]);
}

struct Initialization {
  const char* name;
  UcudnnHandle_t handle;
};

UcudnnHandle_t copyInitialized(int kind) {
  UcudnnHandle_t byNullptr = nullptr;
  UcudnnHandle_t byNull = NULL;
  UcudnnHandle_t byZero = 0;
  UcudnnHandle_t byBraces = {};
  UcudnnHandle_t byBracedNullptr = {nullptr};
  UcudnnHandle_t byBracedNull = {NULL};
  UcudnnHandle_t byBracedZero = {0};
  const UcudnnHandle_t all[] = {
      byNullptr, byNull, byZero, byBraces, byBracedNullptr, byBracedNull, byBracedZero};
  return all[kind];
}

TEST(UcudnnHandleTest, IsNullHoweverItIsMade) {
  const Initialization cases[] = {
      {"default", UcudnnHandle_t()},
      {"(nullptr)", UcudnnHandle_t(nullptr)},
      {"(NULL)", UcudnnHandle_t(NULL)},
      {"(0)", UcudnnHandle_t(0)},
      {"{}", UcudnnHandle_t{}},
      {"{nullptr}", UcudnnHandle_t{nullptr}},
      {"{NULL}", UcudnnHandle_t{NULL}},
      {"{0}", UcudnnHandle_t{0}},
      {"= nullptr", copyInitialized(0)},
      {"= NULL", copyInitialized(1)},
      {"= 0", copyInitialized(2)},
      {"= {}", copyInitialized(3)},
      {"= {nullptr}", copyInitialized(4)},
      {"= {NULL}", copyInitialized(5)},
      {"= {0}", copyInitialized(6)},
      {"copy", UcudnnHandle_t(kNull)},
      {"omitted member", Initialization{"", {}}.handle},
  };
  for (const Initialization& each : cases) EXPECT_TRUE(each.handle == nullptr) << each.name;
}

TEST(UcudnnHandleTest, IsNullWithoutInitializerOnAUsedStack) {
  alignas(UcudnnHandle_t) unsigned char bytes[sizeof(UcudnnHandle_t)];
  std::memset(bytes, 0xab, sizeof bytes);
  const UcudnnHandle_t* handle = new (bytes) UcudnnHandle_t;
  EXPECT_TRUE(*handle == nullptr);
}

TEST(UcudnnHandleTest, AssignsFromWhateverItIsMadeFrom) {
  const UcudnnHandle_t set = native();
  UcudnnHandle_t handle = set;
  handle = nullptr;
  EXPECT_FALSE(handle);
  handle = native();
  EXPECT_EQ(handle, set);
  handle = NULL;
  EXPECT_FALSE(handle);
  handle = set;
  handle = 0;
  EXPECT_FALSE(handle);
  handle = set;
  handle = {};
  EXPECT_FALSE(handle);
  handle = set;
  handle = {nullptr};
  EXPECT_FALSE(handle);
}

TEST(UcudnnHandleTest, GoesThroughUntypedPointersAndBack) {
  void* untyped = native();
  EXPECT_EQ(UcudnnHandle_t(untyped), native());
  EXPECT_EQ(static_cast<UcudnnHandle_t>(untyped), native());
  EXPECT_EQ((UcudnnHandle_t)untyped, native());
  UcudnnHandle_t handle = native();
  void* implicitly = handle;
  EXPECT_EQ(implicitly, untyped);
  EXPECT_EQ(static_cast<void*>(handle), untyped);
}

TEST(UcudnnHandleTest, ComparesBothWaysWithNullNativeAndItself) {
  const UcudnnHandle_t handle = native(0), same = native(0), other = native(1), null;
  EXPECT_TRUE(handle == same);
  EXPECT_TRUE(handle != other);
  EXPECT_TRUE(handle == native(0));
  EXPECT_TRUE(native(0) == handle);
  EXPECT_TRUE(handle != native(1));
  EXPECT_TRUE(native(1) != handle);
  EXPECT_TRUE(null == nullptr);
  EXPECT_TRUE(nullptr == null);
  EXPECT_TRUE(handle != nullptr);
  EXPECT_TRUE(nullptr != handle);
  EXPECT_TRUE(null == NULL);
  EXPECT_TRUE(NULL != handle);
  EXPECT_TRUE(null == 0);
  EXPECT_TRUE(handle < other);
  EXPECT_FALSE(handle == other);
  EXPECT_FALSE(handle != same);
}

TEST(UcudnnHandleTest, IsAConditionLikeAPointer) {
  const UcudnnHandle_t handle = native(), null;
  EXPECT_TRUE(handle ? true : false);
  EXPECT_FALSE(null ? true : false);
  EXPECT_TRUE(!null);
  EXPECT_FALSE(!handle);
  EXPECT_TRUE(handle && !null);
  const bool converted = handle;
  EXPECT_TRUE(converted);
  const UcudnnHandle_t chosen = handle ? handle : nullptr;
  EXPECT_EQ(chosen, handle);
}

TEST(UcudnnHandleTest, PrintsItsAddress) {
  std::ostringstream handle, pointer;
  handle << UcudnnHandle_t(native());
  pointer << static_cast<void*>(native());
  EXPECT_EQ(handle.str(), pointer.str());
}

TEST(UcudnnHandleTest, LivesInArraysAndContainers) {
  std::unique_ptr<UcudnnHandle_t[]> dynamic(new UcudnnHandle_t[8]);
  std::vector<UcudnnHandle_t> vector(8);
  std::array<UcudnnHandle_t, 8> array = {};
  UcudnnHandle_t plain[8] = {};
  for (int i = 0; i < 8; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    EXPECT_FALSE(dynamic[at] || vector[at] || array[at] || plain[at]) << i;
  }
  vector.assign(4, nullptr);
  vector.push_back(native());
  vector.emplace_back(native());
  EXPECT_EQ(vector[4], vector[5]);
}

TEST(UcudnnHandleTest, IsAKey) {
  std::map<UcudnnHandle_t, int> map;
  std::unordered_map<UcudnnHandle_t, int> hashed;
  std::set<std::tuple<int, UcudnnHandle_t>> tuples;
  for (int i = 0; i < 4; ++i) {
    map[native(i)] = hashed[native(i)] = i;
    tuples.insert(std::make_tuple(0, UcudnnHandle_t(native(i))));
    tuples.emplace(0, native(i));
  }
  EXPECT_EQ(tuples.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(map.at(UcudnnHandle_t(native(i))), i);
    EXPECT_EQ(hashed.at(UcudnnHandle_t(native(i))), i);
  }
  EXPECT_EQ(std::hash<UcudnnHandle_t>()(native()), std::hash<cudnnHandle_t>()(native()));
}

union Constructed {
  UcudnnHandle_t handle;
  void* pointer;
  Constructed() : pointer(nullptr) {}
};

union Aggregate {
  UcudnnHandle_t handle;
  void* pointer;
};

struct WithAnonymousUnion {
  int kind = 0;
  union {
    UcudnnHandle_t handle = nullptr;
    void* pointer;
  };
};

TEST(UcudnnHandleTest, LivesInUnions) {
  Constructed constructed;
  EXPECT_FALSE(constructed.handle);
  constructed.pointer = native();
  EXPECT_EQ(constructed.handle, native());
  Aggregate empty = {}, byNull = {nullptr}, byNative = {native()};
  EXPECT_FALSE(empty.handle);
  EXPECT_FALSE(byNull.handle);
  EXPECT_EQ(byNative.pointer, native());
  WithAnonymousUnion anonymous;
  EXPECT_FALSE(anonymous.handle);
}

struct CLike {
  int device;
  UcudnnHandle_t handle;
};

TEST(UcudnnHandleTest, LivesInCStructs) {
  static_assert(std::is_standard_layout<CLike>::value && std::is_trivially_copyable<CLike>::value,
                "a C struct");
  CLike one = {1, nullptr}, other = {0, native()};
  EXPECT_FALSE(one.handle);
  std::memcpy(&one, &other, sizeof one);
  EXPECT_EQ(one.handle, native());
  std::memset(static_cast<void*>(&one), 0, sizeof one);
  EXPECT_FALSE(one.handle);
}

UcudnnHandle_t& pooled(int index) {
  thread_local UcudnnHandle_t pool[4];
  return pool[index];
}

TEST(UcudnnHandleTest, LivesInThreadLocalPools) {
  pooled(0) = native();
  UcudnnHandle_t elsewhere = native();
  std::thread([&elsewhere] { elsewhere = pooled(0); }).join();
  EXPECT_FALSE(elsewhere);
  EXPECT_TRUE(pooled(0));
}

TEST(UcudnnHandleTest, IsAtomicWithoutALock) {
  std::atomic<UcudnnHandle_t> handle{UcudnnHandle_t(native())};
  EXPECT_TRUE(std::atomic<UcudnnHandle_t>::is_always_lock_free);
  EXPECT_EQ(handle.exchange(nullptr).operator cudnnHandle_t(), native());
}

int destroyed = 0;

struct CountAndDelete {
  void operator()(UcudnnHandle_t* handle) const {
    if (*handle) ++destroyed;
    delete handle;
  }
};

/// An owner that keeps the handle itself, as it would a pointer.
struct Count {
  using pointer = UcudnnHandle_t;
  void operator()(UcudnnHandle_t handle) const {
    if (handle) ++destroyed;
  }
};

TEST(UcudnnHandleTest, IsOwnedBySmartPointers) {
  destroyed = 0;
  { std::unique_ptr<UcudnnHandle_t, CountAndDelete> owner(new UcudnnHandle_t(native())); }
  { std::shared_ptr<UcudnnHandle_t> owner(new UcudnnHandle_t(native()), CountAndDelete()); }
  {
    std::unique_ptr<void, Count> owner(native());
    EXPECT_EQ(owner.get(), native());
  }
  EXPECT_EQ(destroyed, 3);
}

}  // namespace

// A C function's result: declared as C would for the one side, and called through C++ for the
// other.
extern "C" UcudnnHandle_t ucudnnTestCurrentHandle(void) {
  static UcudnnHandle_t handles[16];
  handles[3] = native(3);
  return handles[3];
}

namespace {

TEST(UcudnnHandleTest, IsReturnedToCAsThePointerThatCSees) {
  EXPECT_EQ(ucudnnTestCurrentHandle(), native(3));
  // C's view of the same function: on every ABI that CUDA supports a pointer and a trivially
  // copyable class of one pointer come back in the same register.
  using CFunction = cudnnHandle_t (*)();
  void* address = nullptr;
  UcudnnHandle_t (*function)() = &ucudnnTestCurrentHandle;
  static_assert(sizeof address == sizeof function, "POSIX");
  std::memcpy(&address, &function, sizeof address);
  CFunction asC = nullptr;
  std::memcpy(&asC, &address, sizeof asC);
  EXPECT_EQ(asC(), native(3));
}

TEST(LayerIdTest, IsFnv1aWithoutTheSign) {
  // Test vectors of http://www.isthe.com/chongo/src/fnv/test_fnv.c, 64-bit FNV-1a.
  const struct {
    const char* name;
    unsigned long long hash;
  } cases[] = {
      {"", 0xcbf29ce484222325ULL}, {"a", 0xaf63dc4c8601ec8cULL}, {"foobar", 0x85944171f73967e8ULL}};
  for (const auto& each : cases) {
    const auto expected = static_cast<ucudnn::LayerId>(each.hash & 0x7fffffffffffffffULL);
    EXPECT_EQ(ucudnn::stringToLayerId(each.name), expected) << each.name;
    EXPECT_EQ(ucudnn::stringToLayerId(std::string(each.name)), expected) << each.name;
    EXPECT_EQ(ucudnnStringToLayerId(each.name), expected) << each.name;
    EXPECT_NE(expected, ucudnn::LayerIdAny);
  }
  EXPECT_EQ(ucudnn::LayerIdAny, UCUDNN_LAYER_ANY);
  EXPECT_GE(ucudnn::stringToLayerId("\xff\xfe"), 0) << "bytes above 127";
}

}  // namespace
