// The command line's options for several devices, as values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ucudnn::tool {

/// Lists have one value for each device in turn, or one for all.
struct ShareOptions {
  std::vector<int> devices;
  std::vector<std::string> machines;  ///< instead of devices: kinds that a database knows
  std::string database;               ///< where `machines` are looked up, without --database
  std::vector<int> mostSamples;       ///< the most that the memory holds; empty: any number
  std::vector<double> rest;           ///< pairs: ms of a step, and of each of its samples
  double exchangeMs = 0;
  std::vector<int> multiprocessors;  ///< of `bench --data-parallel`; empty: all
  bool dataParallel = false;

  std::size_t size() const noexcept { return machines.empty() ? devices.size() : machines.size(); }
};

/// The options of `ucudnn shares`.
void addShareOptions(CLI::App& app, ShareOptions& options);
/// Those of `ucudnn bench --data-parallel`.
void addDataParallelOptions(CLI::App& app, ShareOptions& options);

/// The most samples of a mini-batch that one of the devices may take. Throws BadInput.
int mostSamplesOf(const ShareOptions& options, std::size_t device, int samples);
/// The error if the devices can't run the mini-batch.
constexpr const char* kNotHeld = "the devices' memory does not hold the mini-batch: see --memory";

/// The list's value for one of `count` devices. Throws BadInput unless it has one value or `count`.
template <typename Value>
const Value& valueFor(const char* option,
                      const std::vector<Value>& list,
                      std::size_t device,
                      std::size_t count);

}  // namespace ucudnn::tool
