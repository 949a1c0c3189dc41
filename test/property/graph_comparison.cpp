#include "graph_comparison.hpp"

#include <algorithm>
#include <sstream>

namespace ucudnn::test {
namespace {

constexpr double kNoSlower = 1.01;
// The resolution of CUDA's events: half a microsecond.
constexpr double kResolutionMs = 5e-4;
constexpr std::size_t kJudgedCalls = 10;  // the last ones of a client, once it has been measured

double median(std::vector<double> values) {
  std::nth_element(values.begin(),
                   values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// How long its calls take in the end.
double steadyMs(const ClientResult& result) {
  const std::size_t count = std::min(kJudgedCalls, result.callMs.size());
  return median({result.callMs.end() - static_cast<std::ptrdiff_t>(count), result.callMs.end()});
}

bool isSlower(double ms, double thanMs) {
  return ms > thanMs * kNoSlower + kResolutionMs;
}

/// Compares what a program came to with us and without.
class Comparison {
 public:
  Comparison(const GraphScenario& scenario,
             const GraphProgram& program,
             GraphClient& plainClient,
             const ClientResult& plain,
             const ClientResult& ours,
             GraphCounts& counts)
      : scenario_(scenario),
        program_(program),
        plainClient_(plainClient),
        plain_(plain),
        ours_(ours),
        counts_(counts) {}

  /// The differences that are faults.
  std::vector<std::string> findings() {
    compareRefusals();
    for (std::size_t i = 0; i < std::min(plain_.tried.size(), ours_.tried.size()); ++i)
      compareTried(i);
    if (ours_.chosen >= 0 && ours_.failure.empty()) compareRuns();
    return findings_;
  }

 private:
  template <typename... Parts>
  void fail(Parts... parts) {
    std::ostringstream text;
    (text << ... << parts);
    findings_.push_back(text.str());
  }

  bool tunes() const {
    return program_.habits.way == Way::kPyTorchBenchmark || program_.habits.way == Way::kXla;
  }

  void compareRefusals() {
    const bool plainRuns = plain_.chosen >= 0 && plain_.failure.empty();
    if (!plainRuns) ++counts_.refused;
    if (!plainRuns) return;
    if (!ours_.failure.empty())
      fail("REFUSED plain cuDNN runs plan ",
           plain_.chosen,
           " in ",
           plain_.passedBytes,
           " bytes; plan ",
           ours_.chosen,
           ": ",
           ours_.failure);
    else if (ours_.chosen < 0)
      fail("REFUSED plain cuDNN has plan ",
           plain_.chosen,
           " of ",
           plain_.passedBytes,
           " bytes, and the program finds none");
  }

  void compareTried(std::size_t place) {
    const Tried& plain = plain_.tried[place];
    const Tried& ours = ours_.tried[place];
    const auto need = plainClient_.needOf(static_cast<int>(place));
    if (ours.executed && *ours.executed != CUDNN_STATUS_SUCCESS && runs(place))
      fail("STATUS plan ",
           place,
           " was told ",
           ours.toldBytes.value_or(0),
           " bytes and says ",
           *ours.executed);
    if (plain.executed && ours.executed && *plain.executed != CUDNN_STATUS_SUCCESS &&
        *ours.executed == CUDNN_STATUS_SUCCESS)
      fail("STATUS plan ", place, " runs, which plain cuDNN refuses: ", *plain.executed);
    if (plain.isBarred == ours.isBarred && plain.executed && ours.executed &&
        plain.finalized != ours.finalized)
      fail("STATUS plan ", place, " is built with ", ours.finalized, ", not ", plain.finalized);
    if (ours.configurationBytes && need && *ours.configurationBytes > *need)
      fail("TOLD configuration ",
           place,
           " needs ",
           *need,
           " bytes, told ",
           *ours.configurationBytes);
    if (ours.toldBytes && need && *ours.toldBytes > *need && !mayBeToldMore(place, *ours.toldBytes))
      fail("TOLD plan ",
           place,
           " (",
           ours.askedBefore,
           " asked before) needs ",
           *need,
           " bytes, told ",
           *ours.toldBytes);
  }

  /// Whether plain cuDNN runs the plan where it has the memory.
  bool runs(std::size_t place) {
    const ClientResult own = plainClient_.runConfiguration(static_cast<int>(place), 1);
    return own.chosen >= 0 && own.failure.empty();
  }

  /// A plan that has been measured may gain from more, as long as the program compares nothing.
  bool mayBeToldMore(std::size_t place, std::size_t told) {
    const Tried& ours = ours_.tried[place];
    if (ours.askedBefore > 0 || told > program_.capBytes) return false;
    if (ours.configurationBytes) return false;  // that is the grant
    if (ours_.chosen != static_cast<int>(place))
      return program_.repeats || scenario_.usesDatabase ||
             scenario_.environment.count("UCUDNN_BENCHMARK_SHARE") > 0;
    return ours_.failure.empty() && steadyMs(ours_) * kNoSlower < ownMs(ours_.chosen);
  }

  double ownMs(int place) {
    const ClientResult own = plainClient_.runConfiguration(place, 3);
    return own.callMs.empty() ? 0 : own.callMs.back();
  }

  /// Whether the plan was not asked for its workspace, and an earlier program, under a cap, may
  /// have been told of less for one alike. How much this program passes is not known then.
  bool mayBeBoundByAnother(std::size_t ownBytes) const {
    return program_.repeats && program_.leastCapBefore < ownBytes &&
           !ours_.tried[static_cast<std::size_t>(ours_.chosen)].toldBytes;
  }

  void compareRuns() {
    ++counts_.clients;
    const ClientResult own = plainClient_.runConfiguration(ours_.chosen, 3);
    if (own.chosen < 0 || !own.failure.empty()) return;
    const double ownMs = own.callMs.back(), ms = steadyMs(ours_);
    const bool fits = own.passedBytes <= program_.capBytes;
    counts_.capped += fits ? 0 : 1;
    counts_.gained += ms * kNoSlower < ownMs ? 1 : 0;
    if (fits && !mayBeBoundByAnother(own.passedBytes) && isSlower(ms, ownMs))
      fail("SLOWER ",
           ms,
           " ms a call, the program's own plan ",
           ours_.chosen,
           " of ",
           own.passedBytes,
           " bytes takes ",
           ownMs,
           "; passed ",
           ours_.passedBytes);
    if (tunes() && program_.capBytes == kUnlimited && program_.freeBytes == kAmple &&
        plain_.chosen >= 0) {
      const double alone = this->ownMs(plain_.chosen);
      if (isSlower(ms, alone))
        fail("SLOWER ",
             ms,
             " ms a call by plan ",
             ours_.chosen,
             "; alone the program chooses plan ",
             plain_.chosen,
             " of ",
             alone,
             " ms");
    }
    if (own.output.empty()) return;
    const double far = distanceOf(ours_.output, own.output);
    if (!(far <= toleranceOf(program_.problem))) fail("RESULT is off by ", far);
  }

  const GraphScenario& scenario_;
  const GraphProgram& program_;
  GraphClient& plainClient_;
  const ClientResult& plain_;
  const ClientResult& ours_;
  GraphCounts& counts_;
  std::vector<std::string> findings_;
};

}  // namespace

std::string GraphProgram::text() const {
  std::ostringstream text;
  text << (repeats ? "again " : "") << habits.text();
  if (capBytes != kUnlimited) text << ", cap " << capBytes;
  if (freeBytes != kAmple) text << ", free " << freeBytes;
  if (isFavored) text << ", favored";
  text << ": " << problem.text();
  return text.str();
}

std::vector<std::string> compare(const GraphScenario& scenario,
                                 const GraphProgram& program,
                                 GraphClient& plainClient,
                                 const ClientResult& plain,
                                 const ClientResult& ours,
                                 GraphCounts& counts) {
  return Comparison(scenario, program, plainClient, plain, ours, counts).findings();
}

}  // namespace ucudnn::test
