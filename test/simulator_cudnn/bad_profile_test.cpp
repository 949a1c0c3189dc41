// Run with UCUDNN_SIMULATOR_PROFILE=bad_profile.csv.
#include <cudnn.h>
#include <gtest/gtest.h>

#include <string>

TEST(BadProfileTest, IsNamedOnceAndNoHandleIsMade) {
  testing::internal::CaptureStderr();
  cudnnHandle_t handle = nullptr;
  EXPECT_EQ(CUDNN_STATUS_NOT_INITIALIZED, cudnnCreate(&handle));
  EXPECT_EQ(CUDNN_STATUS_NOT_INITIALIZED, cudnnCreate(&handle));
  EXPECT_EQ(nullptr, handle);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(std::string::npos, text.find("bad_profile.csv:3: time_ms is 'soon'\n")) << text;
  EXPECT_EQ(text.size() - 1, text.find('\n')) << "more than one line: " << text;
}
