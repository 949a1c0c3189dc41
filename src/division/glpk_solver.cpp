// The program as GLPK sees it. Only this file and glpk_guard know GLPK.
#include <glpk.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <limits>

#include "division/division_solver.hpp"
#include "division/glpk_guard.hpp"

namespace ucudnn {
namespace {

/// The guard's input and output. It owns nothing: see runWithGlpkGuard.
struct Job {
  const DivisionProblem* problem;
  DivisionCounts* counts;  ///< filled when there is a solution
  int timeLimitMs;
  const char* probPath;  ///< null: no diagnosis
  const char* mipPath;
  const char* solPath;
  bool found;
  bool optimal;
};

glp_prob* makeProgram(const DivisionProblem& problem) {
  glp_prob* program = glp_create_prob();
  glp_set_prob_name(program, "workspace_division");
  glp_set_obj_name(program, "time_ms");
  glp_set_obj_dir(program, GLP_MIN);
  const int groups = static_cast<int>(problem.groups.size());
  glp_add_rows(program, groups + 1);
  glp_set_row_name(program, 1, "workspace_units");
  glp_set_row_bnds(program, 1, GLP_UP, 0, static_cast<double>(problem.totalUnits));
  int row = 1;
  for (const DivisionGroup& group : problem.groups) {
    const auto members = static_cast<double>(group.members.size());
    glp_set_row_bnds(program, ++row, GLP_FX, members, members);
    for (const DivisionChoice& choice : group.choices) {
      const int column = glp_add_cols(program, 1);
      glp_set_obj_coef(program, column, choice.timeMs);
      glp_set_col_kind(program, column, GLP_IV);
      glp_set_col_bnds(program, column, choice.most == 0 ? GLP_FX : GLP_DB, 0, choice.most);
      const int rows[] = {0, 1, row};  // GLPK counts from 1
      const double values[] = {0, static_cast<double>(choice.units), 1};
      glp_set_mat_col(program, column, 2, rows, values);
    }
  }
  return program;
}

void solve(glp_prob* program, Job& job) {
  if (job.probPath != nullptr) glp_write_prob(program, 0, job.probPath);
  glp_iocp parameters;
  glp_init_iocp(&parameters);
  // No cuts: few columns are left, and GLPK 5.0's cover cuts end in an internal error on some
  // programs.
  parameters.presolve = GLP_ON;
  // A column's error times its units must stay below one unit, and equal times must be told from
  // nearly equal ones. GLPK's defaults are 1e-5 and 1e-7.
  parameters.tol_int = 1e-9;
  parameters.tol_obj = 1e-11;
  parameters.tm_lim = job.timeLimitMs;
  const int result = glp_intopt(program, &parameters);
  const int status = glp_mip_status(program);
  job.found = status == GLP_OPT || status == GLP_FEAS;
  job.optimal = result == 0 && status == GLP_OPT;
  if (job.found) {
    int column = 0;
    for (std::vector<int>& group : *job.counts)
      for (int& count : group)
        count = static_cast<int>(std::lround(glp_mip_col_val(program, ++column)));
  }
  if (job.probPath == nullptr) return;
  glp_write_mip(program, job.mipPath);
  glp_simplex(program, nullptr);  // glp_intopt's presolver leaves no basic solution to write
  glp_write_sol(program, job.solPath);
}

void work(void* argument) {
  Job& job = *static_cast<Job*>(argument);
  glp_prob* program = makeProgram(*job.problem);
  solve(program, job);
  glp_delete_prob(program);
}

/// Sorts by time, and is unique in the process.
std::string stamp() {
  static std::atomic<int> serial{0};
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &local);
  return std::string(text) + "-" + std::to_string(serial++);
}

std::optional<DivisionSolution> solveGuarded(const DivisionProblem& problem,
                                             const DivisionSettings& settings) {
  DivisionSolution solution{problem.incumbent, false};
  Job job{};
  job.problem = &problem;
  job.counts = &solution.counts;
  constexpr double kMostMs = std::numeric_limits<int>::max();
  job.timeLimitMs = static_cast<int>(std::clamp(settings.timeLimitSeconds * 1000, 0.0, kMostMs));
  const std::string suffix = "_" + stamp();
  const std::string prob = settings.diagnosisDirectory + "/glpk_prob" + suffix;
  const std::string mip = settings.diagnosisDirectory + "/glpk_mip" + suffix;
  const std::string sol = settings.diagnosisDirectory + "/glpk_sol" + suffix;
  if (!settings.diagnosisDirectory.empty()) {
    job.probPath = prob.c_str();
    job.mipPath = mip.c_str();
    job.solPath = sol.c_str();
  }
  if (!runWithGlpkGuard(work, &job) || !job.found) return std::nullopt;
  solution.optimal = job.optimal;
  return solution;
}

}  // namespace

const DivisionSolver kGlpkSolver = {"GLPK", solveGuarded};

}  // namespace ucudnn
