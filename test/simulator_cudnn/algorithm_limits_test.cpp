// Which algorithms are offered.
#include "convolution_fixture.hpp"

namespace ucudnn::simulator::test {
namespace {

struct LimitCase {
  const char* name;
  void (*change)(ConvolutionCase&);
  std::vector<int> forward;
  std::vector<int> backwardData;
  std::vector<int> backwardFilter;
};

class AlgorithmLimitsTest : public testing::TestWithParam<LimitCase> {};

TEST_P(AlgorithmLimitsTest, OffersWhatCudnnDocuments) {
  ConvolutionCase parameters;
  GetParam().change(parameters);
  const Convolution convolution(parameters);
  EXPECT_EQ(GetParam().forward, convolution.algorithms(Operation::kForward));
  EXPECT_EQ(GetParam().backwardData, convolution.algorithms(Operation::kBackwardData));
  EXPECT_EQ(GetParam().backwardFilter, convolution.algorithms(Operation::kBackwardFilter));
}

const LimitCase kLimitCases[] = {
    {"Float3x3",
     [](ConvolutionCase&) {},
     {0, 1, 2, 4, 5, 6, 7},
     {0, 1, 2, 3, 4, 5},
     {0, 1, 2, 3, 5, 6}},
    {"Float5x5",
     [](ConvolutionCase& c) {
       c.filter = {5, 5};
     },
     {0, 1, 2, 4, 5, 7},
     {0, 1, 2, 3, 5},
     {0, 1, 2, 3, 5, 6}},
    {"FourStrides",
     [](ConvolutionCase& c) {
       c.stride = {4, 4};
     },
     {0, 1, 2},
     {0, 1},
     {0, 1, 3}},
    {"TwoStrides",
     [](ConvolutionCase& c) {
       c.stride = {2, 2};
     },
     {0, 1, 2, 5},
     {0, 1, 3},
     {0, 1, 3, 6}},
    {"Dilated",
     [](ConvolutionCase& c) {
       c.dilation = {2, 2};
     },
     {0},
     {0, 1},
     {0, 1, 3}},
    {"Depthwise",
     [](ConvolutionCase& c) {
       c.groups = 4;
       c.filters = 4;
     },
     {0, 1, 2},
     {0, 1},
     {0, 1, 3}},
    {"WiderThanFft",
     [](ConvolutionCase& c) {
       c.input = {3, 480};
     },
     {0, 1, 2, 5, 6, 7},
     {0, 1, 3, 4, 5},
     {0, 1, 3, 5, 6}},
    {"Nhwc", [](ConvolutionCase& c) { c.layout = Layout::kNhwc; }, {0, 1}, {0, 1}, {0, 1}},
    {"ThreeD",
     [](ConvolutionCase& c) {
       c.input = {4, 4, 4};
       c.filter = {3, 3, 3};
       c.pad = c.stride = c.dilation = {1, 1, 1};
     },
     {0, 1, 5},
     {0, 1, 3},
     {0, 1, 3, 6}},
    {"Double",
     [](ConvolutionCase& c) { c.type = c.computeType = CUDNN_DATA_DOUBLE; },
     {0, 1, 2},
     {0, 1},
     {0, 1, 3}},
    {"TrueHalf",
     [](ConvolutionCase& c) { c.type = c.computeType = CUDNN_DATA_HALF; },
     {0, 1, 7},
     {1, 5},
     {1, 5}},
    {"Bfloat16",
     [](ConvolutionCase& c) { c.type = CUDNN_DATA_BFLOAT16; },
     {0, 1, 7},
     {0, 1, 5},
     {0, 1, 3, 5}},
};

INSTANTIATE_TEST_SUITE_P(Cases,
                         AlgorithmLimitsTest,
                         testing::ValuesIn(kLimitCases),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace ucudnn::simulator::test
