#include "division/workspace_division.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "division/division_solver.hpp"

namespace ucudnn {

std::vector<std::size_t> limitsToMeasure(std::size_t totalBytes, std::size_t convolutions) {
  const std::size_t part = totalBytes / std::max<std::size_t>(convolutions, 1);
  std::set<std::size_t> limits{part, totalBytes};
  for (std::size_t halves = 0; halves <= 4; ++halves)
    limits.insert(std::min(halves * (part / 2), totalBytes));
  return {limits.begin(), limits.end()};
}

namespace {

/// GLPK's arithmetic is rounded, so its result is checked.
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

const std::vector<DivisionSolver>& divisionSolvers() {
  static const auto& all = *new std::vector<DivisionSolver>{
#ifdef UCUDNN_HAVE_GLPK
      kGlpkSolver,
#endif
      kBranchAndBound,
  };
  return all;
}

std::optional<Division> divideWorkspace(const std::vector<DivisionItem>& items,
                                        const DivisionSettings& settings) {
  return divideWorkspace(items, settings, divisionSolvers().front());
}

std::optional<Division> divideWorkspace(const std::vector<DivisionItem>& items,
                                        const DivisionSettings& settings,
                                        const DivisionSolver& solver) {
  std::optional<DivisionProblem> problem = makeDivisionProblem(items, settings);
  if (!problem) return std::nullopt;
  boundDivision(*problem);
  DivisionCounts best = problem->incumbent;
  bool optimal = items.empty();
  if (!items.empty()) {
    const auto solution = solver.solve(*problem, settings);
    if (solution && isDivision(*problem, solution->counts)) {
      optimal = solution->optimal;
      // The incumbent is a solution of the same program. It is better only if the solver stopped
      // early, or by rounding.
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
  std::ofstream file(path);
  if (!problem || !file) return false;
  file.precision(17);
  const auto name = [](std::size_t group, std::size_t choice) {
    return " x_" + std::to_string(group) + "_" + std::to_string(choice) + "\n";
  };
  const auto forEachColumn = [&](auto write) {
    for (std::size_t g = 0; g < problem->groups.size(); ++g)
      for (std::size_t j = 0; j < problem->groups[g].choices.size(); ++j)
        write(problem->groups[g].choices[j], name(g, j));
  };
  file << "Minimize\n time_ms:\n";
  forEachColumn([&](const auto& choice, auto x) { file << " + " << choice.timeMs << x; });
  file << "Subject To\n workspace_units:\n";
  forEachColumn([&](const auto& choice, auto x) { file << " + " << choice.units << x; });
  file << " <= " << problem->totalUnits << '\n';
  for (std::size_t g = 0; g < problem->groups.size(); ++g) {
    file << " members_" << g << ":\n";
    for (std::size_t j = 0; j < problem->groups[g].choices.size(); ++j) file << " +" << name(g, j);
    file << " = " << problem->groups[g].members.size() << '\n';
  }
  file << "Generals\n";
  forEachColumn([&](const auto&, auto x) { file << x; });
  file << "End\n";
  return static_cast<bool>(file.flush());
}

}  // namespace ucudnn
