// The backend (graph) API computes what the legacy functions compute.
#include "backend_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

class BackendTest : public testing::TestWithParam<ConvolutionCase> {};

TEST_P(BackendTest, EveryConfigurationEqualsTheDefinition) {
  for (const Operation operation : kOperations) {
    SCOPED_TRACE(static_cast<int>(operation));
    Convolution convolution(GetParam());
    const std::vector<char> before = convolution.output(operation).read();
    const std::vector<char> expected = convolution.expected(operation);
    const BackendGraph graph(convolution, operation);
    const auto configs = graph.allConfigs();
    ASSERT_FALSE(configs.empty());
    for (const auto& config : configs) {
      SCOPED_TRACE(testing::Message() << textOf(*config));
      const auto plan = graph.plan(*config);
      EXPECT_EQ(workspaceOf(*plan),
                config->one<std::int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64));
      convolution.output(operation).write(before);
      ASSERT_CUDNN(graph.run(*plan));
      EXPECT_EQ(expected, convolution.output(operation).read());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         BackendTest,
                         testing::ValuesIn(convolutionCases()),
                         [](const auto& suite) { return suite.param.name; });

}  // namespace
}  // namespace ucudnn::simulator::test
