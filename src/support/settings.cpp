#include "support/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "support/sizes.hpp"
#include "support/text.hpp"
#include "support/unknown_variables.hpp"

namespace ucudnn {
namespace {

#ifdef UCUDNN_DEBUG_EQUIVALENCE_TEST
constexpr bool kEquivalenceTestDefault = true;
#else
constexpr bool kEquivalenceTestDefault = false;
#endif
#if defined(UCUDNN_DEBUG_OUTPUT)
constexpr LogLevel kLogLevelDefault = LogLevel::kDebug;
#elif defined(UCUDNN_DEBUG_OUTPUT_ENV)
constexpr LogLevel kLogLevelDefault = LogLevel::kInfo;  // the level at which settings are logged
#else
constexpr LogLevel kLogLevelDefault = LogLevel::kWarn;
#endif

/// All of `text` as a number that is not negative. Throws std::invalid_argument.
template <typename Number>
Number parseNumber(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) throw std::invalid_argument("it is out of range");
  if (error != std::errc() || rest != end) throw std::invalid_argument("it is not a number");
  if (text[0] == '-') throw std::invalid_argument("it is negative");
  return number;
}

double parseMilliseconds(const std::string& text) {
  const auto milliseconds = parseNumber<double>(text);
  constexpr double kMostMilliseconds = 1e12;  // 30 years; deadlines count nanoseconds in 64 bits
  if (!(milliseconds <= kMostMilliseconds)) throw std::invalid_argument("it is above 1e12");
  return milliseconds;
}

double parseShare(const std::string& text) {
  if (text == "always") return kMeasureAlways;
  const auto share = parseNumber<double>(text);
  if (share == kMeasureAlways || !isBenchmarkShare(share))
    throw std::invalid_argument("it is not between 0 and 1");
  return share;
}

double parseError(const std::string& text) {
  const auto error = parseNumber<double>(text);
  if (!isMaxError(error)) throw std::invalid_argument("it is not finite");
  return error;
}

bool parseSwitch(const std::string& text) {
  if (text == "0") return false;
  if (text == "1") return true;
  throw std::invalid_argument("it is neither 0 nor 1");
}

void parseDevices(Settings& settings, const std::string& text) {
  constexpr std::size_t kMostDevices = 1024;  // more than any machine has
  settings.benchmarkDevices.clear();
  settings.allBenchmarkDevices = text == "all";
  if (settings.allBenchmarkDevices) return;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item(trimmed(std::string_view(text).substr(begin, end - begin)));
    if (item.empty()) throw std::invalid_argument("a device id is missing");
    const int device = parseNumber<int>(item);
    const auto& known = settings.benchmarkDevices;
    if (std::find(known.begin(), known.end(), device) != known.end()) {
      throw std::invalid_argument("device " + item + " is named twice");
    }
    if (known.size() == kMostDevices)
      throw std::invalid_argument("it names more than 1024 devices");
    settings.benchmarkDevices.push_back(device);
    begin = end + 1;
  }
}

// By rank, as in misc/docs/SETTINGS.md: everyday, on demand, expert.
// NOLINTNEXTLINE(readability-function-size): a table
std::vector<EnvironmentVariable> makeTable() {
  using S = Settings;
  using T = const std::string&;
  return {
      {"UCUDNN_WORKSPACE_LIMIT",
       "a size, as 67108864 or 64MiB",
       "none",
       "Most workspace of each convolution, whatever its caller allows; a total is not capped",
       [](S& s, T text) { s.workspaceLimitBytes = parseSize(text); }},
      {"UCUDNN_TOTAL_WORKSPACE_SIZE",
       "a size, as 67108864 or 64MiB",
       "0",
       "Workspace that all convolutions share (workspace division); 0: each has its own",
       [](S& s, T text) { s.totalWorkspaceBytes = parseSize(text); }},
      {"UCUDNN_DATABASE",
       "a path",
       "none; under `ucudnn run` ~/.cache/ucudnn/",
       "SQLite file that keeps measurements, or a folder, with a slash at its end, for a file of "
       "each machine; none: they live in memory",
       [](S& s, T text) { s.databasePath = text; },
       true},
      {"UCUDNN_DETERMINISTIC",
       "0 or 1",
       "0",
       "1: only deterministic kernels are used",
       [](S& s, T text) { s.deterministic = parseSwitch(text); }},
      {"UCUDNN_MAX_ERROR",
       "a number, as 1e-5",
       "0",
       "Largest normalized L2 error, measured against double, of the kernels in a plan; 0: a "
       "split is as accurate as cuDNN's choice",
       [](S& s, T text) { s.maxError = parseError(text); }},
      {"UCUDNN_LOG_LEVEL",
       "off, error, warn, info or debug",
       "warn",
       "Lowest level that is logged",
       [](S& s, T text) { s.logLevel = logLevelFromText(text); }},
      {"UCUDNN_REPORT",
       "0 or 1",
       "0",
       "1: what became of the convolution calls is summed up on stderr when the process ends",
       [](S& s, T text) { s.report = parseSwitch(text); }},
      {"UCUDNN_DISABLE",
       "0 or 1",
       "0",
       "1: every call is left to cuDNN",
       [](S& s, T text) { s.disabled = parseSwitch(text); }},
      {"UCUDNN_GRAPH_MEMORY",
       "a size, as 67108864 or 64MiB",
       "64 MiB; under `ucudnn run` 0",
       "Device memory, on each device, for the CUDA graphs by which calls are replayed; 0: "
       "no replay. While we capture one, other threads' waits for the whole device fail",
       [](S& s, T text) {
         s.graphMemoryBytes = parseSize(text);
         s.graphMemoryGiven = true;
       }},
      {"UCUDNN_DEVICE_MEMORY",
       "a size, as 67108864 or 64MiB, or all",
       "0",
       "Device memory for convolutions whose tensors are in host memory: parts of them, and the "
       "workspace; all: what is free; 0: tensors are on the device",
       [](S& s, T text) {
         s.deviceMemoryBytes = text == "all" ? kAllDeviceMemory : parseSize(text);
       }},
      {"UCUDNN_BENCHMARK_SHARE",
       "0 to 1, or always",
       "0.03",
       "Share of the time in convolutions that measuring may take where no query asks for it; "
       "always: each problem is measured when first seen",
       [](S& s, T text) { s.benchmarkShare = parseShare(text); }},
      {"UCUDNN_BENCHMARK_MEMORY",
       "a size, as 67108864 or 64MiB",
       "8 GiB",
       "Scratch memory for benchmarking, where the caller's buffers can't be used; where no "
       "query asked for it, at most a quarter of what is free",
       [](S& s, T text) { s.benchmarkMemoryBytes = parseSize(text); }},
      {"UCUDNN_DEFAULT_WORKSPACE_LIMIT",
       "a size, as 67108864 or 64MiB",
       "67108864, or what cuDNN's own choice needs",
       "Workspace limit of a convolution whose caller states none",
       [](S& s, T text) {
         s.defaultWorkspaceLimitBytes = parseSize(text);
         s.defaultWorkspaceLimitGiven = true;
       }},
      {"UCUDNN_TOTAL_WORKSPACE_POLICY",
       "divide, share or auto",
       "auto",
       "How the total is used: divide, a segment for each convolution; share and auto, arenas that "
       "streams take in turn",
       [](S& s, T text) { s.totalWorkspacePolicy = totalWorkspacePolicyFromText(text); }},
      {"UCUDNN_PLANS",
       "a path",
       "none",
       "JSON file with plans (`ucudnn plan --save`) that are used as they are, unmeasured",
       [](S& s, T text) { s.plansPath = text; },
       true},
      {"CUDNN_ERRATA_JSON_FILE",
       "a path",
       "a built-in list",
       "JSON file, in cudnn-frontend's form, of engines that are never used: in place of those "
       "that are known to be wrong (`ucudnn info`)",
       [](S& s, T text) { s.errataPath = text; },
       true},
      {"UCUDNN_CHECK_KERNELS",
       "0 or 1",
       "1",
       "1: a plan's kernels are first compared with sums in double, once on a machine, and wrong "
       "ones are not used",
       [](S& s, T text) { s.checkKernels = parseSwitch(text); }},
      {"UCUDNN_TRACE",
       "a path",
       "none",
       "File to which a line is appended for each convolution call; %p stands for the process id",
       [](S& s, T text) { s.tracePath = text; },
       true},
      {"UCUDNN_LOG_FILE",
       "a path",
       "stderr",
       "File that log lines are appended to",
       [](S& s, T text) { s.logFile = text; },
       true},
      {"UCUDNN_BATCH_SIZE_POLICY",
       "undivided, powerOfTwo or all",
       "powerOfTwo",
       "Micro-batch sizes that are tried; powerOfTwo: 1, 2, 4, ..., N, and the largest that fit "
       "the limit",
       [](S& s, T text) { s.batchSizePolicy = batchSizePolicyFromText(text); }},
      {"UCUDNN_KERNELS",
       "legacy, engines or all",
       "all",
       "Kernels that plans are made of: cuDNN's legacy algorithms, the engines of its graph API, "
       "or both",
       [](S& s, T text) { s.kernels = kernelsFromText(text); }},
      {"UCUDNN_TUNING",
       "exhaustive or fast",
       "fast",
       "Kernels that are timed; exhaustive: all that could be in a best plan; fast: those that are "
       "likely to be, by times at a middle batch size",
       [](S& s, T text) { s.tuning = tuningFromText(text); }},
      {"UCUDNN_BORROW_OUTPUT",
       "0 or 1",
       "1",
       "1: where a call overwrites its output, the part that is not written yet is additional "
       "workspace, beyond the limit",
       [](S& s, T text) { s.borrowOutput = parseSwitch(text); }},
      {"UCUDNN_EQUIVALENCE_TEST",
       "0 or 1",
       "0",
       "1: each split result is compared with plain cuDNN's, and the distance logged at level "
       "info",
       [](S& s, T text) { s.equivalenceTest = parseSwitch(text); }},
      {"UCUDNN_PLANS_STRICT",
       "0 or 1",
       "0",
       "1: convolutions that the file of UCUDNN_PLANS lacks run through cuDNN; 0: they are "
       "planned as usual, with a warning",
       [](S& s, T text) { s.plansStrict = parseSwitch(text); }},
      {"UCUDNN_BENCHMARK_DEVICES",
       "comma-separated device ids, or all",
       "the handle's device",
       "Devices that share the benchmarking, each model its own",
       parseDevices},
      {"UCUDNN_BENCHMARK_STALL",
       "milliseconds",
       "20",
       "Longest wait of a call for measuring that no query asked for; the rest follows in later "
       "calls",
       [](S& s, T text) { s.benchmarkStallMs = parseMilliseconds(text); }},
      {"UCUDNN_BACKGROUND_PLANNING",
       "0 or 1",
       "1",
       "1: a helper thread makes plans of what is known, and compiles engines, while calls "
       "run their program's own kernels; 0: calls wait for that",
       [](S& s, T text) { s.backgroundPlanning = parseSwitch(text); }},
  };
}

std::string refusal(const char* name,
                    std::string_view value,
                    const std::string& reason,
                    const char* accepted) {
  return fmt::format(
      "{}=\"{}\": {}; accepted: {}", name, excerpt(value), excerpt(reason, 200), accepted);
}

using Lookup = std::function<const char*(const EnvironmentVariable&)>;

/// Reads every variable into `settings`. Good ones are read even after a bad one, so that the log
/// goes where it was told to before the bad one is reported. Returns the message about the first
/// bad one, or "".
std::string readInto(Settings& settings, const Lookup& lookup) {
  std::string firstBad;
  for (const EnvironmentVariable& variable : environmentVariables()) {
    const char* const value = lookup(variable);
    const std::string text(value == nullptr ? std::string_view() : trimmed(value));
    if (text.empty()) continue;
    try {
      Settings changed = settings;
      variable.parse(changed, text);
      settings = std::move(changed);
    } catch (const std::invalid_argument& reason) {
      if (firstBad.empty()) firstBad = refusal(variable.name, value, reason.what(), variable.type);
    }
  }
  return firstBad;
}

Settings defaultSettings() {
  Settings settings;
  settings.logLevel = kLogLevelDefault;
  settings.equivalenceTest = kEquivalenceTestDefault;
  return settings;
}

bool takesSize(const EnvironmentVariable& variable) {
  return std::string_view(variable.type).substr(0, 6) == "a size";
}

/// Logs unknown variables and doubtful sizes as warnings, and each setting at info level. Only once
/// a process, because a framework may create a handle for every layer.
void reportOnce() {
  static std::atomic<bool> reported{false};
  if (reported.exchange(true)) return;
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& warning : unknownVariableWarnings(names)) logWarn("{}", warning);
  for (const EnvironmentVariable& variable : environmentVariables()) {
    if (const char* const value = environmentValue(variable)) {
      logInfo("{}=\"{}\"", variable.name, value);
      const std::string doubt = takesSize(variable) ? doubtOfSize(value) : "";
      if (!doubt.empty()) logWarn("{}: {}", variable.name, doubt);
    } else if (std::getenv(variable.name) != nullptr) {
      logWarn("{} is ignored: it names a file, and the program runs set-user-id", variable.name);
    }
  }
}

}  // namespace

bool isBenchmarkShare(double share) noexcept {
  return (share >= 0 && share <= 1) || share == kMeasureAlways;
}

bool isMaxError(double error) noexcept {
  return error >= 0 && std::isfinite(error);
}

const std::vector<EnvironmentVariable>& environmentVariables() {
  static const auto* const table = new std::vector<EnvironmentVariable>(makeTable());
  // Never destroyed: static constructors and destructors create handles, too.
  return *table;
}

const char* environmentValue(const EnvironmentVariable& variable) noexcept {
  return variable.namesFile ? ::secure_getenv(variable.name) : std::getenv(variable.name);
}

Settings settingsFromEnvironment(const std::function<const char*(const char*)>& lookup) {
  Settings settings = defaultSettings();
  const std::string bad = readInto(
      settings, [&lookup](const EnvironmentVariable& variable) { return lookup(variable.name); });
  if (!bad.empty()) throw BadSetting(bad);
  return settings;
}

Settings settingsFromEnvironment(Reporting reporting) {
  Settings settings = defaultSettings();
  std::string bad = readInto(settings, environmentValue);
  const std::string unopened =
      Log::instance().configureFromEnvironment(settings.logLevel, settings.logFile);
  if (bad.empty() && !unopened.empty())
    bad = refusal("UCUDNN_LOG_FILE", settings.logFile, unopened, "a path");
  if (reporting == Reporting::kOnce) reportOnce();
  if (!bad.empty()) throw BadSetting(bad);
  return settings;
}

}  // namespace ucudnn
