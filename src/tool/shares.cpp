// `ucudnn shares`
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/output_file.hpp"
#include "tool/share_report.hpp"
#include "tool/step_planner.hpp"
#include "tool/stored_times.hpp"

namespace ucudnn::tool {
namespace {

/// A device of this host. Others of its kind take its times.
class PlannedKind {
 public:
  PlannedKind(int device,
              const std::vector<Layer>& layers,
              const ConvolutionOptions& options,
              std::size_t limitBytes)
      : device_(device), layers_(layers), options_(options), limitBytes_(limitBytes) {
    useDevice(device_);
    stream_ = makeStream();
    handles_ = std::make_unique<Handles>(stream_.get());
    check(handles_->ours().setTotalWorkspaceSize(0), "ucudnnSetTotalWorkspaceSize");
    configure(handles_->ours(), options_);
  }

  StepPlan plan(int samples) const {
    useDevice(device_);
    return planStep(handles_->ours(), layers_, options_, limitBytes_, samples);
  }

 private:
  int device_;
  const std::vector<Layer>& layers_;
  const ConvolutionOptions& options_;
  std::size_t limitBytes_;
  Stream stream_;
  std::unique_ptr<Handles> handles_;
};

/// The kinds of devices, each with a function that plans for it.
struct Kinds {
  std::vector<std::function<StepPlan(int samples)>> plans;  ///< by kind
  std::map<std::string, std::size_t> numbers;

  /// Calls `make` if the kind is new.
  template <typename Make>
  std::size_t number(const std::string& name, std::size_t limitBytes, Make make) {
    const auto [place, isNew] =
        numbers.try_emplace(fmt::format("{} {}", limitBytes, name), plans.size());
    if (isNew) plans.push_back(make());
    return place->second;
  }
};

StepRest restOf(const ShareOptions& shares, std::size_t device) {
  const std::vector<double>& rest = shares.rest;
  if (rest.empty()) return {};
  if (rest.size() != 2 && rest.size() != 2 * shares.size())
    throw BadInput("--rest: two numbers, or two for each device, separated by commas");
  const std::size_t pair = rest.size() == 2 ? 0 : 2 * device;
  return {rest[pair], rest[pair + 1]};
}

struct Cluster {
  std::vector<NamedDevice> devices;
  std::vector<Participant> participants;
  Kinds kinds;
};

Cluster describe(const BenchOptions& options,
                 const ShareOptions& asked,
                 const std::vector<Layer>& layers) {
  Cluster cluster;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::size_t limitBytes = valueFor("--limit", options.limitsBytes, i, asked.size());
    std::string name;
    std::size_t kind = 0;
    if (asked.machines.empty()) {
      const int device = asked.devices[i];
      useDevice(device, "--devices");
      const std::string model = describeDevice(device).at("device");
      name = fmt::format("{}: {}", device, model);
      kind = cluster.kinds.number(model, limitBytes, [&] {
        auto planned = std::make_shared<PlannedKind>(device, layers, options, limitBytes);
        return [planned](int share) { return planned->plan(share); };
      });
    } else {
      const std::string database = options.database.value_or(asked.database);
      if (database.empty())
        throw BadInput("--machine: give --database FILE or set UCUDNN_DATABASE");
      name = asked.machines[i];
      kind = cluster.kinds.number(name, limitBytes, [&] {
        auto steps = storedSteps(database, name, layers, options, limitBytes);
        return [steps = std::move(steps)](int share) {
          return steps[static_cast<std::size_t>(share)];
        };
      });
    }
    cluster.devices.push_back({name, limitBytes});
    cluster.participants.push_back(
        {kind, mostSamplesOf(asked, i, commonBatch(layers)), restOf(asked, i)});
  }
  return cluster;
}

}  // namespace

int shares(const BenchOptions& options, const ShareOptions& asked, const std::string& command) {
  if (asked.size() == 0) throw BadInput("shares: give --devices or --machine");
  const std::vector<Layer> layers =
      filterLayers(readLayers(options.files, options.batchSize), options.patterns);
  const int samples = commonBatch(layers);
  OutputFile json("--json", options.jsonFile);
  setArithmetic(Arithmetic::kOff);  // times alone
  const Cluster cluster = describe(options, asked, layers);
  const auto planSteps = [&](const std::vector<StepQuestion>& questions) {
    std::vector<StepPlan> plans;
    plans.reserve(questions.size());
    for (const StepQuestion& q : questions) plans.push_back(cluster.kinds.plans[q.kind](q.samples));
    return plans;
  };
  const auto found = ShareSearch(cluster.participants, samples, planSteps).find(asked.exchangeMs);
  if (!found) throw DeviceError(kNotHeld);
  if (!json.isStandardOutput())
    writeShares(std::cout, cluster.devices, cluster.participants, *found);
  json.write([&](std::ostream& out) {
    nlohmann::ordered_json all = {
        {"machine",
         asked.machines.empty() ? describeMachine(asked.devices.front(), command)
                                : describeVersions()},
        {"settings", toJson(options)}};
    all["settings"]["samples"] = samples;
    all.update(toJson(cluster.devices, cluster.participants, *found));
    out << toText(all);
  });
  return 0;
}

}  // namespace ucudnn::tool
