#include "planner/frozen_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/bounded_json.hpp"
#include "support/text.hpp"

namespace ucudnn {
namespace {

using Json = nlohmann::ordered_json;  // In the order of writing, for people.
using Parsed = nlohmann::json;

constexpr const char* kFormat = "ucudnn plans";
constexpr std::uint64_t kFormatVersion = 1;
constexpr double kMostMs = 1e9;  // eleven days, as for measurements

Json toJson(const FrozenConfiguration& configuration) {
  Json groups = Json::array();
  for (const FrozenMicroBatches& group : configuration.microBatches) {
    groups.push_back({{"batch", group.batch},
                      {"count", group.count},
                      {"kernel", group.kernel},
                      {"time_ms", group.timeMs},
                      {"device_ms", group.deviceMs}});
    if (group.borrows) groups.back()["borrows"] = true;
  }
  const std::string& algorithm = configuration.algorithm;
  return {{"predicted_ms", configuration.predictedMs},
          {"algorithm", algorithm.empty() ? Json(nullptr) : Json(algorithm)},
          {"micro_batches", std::move(groups)}};
}

Json toJson(const FrozenPair& pair) {
  Json json = toJson(pair.repeated);
  if (pair.enqueued) json["until_repeated"] = toJson(*pair.enqueued);
  return json;
}

Json toJson(const FrozenPlan& plan) {
  Json json = {{"device", plan.device}};
  if (plan.cudaVersion > 0) json["cuda_version"] = plan.cudaVersion;
  if (plan.cudnnVersion > 0) json["cudnn_version"] = plan.cudnnVersion;
  json.update({{"problem", plan.problem},
               {"mini_batch", plan.miniBatch},
               {"limit_bytes", plan.limitBytes},
               {"deterministic", plan.deterministic},
               {"policy", toText(plan.policy)},
               {"kernels", toText(plan.kernels)},
               {"workspace_bytes", plan.workspaceBytes},
               {"plan", toJson(plan.plan)}});
  if (plan.general) json["plan_for_other_calls"] = toJson(*plan.general);
  return json;
}

constexpr int kMostDepth = 16;                // The format has 7.
constexpr std::size_t kMostEvents = 5000000;  // A plan takes 50 to 100.

/// A value of the file, and its place there, such as "plans[2].plan.micro_batches[0]".
class PlansField {
 public:
  PlansField(const Parsed& value, std::string place) : value_(value), place_(std::move(place)) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error(fmt::format("{} {}", place_.empty() ? "it" : place_, what));
  }

  /// Refuses a value that is no object, or has members besides these.
  void expectMembers(std::initializer_list<const char*> names) const {
    if (!value_.is_object()) refuse("is no object");
    for (const auto& item : value_.items())
      if (std::find(names.begin(), names.end(), item.key()) == names.end())
        refuse(fmt::format("has a member \"{}\", which is unknown", excerpt(item.key())));
  }
  std::optional<PlansField> find(const char* name) const {
    if (!value_.is_object()) refuse("is no object");
    const auto found = value_.find(name);
    if (found == value_.end()) return std::nullopt;
    return PlansField(*found, place_.empty() ? name : fmt::format("{}.{}", place_, name));
  }
  PlansField member(const char* name) const {
    auto found = find(name);
    if (!found) refuse(fmt::format("has no member \"{}\"", name));
    return *std::move(found);
  }
  bool isNull() const { return value_.is_null(); }

  std::string text(std::size_t mostBytes) const {
    if (!value_.is_string()) refuse("is no text");
    auto content = value_.get<std::string>();
    if (content.empty() || content.size() > mostBytes || !isPrintable(content))
      refuse(fmt::format("is no text of 1 to {} printable bytes", mostBytes));
    return content;
  }
  bool truth() const {
    if (!value_.is_boolean()) refuse("is neither true nor false");
    return value_.get<bool>();
  }
  std::uint64_t integer(std::uint64_t least, std::uint64_t most) const {
    const bool fits = value_.is_number_unsigned() && value_.get<std::uint64_t>() >= least &&
                      value_.get<std::uint64_t>() <= most;
    if (!fits) refuse(fmt::format("is no whole number from {} to {}", least, most));
    return value_.get<std::uint64_t>();
  }
  int positive(int least = 1) const {
    return static_cast<int>(
        integer(static_cast<std::uint64_t>(least), std::numeric_limits<int>::max()));
  }
  std::size_t bytes() const { return integer(0, std::numeric_limits<std::size_t>::max()); }
  double milliseconds() const {
    if (!value_.is_number() || !(value_.get<double>() >= 0 && value_.get<double>() <= kMostMs))
      refuse(fmt::format("is no number from 0 to {:.0e}", kMostMs));
    return value_.get<double>();
  }
  /// The enumerator that `parse` makes of the text.
  template <typename Value>
  Value one(const std::function<Value(const std::string&)>& parse) const {
    constexpr std::size_t kMostBytes = 20;
    try {
      return parse(text(kMostBytes));
    } catch (const std::invalid_argument&) {
      refuse("is none of the values that it may have");
    }
  }
  template <typename Use>
  void forEach(std::size_t most, Use use) const {
    if (!value_.is_array()) refuse("is no list");
    if (value_.size() > most) refuse(fmt::format("has more than {} entries", most));
    for (std::size_t i = 0; i < value_.size(); ++i)
      use(PlansField(value_[i], fmt::format("{}[{}]", place_, i)));
  }

 private:
  const Parsed& value_;
  std::string place_;
};

constexpr std::size_t kMostKernelBytes = 500;

FrozenMicroBatches microBatchesOf(const PlansField& field) {
  field.expectMembers({"batch", "count", "kernel", "time_ms", "device_ms", "borrows"});
  const auto borrows = field.find("borrows");
  return {field.member("batch").positive(),
          field.member("count").positive(),
          field.member("kernel").text(kMostKernelBytes),
          field.member("time_ms").milliseconds(),
          field.member("device_ms").milliseconds(),
          borrows && borrows->truth()};
}

FrozenConfiguration configurationOf(const PlansField& field, int miniBatch) {
  constexpr std::size_t kMostGroups = 1000;  // The optimizer makes a handful.
  FrozenConfiguration configuration;
  configuration.predictedMs = field.member("predicted_ms").milliseconds();
  if (const PlansField named = field.member("algorithm"); !named.isNull())
    configuration.algorithm = named.text(kMostKernelBytes);
  const PlansField groups = field.member("micro_batches");
  std::int64_t samples = 0;
  groups.forEach(kMostGroups, [&](const PlansField& each) {
    const FrozenMicroBatches group = microBatchesOf(each);
    if (!configuration.microBatches.empty()) {
      const FrozenMicroBatches& former = configuration.microBatches.back();
      if (group.borrows && !former.borrows)
        each.refuse("borrows the output, and the one before it does not");
      if (!former.borrows && group.batch > former.batch)
        each.refuse("is larger than the one before it");
    }
    if (group.count > miniBatch) each.refuse("has more samples than the mini-batch");
    samples += std::int64_t{group.batch} * group.count;
    configuration.microBatches.push_back(group);
  });
  if (samples != miniBatch)
    groups.refuse(fmt::format("has {} samples, and the mini-batch {}", samples, miniBatch));
  return configuration;
}

FrozenPair pairOf(const PlansField& field, int miniBatch) {
  field.expectMembers({"predicted_ms", "algorithm", "micro_batches", "until_repeated"});
  FrozenPair pair{configurationOf(field, miniBatch), std::nullopt};
  if (const auto enqueued = field.find("until_repeated")) {
    enqueued->expectMembers({"predicted_ms", "algorithm", "micro_batches"});
    pair.enqueued = configurationOf(*enqueued, miniBatch);
  }
  return pair;
}

FrozenPlan planOf(const PlansField& field) {
  constexpr std::size_t kMostTextBytes = 1000;  // A problem's takes 200.
  field.expectMembers({"device",
                       "cuda_version",
                       "cudnn_version",
                       "problem",
                       "mini_batch",
                       "limit_bytes",
                       "deterministic",
                       "policy",
                       "kernels",
                       "workspace_bytes",
                       "plan",
                       "plan_for_other_calls"});
  FrozenPlan plan;
  plan.device = field.member("device").text(kMostTextBytes);
  // Files from before 2026-11-26 lack both.
  if (const auto cuda = field.find("cuda_version")) plan.cudaVersion = cuda->positive();
  if (const auto cudnn = field.find("cudnn_version"))
    plan.cudnnVersion = static_cast<std::size_t>(cudnn->positive());
  plan.problem = field.member("problem").text(kMostTextBytes);
  plan.miniBatch = field.member("mini_batch").positive(2);
  plan.limitBytes = field.member("limit_bytes").bytes();
  plan.deterministic = field.member("deterministic").truth();
  plan.policy = field.member("policy").one<BatchSizePolicy>(batchSizePolicyFromText);
  plan.kernels = field.member("kernels").one<Kernels>(kernelsFromText);
  plan.workspaceBytes = field.member("workspace_bytes").bytes();
  plan.plan = pairOf(field.member("plan"), plan.miniBatch);
  if (const auto general = field.find("plan_for_other_calls"))
    plan.general = pairOf(*general, plan.miniBatch);
  return plan;
}

/// "line 3"
std::string placeOf(const std::string& text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  return fmt::format("line {}", 1 + std::count(text.begin(), end, '\n'));
}

}  // namespace

std::string frozenPlansToJson(const std::vector<FrozenPlan>& plans) {
  Json list = Json::array();
  for (const FrozenPlan& plan : plans) list.push_back(toJson(plan));
  const Json whole = {{"format", kFormat}, {"version", kFormatVersion}, {"plans", std::move(list)}};
  return whole.dump(1) + "\n";
}

std::vector<FrozenPlan> frozenPlansFromJson(const std::string& text) {
  constexpr std::size_t kMostPlans = 100000;
  Parsed whole;
  try {
    whole = parseBounded<Parsed>(text, kMostDepth, kMostEvents);
  } catch (const Parsed::parse_error& error) {
    throw std::runtime_error(fmt::format("{}: it is no JSON", placeOf(text, error.byte)));
  } catch (const Parsed::exception& error) {  // a number that no double holds
    throw std::runtime_error(fmt::format("it is no JSON: {}", error.what()));
  }
  const PlansField root(whole, "");
  root.expectMembers({"format", "version", "plans"});
  const PlansField format = root.member("format");
  if (format.text(100) != kFormat) format.refuse(fmt::format("is not \"{}\"", kFormat));
  const PlansField version = root.member("version");
  if (version.integer(0, std::numeric_limits<std::uint64_t>::max()) != kFormatVersion)
    version.refuse(fmt::format("is not {}, which this build knows", kFormatVersion));
  std::vector<FrozenPlan> plans;
  root.member("plans").forEach(kMostPlans,
                               [&](const PlansField& field) { plans.push_back(planOf(field)); });
  return plans;
}

}  // namespace ucudnn
