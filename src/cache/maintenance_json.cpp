// Converts a database's content to JSON and back.
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cache/database_file.hpp"
#include "cache/records.hpp"
#include "support/bounded_json.hpp"

namespace ucudnn {
namespace {

using Json = nlohmann::ordered_json;  // In the order of writing, for people.
using Parsed = nlohmann::json;        // Finds a name without looking at all others.

constexpr const char* kFormat = "ucudnn measurements";
constexpr int kFormatVersion = 2;

Json machineToJson(const MachineKey& machine) {
  return {{"device_name", machine.deviceName},
          {"compute_capability", machine.computeCapability},
          {"multiprocessor_count", machine.multiprocessorCount},
          {"driver_version", machine.driverVersion},
          {"cuda_version", machine.cudaVersion},
          {"cudnn_version", machine.cudnnVersion},
          {"simulated", machine.simulated}};
}

Json sizeToJson(const SizeRecord& record) {
  Json kernels = Json::array();
  for (const KernelRecord& kernel : record.kernels) {
    kernels.push_back({{"kernel", kernel.measurement.kernel},
                       {"time_ms", kernel.measurement.timeMs},
                       {"device_ms", kernel.measurement.deviceMs},
                       {"workspace_bytes", kernel.measurement.workspaceBytes},
                       {"deterministic", kernel.measurement.deterministic},
                       {"measured_at", kernel.measuredAt}});
    if (kernel.measurement.error > 0) kernels.back()["error"] = kernel.measurement.error;
  }
  return {{"batch", record.batch},
          {"covered_bytes", toStoredBytes(record.coveredBytes)},
          {"measured_at", record.measuredAt},
          {"kernels", std::move(kernels)}};
}

[[noreturn]] void refuse(const char* name, const std::string& what) {
  throw std::runtime_error(std::string("\"") + name + "\" is not " + what);
}

const Parsed& member(const Parsed& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) {
    throw std::runtime_error(std::string("\"") + name + "\" is missing");
  }
  return *found;
}

std::string text(const Parsed& object, const char* name) {
  constexpr std::size_t kMostBytes = 1000;  // A problem's text takes 200.
  const Parsed& value = member(object, name);
  if (!value.is_string()) refuse(name, "a text");
  std::string content = value.get<std::string>();
  if (content.size() > kMostBytes)
    refuse(name, fmt::format("a text of at most {} bytes", kMostBytes));
  return content;
}

bool truth(const Parsed& object, const char* name) {
  const Parsed& value = member(object, name);
  if (!value.is_boolean()) refuse(name, "true or false");
  return value.get<bool>();
}

std::int64_t integer(const Parsed& object,
                     const char* name,
                     std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  const Parsed& value = member(object, name);
  const bool fits =
      value.is_number_unsigned() && value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  if (!fits) refuse(name, fmt::format("a whole number from 0 to {}", most));
  return value.get<std::int64_t>();
}

int smallInteger(const Parsed& object, const char* name) {
  return static_cast<int>(integer(object, name, std::numeric_limits<int>::max()));
}

std::int64_t time(const Parsed& object, const char* name) {
  constexpr std::int64_t kEndOfYear9999 = 253402300799;  // the last that has a date of usual length
  return integer(object, name, kEndOfYear9999);
}

double real(const Parsed& object, const char* name) {
  const Parsed& value = member(object, name);
  if (!value.is_number()) refuse(name, "a number");
  return value.get<double>();
}

const Parsed& list(const Parsed& object, const char* name) {
  const Parsed& value = member(object, name);
  if (!value.is_array()) refuse(name, "a list");
  return value;
}

constexpr int kMostDepth = 16;                 // The format has 9.
constexpr std::size_t kMostEvents = 10000000;  // A kernel takes 14: 700,000 kernels.

MachineKey machineFromJson(const Parsed& json) {
  MachineKey machine;
  machine.deviceName = text(json, "device_name");
  machine.computeCapability = smallInteger(json, "compute_capability");
  machine.multiprocessorCount = smallInteger(json, "multiprocessor_count");
  machine.driverVersion = smallInteger(json, "driver_version");
  machine.cudaVersion = smallInteger(json, "cuda_version");
  machine.cudnnVersion = static_cast<std::size_t>(integer(json, "cudnn_version"));
  machine.simulated = truth(json, "simulated");
  return machine;
}

SizeRecord sizeFromJson(const MachineKey& machine, const std::string& problem, const Parsed& json) {
  SizeRecord record;
  record.machine = machine;
  record.problem = problem;
  record.batch = smallInteger(json, "batch");
  record.coveredBytes = fromStoredBytes(integer(json, "covered_bytes"));
  record.measuredAt = time(json, "measured_at");
  for (const Parsed& kernel : list(json, "kernels")) {
    record.kernels.push_back({{text(kernel, "kernel"),
                               real(kernel, "time_ms"),
                               static_cast<std::size_t>(integer(kernel, "workspace_bytes")),
                               truth(kernel, "deterministic"),
                               real(kernel, "device_ms"),
                               kernel.contains("error") ? real(kernel, "error") : 0},
                              time(kernel, "measured_at")});
  }
  validate(record);
  return record;
}

}  // namespace

std::string recordsToJson(const std::vector<SizeRecord>& records) {
  Json machines = Json::array();
  const SizeRecord* last = nullptr;
  for (const SizeRecord& record : records) {
    const bool sameMachine = last != nullptr && last->machine == record.machine;
    if (!sameMachine) {
      machines.push_back({{"machine", machineToJson(record.machine)}, {"problems", Json::array()}});
    }
    Json& problems = machines.back()["problems"];
    if (!sameMachine || last->problem != record.problem) {
      problems.push_back({{"problem", record.problem}, {"sizes", Json::array()}});
    }
    problems.back()["sizes"].push_back(sizeToJson(record));
    last = &record;
  }
  const Json whole = {
      {"format", kFormat}, {"version", kFormatVersion}, {"machines", std::move(machines)}};
  return whole.dump(1) + "\n";
}

std::vector<SizeRecord> recordsFromJson(const std::string& source) {
  const auto whole = parseBounded<Parsed>(source, kMostDepth, kMostEvents);
  if (text(whole, "format") != kFormat) refuse("format", "that of measurements");
  if (integer(whole, "version") != kFormatVersion) refuse("version", "one that this build knows");
  std::vector<SizeRecord> records;
  for (const Parsed& entry : list(whole, "machines")) {
    const MachineKey machine = machineFromJson(member(entry, "machine"));
    for (const Parsed& problem : list(entry, "problems")) {
      for (const Parsed& size : list(problem, "sizes")) {
        records.push_back(sizeFromJson(machine, text(problem, "problem"), size));
      }
    }
  }
  return records;
}

}  // namespace ucudnn
