// A client's rounds: who does what at the same time, and a look at the results when all have come.
#include <algorithm>
#include <set>
#include <thread>

#include "../support/checked.hpp"
#include "../support/simulator.hpp"
#include "client.hpp"

namespace ucudnn::test {
namespace {}  // namespace

/// A stream for one actor. The legacy stream waits for all others, which voids a capture.
cudaStream_t Client::pickStream(int device, bool capturing, bool othersCapture, bool* owned) {
  *owned = false;
  if (!capturing && random_.chance(0.15)) {
    *owned = true;
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }
  if (random_.chance(0.2)) return cudaStreamPerThread;
  if (!capturing && !othersCapture && random_.chance(0.3)) return nullptr;
  return random_.pick(streams_[static_cast<std::size_t>(device)]);
}

/// Whether another actor has one of its handles, its stream or one of its sites: none of them is
/// for two threads at a time.
bool Client::isTaken(const Part& part, const std::vector<Part>& parts) const {
  return std::any_of(parts.begin(), parts.end(), [&](const Part& other) {
    const std::set<const ClientHandle*> handles{other.asker, other.runner};
    if (handles.count(part.asker) + handles.count(part.runner) > 0) return true;
    if (part.stream == other.stream && part.stream != cudaStreamPerThread && part.stream != nullptr)
      return true;
    return std::any_of(part.sites.begin(), part.sites.end(), [&](const Site* site) {
      return std::find(other.sites.begin(), other.sites.end(), site) != other.sites.end();
    });
  });
}

std::vector<Part> Client::chooseParts() {
  const int wanted = scenario_.threads == 1 ? 1 : random_.between(1, scenario_.threads);
  const int capturing = random_.chance(0.3) ? 0 : wanted;  // that actor, if there is one
  std::vector<Part> parts;
  for (int i = 0; i < wanted; ++i) {
    Part part;
    const int device = random_.between(0, scenario_.devices - 1);
    std::vector<ClientHandle*> handles;
    for (ClientHandle& handle : handles_)
      if (handle.device == device) handles.push_back(&handle);
    std::vector<Site*> sites;
    for (const auto& site : sites_)
      if (site->device() == device) sites.push_back(site.get());
    if (sites.empty()) continue;
    part.runner = random_.pick(handles);
    part.asker = random_.chance(0.7) ? part.runner : random_.pick(handles);
    for (int count = random_.between(1, 2); count > 0; --count) {
      Site* const site = random_.pick(sites);
      if (part.sites.empty() || part.sites.front() != site) part.sites.push_back(site);
    }
    if (i == capturing)
      part.captures = random_.pick({cudaStreamCaptureModeGlobal,
                                    cudaStreamCaptureModeThreadLocal,
                                    cudaStreamCaptureModeRelaxed});
    part.othersCapture = capturing < wanted && i != capturing;
    check(cudaSetDevice(device));
    part.stream =
        pickStream(device, part.captures.has_value(), part.othersCapture, &part.ownsStream);
    if (!isTaken(part, parts)) {
      parts.push_back(part);
    } else if (part.ownsStream) {
      check(cudaStreamDestroy(part.stream));
    }
  }
  return parts;
}

/// All at the same time.
template <typename Do>
void Client::together(std::deque<Actor>& actors, Do what) {
  const auto guarded = [&](Actor& actor) {
    try {
      what(actor);
    } catch (const std::exception& error) {
      report_.fail("", std::string("an actor ended: ") + error.what());
    }
  };
  if (actors.size() == 1) return guarded(actors.front());
  std::vector<std::thread> threads;
  for (Actor& actor : actors) threads.emplace_back([&] { guarded(actor); });
  for (std::thread& thread : threads) thread.join();
}

void Client::waitForDevices() {
  for (int device = 0; device < scenario_.devices; ++device) {
    check(cudaSetDevice(device));
    check(cudaDeviceSynchronize());
  }
}

void Client::act(const std::vector<Part>& parts) {
  std::deque<Actor> actors;
  for (const Part& part : parts) actors.emplace_back(scenario_, part, random_.split(), report_);
  // Most of what is measured need not be computed.
  if (random_.chance(0.8)) {
    setArithmetic(Arithmetic::kOff);
    together(actors, [](Actor& actor) { actor.prepare(); });
    setArithmetic(Arithmetic::kFull);
    waitForDevices();
  }
  for (const Part& part : parts) {
    check(cudaSetDevice(part.runner->device));
    for (Site* site : part.sites) site->restore();
  }
  together(actors, [](Actor& actor) { actor.act(); });
  waitForDevices();
  for (Actor& actor : actors) {
    for (Site* site : actor.called()) lookAt(*site, "a call");
    ClientGraph graph = actor.takeGraph();
    if (graph.exec != nullptr) graphs_.push_back(std::move(graph));
  }
}

}  // namespace ucudnn::test
