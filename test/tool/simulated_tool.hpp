// Runs the tool for its JSON.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/temporary_directory.hpp"
#include "tool/process.hpp"

namespace ucudnn::test {

using Json = nlohmann::json;

inline const std::string kAlexNet = UCUDNN_LAYERS "/alexnet.csv";

class ToolTest : public ::testing::Test {
 protected:
  /// Runs a command that succeeds and says nothing on stderr; returns its JSON. The recorded
  /// kernels are algorithms: engines are for those who ask.
  Json run(const std::string& arguments, const std::string& environment = "") {
    const std::string file = directory_.file("result.json");
    outcome_ = runTool(arguments + " --json " + file,
                       "UCUDNN_KERNELS=legacy UCUDNN_TUNING=exhaustive " + environment);
    EXPECT_EQ(outcome_.status, 0) << outcome_.error << outcome_.output;
    EXPECT_EQ(outcome_.error, "");
    return Json::parse(readFile(file));
  }

  TemporaryDirectory directory_;
  Outcome outcome_;
};

}  // namespace ucudnn::test
