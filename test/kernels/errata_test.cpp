// Engines that must never run: the list that others have published, and the user's own.
#include "kernels/errata.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/problems.hpp"
#include "support/settings.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

using namespace test;

EngineConfiguration engineOf(const std::string& text) {
  return *engineConfigurationFromText(text);
}

Problem volume(Operation operation, cudnnDataType_t type) {
  Problem problem = sampleProblem(operation, 2, 8, type);
  problem.dimensions = 5;
  problem.mathType = CUDNN_DEFAULT_MATH;
  return problem;
}

const Erratum& builtIn(const std::string& id) {
  for (const Erratum& erratum : builtInErrata())
    if (erratum.id == id) return erratum;
  throw std::runtime_error("there is no " + id);
}

bool barsIn(const std::string& rule, const Problem& problem, const std::string& engine) {
  const Errata errata = errataFromJson(R"({"version": 1, "rules": [)" + rule + "]}");
  const EngineConfiguration value = engineOf(engine);
  return bars(errata.at(0), problem, &value, true);
}

TEST(ErrataTest, EachBuiltInNamesItsSourceAndVersions) {
  EXPECT_FALSE(builtInErrata().empty());
  for (const Erratum& erratum : builtInErrata()) {
    EXPECT_TRUE(erratum.source.rfind("github.com/pytorch/pytorch/", 0) == 0 ||
                erratum.source.rfind("misc/results/", 0) == 0)
        << erratum.source;
    EXPECT_GT(erratum.fromVersion, 90000U) << erratum.id;
    EXPECT_LT(erratum.endVersion, 100000U) << erratum.id;
  }
}

TEST(ErrataTest, TheEngineThatIsNotDeterministicIsBarredOnItsGpuAlone) {
  const Erratum& erratum = builtIn("ConvFwd_eng5");
  EXPECT_TRUE(appliesTo(erratum, 92301, 86));
  EXPECT_FALSE(appliesTo(erratum, 92300, 86));
  EXPECT_FALSE(appliesTo(erratum, 92400, 86));
  EXPECT_FALSE(appliesTo(erratum, 92301, 90)) << "there it cost others 80 %";
  const EngineConfiguration five = engineOf("eng5_k2=1"), fifty = engineOf("eng50_k2=1");
  EXPECT_TRUE(bars(erratum, sampleProblem(), &five, true));
  EXPECT_FALSE(bars(erratum, sampleProblem(), &fifty, true));
  EXPECT_FALSE(bars(erratum, sampleProblem(Operation::kBackwardData), &five, true));
  EXPECT_FALSE(bars(erratum, sampleProblem(), nullptr, true)) << "no engine";
}

TEST(ErrataTest, VolumesInBfloat16AreBarredForward) {
  const Erratum& erratum = builtIn("bfloat16_3d");
  EXPECT_FALSE(appliesTo(erratum, 90701, 90));
  EXPECT_TRUE(appliesTo(erratum, 90800, 90));
  EXPECT_TRUE(appliesTo(erratum, 91002, 80));
  EXPECT_FALSE(appliesTo(erratum, 91300, 90));
  const EngineConfiguration any = engineOf("eng1");
  EXPECT_TRUE(bars(erratum, volume(Operation::kForward, CUDNN_DATA_BFLOAT16), &any, true));
  EXPECT_TRUE(bars(erratum, volume(Operation::kForward, CUDNN_DATA_BFLOAT16), nullptr, true));
  EXPECT_FALSE(bars(erratum, volume(Operation::kForward, CUDNN_DATA_HALF), &any, true));
  EXPECT_FALSE(bars(erratum, volume(Operation::kBackwardData, CUDNN_DATA_BFLOAT16), &any, true));
  EXPECT_FALSE(
      bars(erratum, sampleProblem(Operation::kForward, 2, 8, CUDNN_DATA_BFLOAT16), &any, true));
}

TEST(ErrataTest, EngineZeroIsBarredForLargeVolumesInBfloat16) {
  const Erratum& erratum = builtIn("ConvFwd_eng0_3d");
  EXPECT_TRUE(appliesTo(erratum, 91900, 90));
  EXPECT_FALSE(appliesTo(erratum, 91900, 80));
  EXPECT_FALSE(appliesTo(erratum, 92000, 90));
  Problem problem = volume(Operation::kForward, CUDNN_DATA_BFLOAT16);
  const EngineConfiguration zero = engineOf("eng0"), one = engineOf("eng1");
  EXPECT_FALSE(bars(erratum, problem, &zero, true)) << "small";
  const std::size_t aSample = problem.withBatch(1).xBytes();
  problem = problem.withBatch(static_cast<int>((std::size_t{1} << 31) / aSample) + 1);
  EXPECT_TRUE(bars(erratum, problem, &zero, true));
  EXPECT_FALSE(bars(erratum, problem, &one, true));
  problem.operation = Operation::kBackwardData;
  EXPECT_FALSE(bars(erratum, problem, &zero, true));
}

TEST(ErrataTest, VolumesInTf32AreBarredWhereTensorCoresMayMultiply) {
  const Erratum& erratum = builtIn("tf32_3d");
  EXPECT_FALSE(appliesTo(erratum, 91001, 90));
  EXPECT_TRUE(appliesTo(erratum, 91501, 90));
  EXPECT_FALSE(appliesTo(erratum, 91600, 90));
  const EngineConfiguration any = engineOf("eng1");
  Problem problem = volume(Operation::kBackwardFilter, CUDNN_DATA_FLOAT);
  EXPECT_TRUE(bars(erratum, problem, &any, true));
  EXPECT_FALSE(bars(erratum, problem, &any, false));
  problem.mathType = CUDNN_FMA_MATH;
  EXPECT_FALSE(bars(erratum, problem, &any, true));
}

TEST(ErrataTest, RulesMatchAsCudnnFrontendMatchesThem) {
  const std::string rule =
      R"({"rule_id": "a", "operation": "ConvBwdData", "engine": 1, "knob": ["k2=4", "k3=0"],
          "cudnn_version_start": 8000, "cudnn_version_end": -1})";
  const Problem problem = sampleProblem(Operation::kBackwardData);
  EXPECT_TRUE(barsIn(rule, problem, "eng1_k2=4_k3=0"));
  EXPECT_TRUE(barsIn(rule, problem, "eng1_k2=40_k3=0")) << "it looks for the text alone";
  EXPECT_FALSE(barsIn(rule, problem, "eng1_k2=4_k3=1"));
  EXPECT_FALSE(barsIn(rule, problem, "eng12_k2=4_k3=0"));
  EXPECT_FALSE(barsIn(rule, sampleProblem(), "eng1_k2=4_k3=0"));
  const Erratum open = errataFromJson(R"({"rules": [{"operation": "ConvFwd", "engine": 3}]})")[0];
  EXPECT_TRUE(appliesTo(open, 90000, 90));
  EXPECT_TRUE(barsIn(R"({"operation": "ConvFwd", "engine": 3})", sampleProblem(), "eng3"));
  const Erratum ended = errataFromJson(
      R"({"rules": [{"operation": "ConvFwd", "engine": 3, "cudnn_version_end": 9000}]})")[0];
  EXPECT_TRUE(appliesTo(ended, 8999, 90));
  EXPECT_FALSE(appliesTo(ended, 9000, 90)) << "the end is the first that is right";
}

TEST(ErrataTest, AnEngineOnPartsIsTheEngine) {
  const std::string rule = R"({"operation": "ConvFwd", "engine": 3, "knob": ["k2=1"]})";
  EXPECT_TRUE(barsIn(rule, sampleProblem(), "eng3_k2=1_tiles=2"));
  EXPECT_FALSE(barsIn(rule, sampleProblem(), "eng3_k5=0_blocks=1"));
}

TEST(ErrataTest, FusedGraphsHaveTagsOfTheirOwn) {
  Problem problem = sampleProblem(Operation::kBiasActivationForward);
  problem.activation = CUDNN_ACTIVATION_RELU;
  for (const char* const tag : {"ConvFwd_ADD_RELU_FWD", "ConvFwd_Add_ReluFwd"})
    EXPECT_TRUE(
        barsIn(R"({"operation": ")" + std::string(tag) + R"(", "engine": 3})", problem, "eng3"));
  EXPECT_FALSE(barsIn(R"({"operation": "ConvFwd", "engine": 3})", problem, "eng3"));
  problem.addsZ = 1;
  EXPECT_FALSE(barsIn(R"({"operation": "ConvFwd_ADD_RELU_FWD", "engine": 3})", problem, "eng3"));
  EXPECT_TRUE(barsIn(R"({"operation": "ConvFwd_ADD_ADD_RELU_FWD", "engine": 3})", problem, "eng3"));
}

TEST(ErrataTest, ShapesNarrowARule) {
  const Problem problem = sampleProblem(Operation::kForward, 8, 4);  // images of 9 x 8
  const auto rule = [](const std::string& shapes) {
    return R"({"operation": "ConvFwd", "engine": 3, )" + shapes + "}";
  };
  const auto input = [&](const std::string& format, const std::string& shape) {
    return rule(R"("shape_format": ")" + format + R"(", "input_shape": )" + shape);
  };
  EXPECT_TRUE(barsIn(input("NCHW", "[8, 4, 9, 8]"), problem, "eng3"));
  EXPECT_TRUE(barsIn(input("NCHW", "[-1, -1, 9, -1]"), problem, "eng3"));
  EXPECT_FALSE(barsIn(input("NCHW", "[8, 4, 8, 9]"), problem, "eng3"));
  EXPECT_TRUE(barsIn(input("NHWC", "[8, 9, 8, 4]"), problem, "eng3"));
  EXPECT_FALSE(barsIn(input("NHWC", "[8, 4, 9, 8]"), problem, "eng3"));
  EXPECT_TRUE(barsIn(rule(R"("filter_shape": [4, 4, 3, -1])"), problem, "eng3"));
  EXPECT_FALSE(barsIn(rule(R"("filter_shape": [4, 4, 5, -1])"), problem, "eng3"));
}

TEST(ErrataTest, BadTextsAreRefused) {
  for (const char* const text :
       {"",
        "[]",
        "{}",
        R"({"rules": 1})",
        R"({"rules": [1]})",
        R"({"rules": [{}]})",
        R"({"rules": [{"operation": "ConvFwd"}]})",
        R"({"rules": [{"operation": "", "engine": 1}]})",
        R"({"rules": [{"operation": "ConvFwd", "engine": "eng1"}]})",
        R"({"rules": [{"operation": "ConvFwd", "engine": 1.5}]})",
        R"({"rules": [{"operation": "ConvFwd", "engine": 1, "knob": "k2=4"}]})",
        R"({"rules": [{"operation": "ConvFwd", "engine": 1, "knob": [4]}]})",
        R"({"rules": [{"operation": "ConvFwd", "engine": 1, "cudnn_version_end": "9"}]})",
        R"({"rules": [{"operation": "ConvFwd", "engine": 1, "input_shape": [1, 2, 3, 4]}]})",
        R"({"rules": [{"operation": "ConvFwd", "engine": 1, "shape_format": "CHWN",
                       "input_shape": [1, 2, 3, 4]}]})",
        R"({"rules": [{"operation": "ConvFwd", "engine": 1, "filter_shape": [1, 2, 3]}]})",
        R"({"rules": [{"operation": "ConvFwd", "engine": 1})"})
    EXPECT_THROW(errataFromJson(text), std::runtime_error) << text;
  EXPECT_THROW(errataFromJson(R"({"rules": )" + std::string(100, '[')), std::runtime_error);
}

TEST(ErrataTest, TheUsersFileTakesThePlaceOfTheBuiltInList) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("errata.json");
  std::ofstream(path) << R"({"rules": [{"rule_id": "mine", "operation": "ConvFwd", "engine": 7}]})";
  EXPECT_EQ(errataInForce()->size(), builtInErrata().size());
  useErrata(path);
  ASSERT_EQ(errataInForce()->size(), 1U);
  EXPECT_EQ(errataInForce()->at(0).id, "mine");
  for (const std::string& bad :
       {directory.file("none"), std::string("/dev/null"), directory.path()})
    EXPECT_THROW(useErrata(bad), BadSetting) << bad;
  EXPECT_EQ(errataInForce()->size(), 1U) << "a file that can't be read changes nothing";
  useErrata("");
  EXPECT_EQ(errataInForce()->size(), builtInErrata().size());
}

TEST(ErrataTest, TextsSayWhatIsBarred) {
  EXPECT_EQ(toText(builtIn("ConvFwd_eng5")), "ConvFwd_eng5");
  EXPECT_EQ(machinesOf(builtIn("ConvFwd_eng5")),
            "cuDNN from 9.23.1 before 9.24.0, compute capability 8.6");
  EXPECT_EQ(toText(builtIn("tf32_3d")), "any operation, TF32, 3-D");
  EXPECT_EQ(machinesOf(builtIn("tf32_3d")), "cuDNN from 9.10.2 before 9.16.0");
  EXPECT_EQ(toText(builtIn("ConvFwd_eng0_3d")),
            "ConvFwd_eng0, bfloat16, 3-D, tensors of 2 GiB or more");
}

}  // namespace
}  // namespace ucudnn
