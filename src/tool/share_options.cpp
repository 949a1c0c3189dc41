#include "tool/share_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tool/failure.hpp"

namespace ucudnn::tool {
namespace {

constexpr const char* kSeveral = "Several devices (lists: one value, or one for each device)";

template <typename Value>
CLI::Option* addList(CLI::App& app,
                     const char* name,
                     std::vector<Value>& values,
                     const char* type,
                     const char* help) {
  return app.add_option(name, values, help)
      ->type_name(type)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(kSeveral);
}

CLI::Option* addDevices(CLI::App& app, ShareOptions& o) {
  return addList(app, "--devices", o.devices, "LIST", "CUDA devices, as 0,1")
      ->check(CLI::NonNegativeNumber.description(""));
}

CLI::Option* addMemory(CLI::App& app, ShareOptions& o) {
  return addList(app, "--memory", o.mostSamples, "SAMPLES", "the most samples that fit, as 256,80")
      ->check(CLI::Range(1, 1 << 20).description(""));
}

}  // namespace

void addShareOptions(CLI::App& app, ShareOptions& o) {
  CLI::Option* const devices = addDevices(app, o);
  app.add_option("--machine",
                 o.machines,
                 "instead of --devices: a kind of device that the database knows, as \"NVIDIA "
                 "H200\"; once for each device")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->excludes(devices)
      ->group(kSeveral);
  addMemory(app, o);
  addList(app,
          "--rest",
          o.rest,
          "MS,MS",
          "what else a step takes: ms, and ms for each sample; of all devices, or of each in turn");
  app.add_option("--exchange", o.exchangeMs, "ms for the exchange of gradients; default: 0")
      ->type_name("MS")
      ->check(CLI::NonNegativeNumber.description(""))
      ->group(kSeveral);
}

void addDataParallelOptions(CLI::App& app, ShareOptions& o) {
  CLI::Option* const flag =
      app.add_flag("--data-parallel",
                   o.dataParallel,
                   "train all layers as one network whose mini-batch the devices share, a process "
                   "for each; --limit is a list, too")
          ->excludes(app.get_option("--device"))
          ->group(kSeveral);
  addDevices(app, o)->needs(flag);
  addMemory(app, o)->needs(flag);
  addList(app,
          "--multiprocessors",
          o.multiprocessors,
          "COUNT",
          "emulate smaller devices: use so many multiprocessors of each, as 132,64")
      ->needs(flag);
}

template <typename Value>
const Value& valueFor(const char* option,
                      const std::vector<Value>& list,
                      std::size_t device,
                      std::size_t count) {
  if (list.size() != 1 && list.size() != count)
    throw BadInput(fmt::format("{}: {} values for {} devices; accepted: one, or one for each",
                               option,
                               list.size(),
                               count));
  return list[list.size() == 1 ? 0 : device];
}

int mostSamplesOf(const ShareOptions& options, std::size_t device, int samples) {
  if (options.mostSamples.empty()) return samples;
  return std::min(samples, valueFor("--memory", options.mostSamples, device, options.size()));
}

template const int& valueFor(const char*, const std::vector<int>&, std::size_t, std::size_t);
template const std::size_t& valueFor(const char*,
                                     const std::vector<std::size_t>&,
                                     std::size_t,
                                     std::size_t);

}  // namespace ucudnn::tool
