// Shapes, types, layouts and scaling factors that matter.
#include "convolution_fixture.hpp"

namespace ucudnn::simulator::test {

std::vector<ConvolutionCase> convolutionCases() {
  std::vector<ConvolutionCase> cases;
  const auto add = [&](const char* name, auto&& change) {
    ConvolutionCase convolution;
    change(convolution);
    convolution.name = name;
    cases.push_back(convolution);
  };
  using Case = ConvolutionCase;
  add("Plain", [](Case&) {});
  add("Beta", [](Case& c) { c.beta = 1; });
  add("AlphaBeta", [](Case& c) {
    c.alpha = 0.5;
    c.beta = 0.25;
  });
  add("Strided", [](Case& c) { c.stride = {2, 3}; });
  add("Unpadded", [](Case& c) { c.pad = {0, 0}; });
  add("MorePadThanFilter", [](Case& c) {
    c.filter = {1, 2};
    c.pad = {2, 3};
  });
  add("Dilated", [](Case& c) {
    c.dilation = {2, 1};
    c.stride = {1, 2};
  });
  add("TrueConvolution", [](Case& c) {
    c.mode = CUDNN_CONVOLUTION;
    c.filter = {3, 2};
  });
  add("TrueConvolutionStridedDilated", [](Case& c) {
    c.mode = CUDNN_CONVOLUTION;
    c.stride = {2, 2};
    c.dilation = {1, 2};
  });
  add("Groups", [](Case& c) { c.groups = 2; });
  add("Depthwise", [](Case& c) {
    c.groups = 4;
    c.filters = 8;
    c.beta = 1;
  });
  add("Nhwc", [](Case& c) { c.layout = Layout::kNhwc; });
  add("NhwcGroups", [](Case& c) {
    c.layout = Layout::kNhwc;
    c.groups = 2;
    c.stride = {2, 1};
  });
  add("Gapped", [](Case& c) { c.layout = Layout::kGapped; });
  add("GappedBeta", [](Case& c) {
    c.layout = Layout::kGapped;
    c.beta = 0.5;
    c.groups = 2;
  });
  add("OneByOne", [](Case& c) {
    c.filter = {1, 1};
    c.pad = {0, 0};
  });
  add("ManyPositionsAndChannels", [](Case& c) {
    c.input = {19, 17};
    c.channels = 13;
    c.filters = 11;
    c.filter = {5, 5};
    c.pad = {2, 2};
  });
  add("Tf32", [](Case& c) { c.math = CUDNN_DEFAULT_MATH; });
  add("Half", [](Case& c) { c.type = CUDNN_DATA_HALF; });
  add("TrueHalf", [](Case& c) {
    c.type = CUDNN_DATA_HALF;
    c.computeType = CUDNN_DATA_HALF;
    c.beta = 0.5;
  });
  add("HalfNhwc", [](Case& c) {
    c.type = CUDNN_DATA_HALF;
    c.layout = Layout::kNhwc;
    c.beta = 1;
  });
  add("Bfloat16", [](Case& c) { c.type = CUDNN_DATA_BFLOAT16; });
  add("Double", [](Case& c) {
    c.type = CUDNN_DATA_DOUBLE;
    c.computeType = CUDNN_DATA_DOUBLE;
    c.alpha = 0.5;
    c.beta = 0.25;
  });
  add("ThreeD", [](Case& c) {
    c.input = {4, 5, 6};
    c.filter = {3, 2, 3};
    c.pad = {1, 0, 1};
    c.stride = {1, 2, 1};
    c.dilation = {1, 1, 1};
  });
  add("ThreeDGroupsNhwc", [](Case& c) {
    c.input = {4, 5, 6};
    c.filter = {2, 3, 3};
    c.pad = {0, 1, 1};
    c.stride = {2, 1, 1};
    c.dilation = {1, 2, 1};
    c.groups = 2;
    c.layout = Layout::kNhwc;
    c.mode = CUDNN_CONVOLUTION;
    c.beta = 1;
  });
  return cases;
}

}  // namespace ucudnn::simulator::test
