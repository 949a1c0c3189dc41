#include "optimizer/glpk_guard.hpp"

#include <glpk.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ucudnn
