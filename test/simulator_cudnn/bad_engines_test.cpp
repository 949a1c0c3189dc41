// Run with UCUDNN_SIMULATOR_PROFILE=bad_engines.csv.
#include <cudnn.h>
#include <gtest/gtest.h>

#include <string>

TEST(BadEnginesTest, AreNamedOnceAndNoHandleIsMade) {
  testing::internal::CaptureStderr();
  cudnnHandle_t handle = nullptr;
  EXPECT_EQ(CUDNN_STATUS_NOT_INITIALIZED, cudnnCreate(&handle));
  EXPECT_EQ(nullptr, handle);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(std::string::npos, text.find("bad_engines.csv:5: engine is 'eng46_x2=4'\n")) << text;
}
