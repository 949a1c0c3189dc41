// A convolution descriptor whose group count the channels don't make: a filter of all channels.
// cuDNN runs it as one group, and so do plans.
#include <algorithm>

#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

class GroupsTest : public LibraryTest {};

/// The ways in which a call runs.
const std::map<std::string, std::string> kWays[] = {
    {{"UCUDNN_KERNELS", "legacy"}, {"UCUDNN_GRAPH_MEMORY", "0"}},
    {{"UCUDNN_KERNELS", "engines"}, {"UCUDNN_GRAPH_MEMORY", "0"}},
    {{"UCUDNN_KERNELS", "all"}},
    {{"UCUDNN_TOTAL_WORKSPACE_SIZE", "64MiB"}},
};

TEST_F(GroupsTest, AFilterOfAllChannelsIsOneGroupWhateverTheDescriptorSays) {
  int channels = 232;
  for (const auto& way : kWays) {
    SCOPED_TRACE(testing::PrintToString(way));
    const EnvironmentGuard settings(way);
    const ConvolutionCase parameters = fftCase(channels += 2);
    const ForcedSplits forced({parameters});
    const Handles handles;
    Convolution convolution(parameters);
    const DeviceBuffer workspace(kLimit);
    const Workspace all{workspace.get(), kLimit};
    for (const ucudnnOperation_t operation : kOperations) {
      SCOPED_TRACE(toText(operation));
      convolution.fill();
      ASSERT_CUDNN(convolution.run(handles.native, operation, 1, all));
      const std::vector<char> expected = convolution.output(operation).read();
      ASSERT_CUDNN(cudnnSetConvolutionGroupCount(convolution.convDesc(), 2));
      const auto expectOneGroup = [&](auto handle) {
        convolution.fill();
        ASSERT_CUDNN(convolution.run(handle, operation, 1, all));
        const double far = distance(
            convolution.geometry(operation), convolution.output(operation).read(), expected);
        EXPECT_LE(far, std::max(toleranceBetweenAlgorithms(), tolerance(parameters)));
      };
      expectOneGroup(handles.native);
      for (int call = 0; call < 3; ++call) expectOneGroup(handles.ours);
      ASSERT_CUDNN(cudnnSetConvolutionGroupCount(convolution.convDesc(), 1));
    }
  }
}

}  // namespace
}  // namespace ucudnn::test
