#include "optimizer/workspace_division.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "optimizer/division_problem.hpp"
#ifdef UCUDNN_HAVE_GLPK
#include "optimizer/glpk_solver.hpp"
#endif

namespace ucudnn {

std::vector<std::size_t> limitsToMeasure(std::size_t totalBytes, std::size_t convolutions) {
  const std::size_t part = totalBytes / std::max<std::size_t>(convolutions, 1);
  std::set<std::size_t> limits{part, totalBytes};
  for (std::size_t halves = 0; halves <= 4; ++halves)
    limits.insert(std::min(halves * (part / 2), totalBytes));
  return {limits.begin(), limits.end()};
}

#ifdef UCUDNN_HAVE_GLPK

namespace {

/// GLPK's arithmetic is rounded: what it returns counts only if it is a division.
bool isDivision(const DivisionProblem& problem, const DivisionCounts& counts) {
  for (std::size_t g = 0; g < counts.size(); ++g) {
    std::size_t members = 0;
    for (const int count : counts[g]) {
      if (count < 0) return false;
      members += static_cast<std::size_t>(count);
    }
    if (members != problem.groups[g].members.size()) return false;
  }
  return summedUnits(problem, counts) <= problem.totalUnits;
}

Division makeDivision(const DivisionProblem& problem,
                      const DivisionCounts& counts,
                      const std::vector<DivisionItem>& items,
                      std::size_t alignmentBytes) {
  Division division;
  division.chosen.resize(items.size());
  std::vector<std::size_t> segmentBytes(items.size());
  for (std::size_t g = 0; g < counts.size(); ++g) {
    const DivisionGroup& group = problem.groups[g];
    auto member = group.members.begin();
    for (std::size_t j = 0; j < counts[g].size(); ++j) {
      for (int copy = 0; copy < counts[g][j]; ++copy, ++member) {
        division.chosen[*member] = group.choices[j].option;
        segmentBytes[*member] = static_cast<std::size_t>(group.choices[j].units) * alignmentBytes;
      }
    }
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    division.timeMs += items[i].options[division.chosen[i]].timeMs;
    division.offsets.push_back(division.workspaceBytes);
    division.workspaceBytes += segmentBytes[i];
  }
  return division;
}

}  // namespace

bool workspaceDivisionAvailable() noexcept {
  return true;
}

std::optional<Division> divideWorkspace(const std::vector<DivisionItem>& items,
                                        const DivisionSettings& settings) {
  std::optional<DivisionProblem> problem = makeDivisionProblem(items, settings);
  if (!problem) return std::nullopt;
  DivisionCounts best = boundDivision(*problem);
  bool optimal = items.empty();
  if (!items.empty()) {
    const auto solution =
        solveWithGlpk(*problem, settings.timeLimitSeconds, settings.diagnosisDirectory);
    if (solution && isDivision(*problem, solution->counts)) {
      optimal = solution->optimal;
      // The incumbent is a solution of the same program, so it may be better only where GLPK
      // stopped early or by rounding.
      if (summedTimeMs(*problem, solution->counts) < summedTimeMs(*problem, best)) {
        best = solution->counts;
      }
    }
  }
  Division division = makeDivision(*problem, best, items, settings.alignmentBytes);
  division.optimal = optimal;
  return division;
}

bool writeDivisionProblem(const std::vector<DivisionItem>& items,
                          const DivisionSettings& settings,
                          const std::string& path) {
  const std::optional<DivisionProblem> problem = makeDivisionProblem(items, settings);
  return problem && writeWithGlpk(*problem, path);
}

#else

namespace {

[[noreturn]] void refuse() {
  throw std::logic_error("workspace division needs GLPK: rebuild with -DUCUDNN_USE_GLPK=ON");
}

}  // namespace

bool workspaceDivisionAvailable() noexcept {
  return false;
}

std::optional<Division> divideWorkspace(const std::vector<DivisionItem>&, const DivisionSettings&) {
  refuse();
}

bool writeDivisionProblem(const std::vector<DivisionItem>&,
                          const DivisionSettings&,
                          const std::string&) {
  refuse();
}

#endif

}  // namespace ucudnn
