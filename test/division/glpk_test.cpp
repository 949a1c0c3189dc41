// The parts that only a build with GLPK has.
#include "division/glpk_guard.hpp"

#include <glpk.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "division/division_solver.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

/// GLPK's own answer to this is to print and abort.
void breakGlpk(void* reached) {
  glp_prob* program = glp_create_prob();
  *static_cast<bool*>(reached) = true;
  glp_add_cols(program, -1);
  *static_cast<bool*>(reached) = false;
}

void useGlpk(void* columns) {
  glp_prob* program = glp_create_prob();
  glp_add_cols(program, 3);
  *static_cast<int*>(columns) = glp_get_num_cols(program);
  glp_delete_prob(program);
}

TEST(GlpkGuardTest, AnErrorInsideGlpkLeavesTheProcessAndTheNextCallAlone) {
  ::testing::internal::CaptureStdout();
  for (int i = 0; i < 3; ++i) {
    bool reached = false;
    EXPECT_FALSE(runWithGlpkGuard(breakGlpk, &reached));
    EXPECT_TRUE(reached);
    int columns = 0;
    EXPECT_TRUE(runWithGlpkGuard(useGlpk, &columns));
    EXPECT_EQ(columns, 3);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST(GlpkGuardTest, TheHostsOwnProgramsSurvive) {
  if (glp_config("TLS") == nullptr) GTEST_SKIP() << "GLPK without thread-local storage";
  glp_prob* host = glp_create_prob();
  glp_add_cols(host, 2);
  bool reached = false;
  EXPECT_FALSE(runWithGlpkGuard(breakGlpk, &reached));
  EXPECT_EQ(glp_get_num_cols(host), 2);
  EXPECT_EQ(glp_term_out(GLP_ON), GLP_ON) << "the host's terminal setting is its own";
  glp_delete_prob(host);
}

const std::vector<DivisionItem> kItems = {{{{5, 0}, {1, 512}}}, {{{3, 0}, {2, 1024}}}};

TEST(GlpkSolverTest, DiagnosisWritesThePublishedFiles) {
  const test::TemporaryDirectory folder;
  DivisionSettings settings;
  settings.totalBytes = 1024;
  settings.diagnosisDirectory = folder.path();
  ASSERT_TRUE(divideWorkspace(kItems, settings, kGlpkSolver));
  std::map<std::string, int> files;
  for (const auto& file : std::filesystem::directory_iterator(settings.diagnosisDirectory)) {
    ++files[file.path().filename().string().substr(0, 10)];
    EXPECT_GT(file.file_size(), 0u) << file.path();
  }
  EXPECT_EQ(files["glpk_prob_"], 1);
  EXPECT_EQ(files["glpk_mip_2"], 1) << "the stamp begins with the year";
  EXPECT_EQ(files["glpk_sol_2"], 1);
}

TEST(GlpkSolverTest, TheWrittenProgramIsTheOneThatIsSolved) {
  const test::TemporaryDirectory folder;
  DivisionSettings settings;
  settings.totalBytes = 1024;
  const std::string path = folder.file("division.lp");
  ASSERT_TRUE(writeDivisionProblem(kItems, settings, path));
  glp_prob* const program = glp_create_prob();
  const int terminal = glp_term_out(GLP_OFF);
  ASSERT_EQ(0, glp_read_lp(program, nullptr, path.c_str()));
  glp_iocp parameters;
  glp_init_iocp(&parameters);
  parameters.presolve = GLP_ON;
  EXPECT_EQ(0, glp_intopt(program, &parameters));
  glp_term_out(terminal);
  EXPECT_NEAR(4, glp_mip_obj_val(program), 1e-9);
  EXPECT_EQ(4, glp_get_num_int(program));
  glp_delete_prob(program);
}

}  // namespace
}  // namespace ucudnn
