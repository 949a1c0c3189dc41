#include "support/fork.hpp"

#include <pthread.h>

#include <array>
#include <chrono>
#include <vector>

namespace ucudnn {
namespace {

/// Far more than a holder needs, unless it waits for something outside.
constexpr std::chrono::seconds kPatience{1};

/// Threads count themselves in different places, so that they don't wait for each other's cache
/// lines.
constexpr std::size_t kPlaces = 64;
struct alignas(64) Place {
  std::atomic<int> inside{0};
};

struct Gate {
  Gate() { ::pthread_atfork(close, openInParent, openInChild); }

  static void close();
  static void openInParent();
  static void openInChild();

  std::array<Place, kPlaces> places;
  std::atomic<bool> isClosed{false};
  std::mutex forking;  ///< guards the hooks; held by the thread that forks
  std::vector<ForkHooks> hooks;
};

std::atomic<std::uint64_t> forks{0};

/// Never destroyed, because static destructors take locks. Made while the library is loaded, when
/// no other thread uses it.
Gate& gate() noexcept {
  static Gate& instance = *new Gate;
  return instance;
}
[[maybe_unused]] const Gate& madeEarly = gate();

/// How many locks this thread holds or waits for.
thread_local int depth = 0;

Place& placeOfThisThread() noexcept {
  constexpr std::uintptr_t kMultiplier = 0x9E3779B97F4A7C15u;
  return gate().places[reinterpret_cast<std::uintptr_t>(&depth) * kMultiplier >> 58];
}

int inside() noexcept {
  int sum = 0;
  for (const Place& place : gate().places) sum += place.inside.load(std::memory_order_seq_cst);
  return sum;
}

void Gate::close() {
  gate().forking.lock();
  for (const ForkHooks& hooks : gate().hooks)
    if (hooks.before != nullptr) hooks.before();
  gate().isClosed.store(true, std::memory_order_seq_cst);
  const int own = depth > 0 ? 1 : 0;  // a hook's lock
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (inside() > own && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

void Gate::openInParent() {
  gate().isClosed.store(false, std::memory_order_release);
  for (const ForkHooks& hooks : gate().hooks)
    if (hooks.inParent != nullptr) hooks.inParent();
  gate().forking.unlock();
}

void Gate::openInChild() {
  for (Place& place : gate().places) place.inside = 0;
  depth = 0;
  forks.fetch_add(1, std::memory_order_release);
  gate().isClosed = false;
  for (const ForkHooks& hooks : gate().hooks)
    if (hooks.inChild != nullptr) hooks.inChild();
  gate().forking.unlock();
}

}  // namespace

namespace fork_gate {

void enter() noexcept {
  if (depth++ > 0) return;
  std::atomic<int>& inside = placeOfThisThread().inside;
  // Either the forking thread counts this one as inside, or this one sees that the gate is closed.
  for (;;) {
    inside.fetch_add(1, std::memory_order_seq_cst);
    if (!gate().isClosed.load(std::memory_order_seq_cst)) return;
    inside.fetch_sub(1, std::memory_order_seq_cst);
    while (gate().isClosed.load(std::memory_order_acquire))
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void leave() noexcept {
  if (--depth == 0) placeOfThisThread().inside.fetch_sub(1, std::memory_order_release);
}

std::uint64_t generation() noexcept {
  return forks.load(std::memory_order_acquire);
}

}  // namespace fork_gate

void onFork(const ForkHooks& hooks) {
  gate().hooks.push_back(hooks);
}

}  // namespace ucudnn
