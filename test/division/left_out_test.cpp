// A build with UCUDNN_DIVIDE=OFF.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "division/workspace_division.hpp"

namespace ucudnn {
namespace {

TEST(WorkspaceDivisionLeftOutTest, IsRefusedWithHowToRebuild) {
  EXPECT_FALSE(workspaceDivisionAvailable());
  try {
    divideWorkspace({}, {});
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("UCUDNN_DIVIDE=ON"), std::string::npos);
  }
  EXPECT_THROW(writeDivisionProblem({}, {}, "unused"), std::logic_error);
  EXPECT_THROW(limitsToMeasure(1, 1), std::logic_error);
}

}  // namespace
}  // namespace ucudnn
