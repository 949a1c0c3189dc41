// Files of plans: what is written is read, and what is not in order is refused by its place.
#include "planner/frozen_format.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

namespace ucudnn {
namespace {

FrozenConfiguration sampleConfiguration(int batch) {
  return {1.25, "FFT/default", {{batch, 2, "FFT/default", 0.5, 0.25}, {1, 1, "eng3_k1=2", 0.1, 0}}};
}

FrozenPlan samplePlan() {
  FrozenPlan plan;
  plan.device = "H200";
  plan.cudaVersion = 13000;
  plan.cudnnVersion = 91900;
  plan.problem = "forward x";
  plan.miniBatch = 7;
  plan.limitBytes = SIZE_MAX;
  plan.deterministic = true;
  plan.policy = BatchSizePolicy::kAll;
  plan.kernels = Kernels::kAll;
  plan.workspaceBytes = 1000;
  plan.plan = {sampleConfiguration(3), sampleConfiguration(3)};
  plan.general = FrozenPair{sampleConfiguration(3), std::nullopt};
  plan.general->repeated.algorithm.clear();
  return plan;
}

std::string sampleText() {
  return frozenPlansToJson({samplePlan()});
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return place == std::string::npos ? text : text.replace(place, from.size(), to);
}

std::string refusalOf(const std::string& text) {
  try {
    frozenPlansFromJson(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(FrozenFormatTest, WhatIsWrittenIsRead) {
  const std::string text = sampleText();
  const auto plans = frozenPlansFromJson(text);
  ASSERT_EQ(plans.size(), 1U);
  EXPECT_EQ(frozenPlansToJson(plans), text);
  EXPECT_EQ(plans[0].cudaVersion, 13000);
  EXPECT_EQ(plans[0].cudnnVersion, 91900U);
  EXPECT_EQ(plans[0].limitBytes, SIZE_MAX);
  EXPECT_EQ(plans[0].plan.repeated.microBatches.at(1).kernel, "eng3_k1=2");
  ASSERT_TRUE(plans[0].plan.enqueued && plans[0].general);
  EXPECT_EQ(plans[0].plan.enqueued->algorithm, "FFT/default");
  EXPECT_EQ(plans[0].general->repeated.algorithm, "");
  EXPECT_TRUE(frozenPlansFromJson(frozenPlansToJson({})).empty());
}

TEST(FrozenFormatTest, FilesWithoutVersionsAreRead) {
  FrozenPlan plan = samplePlan();
  plan.cudaVersion = 0;
  plan.cudnnVersion = 0;
  const std::string text = frozenPlansToJson({plan});
  EXPECT_EQ(text.find("_version"), std::string::npos);
  EXPECT_EQ(frozenPlansToJson(frozenPlansFromJson(text)), text);
}

TEST(FrozenFormatTest, WhatIsNoJsonIsRefusedByItsLine) {
  EXPECT_EQ(refusalOf("{\n\"format\": \"ucudnn plans\",\n?}"), "line 3: it is no JSON");
  EXPECT_EQ(refusalOf(""), "line 1: it is no JSON");
  EXPECT_EQ(refusalOf(sampleText() + "x"), "line 79: it is no JSON");
  EXPECT_NE(refusalOf("{\"format\": \"\xff\"}").find("it is no JSON"), std::string::npos);
  EXPECT_NE(refusalOf("[1e999]").find("it is no JSON"), std::string::npos);
  EXPECT_EQ(refusalOf(std::string(100000, '[')), "it is nested deeper than 16 levels");
  std::string many = "[0";
  for (int i = 0; i < 5000000; ++i) many += ",0";
  EXPECT_EQ(refusalOf(many + "]"), "it has more than 5000000 names and values");
}

TEST(FrozenFormatTest, WhatIsNotInOrderIsRefusedByItsField) {
  const std::pair<std::pair<const char*, const char*>, const char*> changes[] = {
      {{"\"ucudnn plans\"", "\"ucudnn measurements\""}, "format is not \"ucudnn plans\""},
      {{"\"version\": 1", "\"version\": 2"}, "version is not 1, which this build knows"},
      {{"\"version\": 1", "\"version\": \"1\""}, "version is no whole number"},
      {{"\"version\": 1,", ""}, "it has no member \"version\""},
      {{"\"version\"", "\"version\": 1, \"more\""}, "it has a member \"more\", which is unknown"},
      {{"\"plans\": [", "\"plans\": [7, "}, "plans[0] is no object"},
      {{"\"H200\"", "\"\""}, "plans[0].device is no text of 1 to 1000 printable bytes"},
      {{"\"H200\"", "\"\\u001b[31m\""}, "plans[0].device is no text of"},
      {{"\"cuda_version\": 13000", "\"cuda_version\": \"13.0\""},
       "plans[0].cuda_version is no whole number from 1"},
      {{"\"cudnn_version\": 91900", "\"cudnn_version\": 0"},
       "plans[0].cudnn_version is no whole number from 1"},
      {{"\"forward x\"", "null"}, "plans[0].problem is no text"},
      {{"\"mini_batch\": 7", "\"mini_batch\": 1"}, "plans[0].mini_batch is no whole number from 2"},
      {{"\"mini_batch\": 7", "\"mini_batch\": 2147483648"}, "plans[0].mini_batch is no whole"},
      {{"\"mini_batch\": 7", "\"mini_batch\": 7.0"}, "plans[0].mini_batch is no whole number"},
      {{"\"mini_batch\": 7", "\"mini_batch\": 8"},
       "plans[0].plan.micro_batches has 7 samples, and the mini-batch 8"},
      {{"\"limit_bytes\": 1844", "\"limit_bytes\": -1844"}, "plans[0].limit_bytes is no whole"},
      {{"\"deterministic\": true", "\"deterministic\": 1"},
       "plans[0].deterministic is neither true nor false"},
      {{"\"policy\": \"all\"", "\"policy\": \"most\""},
       "plans[0].policy is none of the values that it may have"},
      {{"\"kernels\": \"all\"", "\"kernels\": \"most\""}, "plans[0].kernels is none of"},
      {{"\"plan\": {", "\"plan\": {\"until_repeatd\": 1, "},
       "plans[0].plan has a member \"until_repeatd\", which is unknown"},
      {{"\"predicted_ms\": 1.25", "\"predicted_ms\": -1"},
       "plans[0].plan.predicted_ms is no number from 0 to 1e+09"},
      {{"\"predicted_ms\": 1.25", "\"predicted_ms\": \"1\""}, "plans[0].plan.predicted_ms is no"},
      {{"\"micro_batches\": [", "\"micro_batches\": {}, \"x\": ["}, "plans[0].plan has a member"},
      {{"\"batch\": 3", "\"batch\": 0"}, "plans[0].plan.micro_batches[0].batch is no whole"},
      {{"\"batch\": 1", "\"batch\": 4"},
       "plans[0].plan.micro_batches[1] is larger than the one before it"},
      {{"\"batch\": 1", "\"borrows\": true, \"batch\": 1"},
       "plans[0].plan.micro_batches[1] borrows the output, and the one before it does not"},
      {{"\"batch\": 3", "\"borrows\": 1, \"batch\": 3"},
       "plans[0].plan.micro_batches[0].borrows is neither true nor false"},
      {{"\"count\": 2", "\"count\": 2147483647"},
       "plans[0].plan.micro_batches[0] has more samples than the mini-batch"},
      {{"\"kernel\": \"eng3_k1=2\"", "\"kernel\": []"},
       "plans[0].plan.micro_batches[1].kernel is no text"},
      {{"\"until_repeated\": {", "\"until_repeated\": {\"until_repeated\": {}, "},
       "plans[0].plan.until_repeated has a member \"until_repeated\", which is unknown"},
  };
  for (const auto& [change, refusal] : changes) {
    SCOPED_TRACE(change.second);
    const std::string said = refusalOf(replaced(sampleText(), change.first, change.second));
    EXPECT_EQ(said.rfind(refusal, 0), 0U) << said;
  }
}

TEST(FrozenFormatTest, ListsAreBounded) {
  const std::string group = R"({"batch":1,"count":1,"kernel":"k","time_ms":0,"device_ms":0},)";
  std::string groups;
  for (int i = 0; i < 1000; ++i) groups += group;
  const std::string said =
      refusalOf(replaced(sampleText(), "\"micro_batches\": [", "\"micro_batches\": [" + groups));
  EXPECT_EQ(said, "plans[0].plan.micro_batches has more than 1000 entries");
  EXPECT_NE(refusalOf(replaced(sampleText(), "eng3_k1=2", std::string(501, 'k')))
                .find("plans[0].plan.micro_batches[1].kernel is no text of 1 to 500"),
            std::string::npos);
}

}  // namespace
}  // namespace ucudnn
