// backend_contract.hpp: what comes of a graph.
#include <array>

#include "backend_contract.hpp"

namespace ucudnn::simulator::test {
namespace {

TEST_F(BackendContractTest, HeuristicsFillWhatIsTheirs) {
  const auto heuristics = this->heuristics(CUDNN_HEUR_MODE_A);
  const auto fill = [&](std::vector<cudnnBackendDescriptor_t> handles) {
    std::int64_t count = -1;
    EXPECT_CUDNN(cudnnBackendGetAttribute(heuristics->get(),
                                          CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          static_cast<std::int64_t>(handles.size()),
                                          &count,
                                          handles.data()));
    return count;
  };
  const Descriptor first(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const Descriptor second(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const Descriptor other(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  EXPECT_EQ(0, fill({nullptr, nullptr}));
  EXPECT_EQ(0, fill({other.get(), other.get()}));
  EXPECT_EQ(1, fill({first.get()}));
  EXPECT_EQ(0, fill({first.get(), second.get()}));  // the first is full
  EXPECT_EQ(1, fill({second.get()}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, first.finalize());
  EXPECT_EQ(textOf(first), textOf(second));
  // The count alone is an upper bound.
  std::int64_t bound = 0;
  EXPECT_CUDNN(cudnnBackendGetAttribute(heuristics->get(),
                                        CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        0,
                                        &bound,
                                        nullptr));
  const auto all = heuristics->descriptors(
      CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 200);
  EXPECT_GT(all.size(), 5U);
  EXPECT_LE(all.size(), static_cast<std::size_t>(bound));
}

TEST_F(BackendContractTest, EnginesThatDoNotComputeTheGraph) {
  engine(-1, CUDNN_STATUS_NOT_SUPPORTED);
  engine(81, CUDNN_STATUS_NOT_SUPPORTED);
  engine(500, CUDNN_STATUS_NOT_SUPPORTED);
  engine(0);
}

/// Such as some channels of a larger tensor.
TEST_F(BackendContractTest, TensorsMayHaveGaps) {
  const Int64s kStrides[] = {
      {1200, 100, 10, 1}, {660, 110, 11, 1}, {1200, 200, 20, 2}, {1200, 1, 120, 12}};
  for (const Int64s& strides : kStrides) {
    graph_ = graphOf(*operation(kX, kW, {kY.dims, strides, 16, 3}));
    for (const std::int64_t index : {0, 28, 38, 46, 67, 70, 71}) engine(index);
  }
}

TEST_F(BackendContractTest, NotesOfEngines) {
  using Notes = std::vector<cudnnBackendNumericalNote_t>;
  const auto notes = [&](std::int64_t index) {
    return engine(index)->all<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                           CUDNN_TYPE_NUMERICAL_NOTE);
  };
  const auto behaviors = [&](std::int64_t index) {
    return engine(index)->all<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                          CUDNN_TYPE_BEHAVIOR_NOTE);
  };
  EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, notes(0));
  EXPECT_EQ(Notes{}, notes(28));
  EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, notes(38));  // TF32: no other note
  EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, notes(71));
  EXPECT_TRUE(behaviors(38).empty());
  EXPECT_EQ(
      (std::vector<cudnnBackendBehaviorNote_t>{CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION,
                                               CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API}),
      behaviors(71));
}

TEST_F(BackendContractTest, KnobsOfConfigurations) {
  config(38, {});
  config(38, {{CUDNN_KNOB_TYPE_TILE_SIZE, 8}});
  config(38, {{CUDNN_KNOB_TYPE_TILE_SIZE, -1}});
  config(38, {{CUDNN_KNOB_TYPE_TILE_SIZE, 99}}, CUDNN_STATUS_NOT_SUPPORTED);
  config(38, {{CUDNN_KNOB_TYPE_TILE_M, 0}}, CUDNN_STATUS_NOT_SUPPORTED);
  config(38, {{99, 1}}, CUDNN_STATUS_NOT_SUPPORTED);
  config(67, {{CUDNN_KNOB_TYPE_TILE_SIZE, 6}}, CUDNN_STATUS_NOT_SUPPORTED);  // within its range
}

TEST_F(BackendContractTest, KnobsComeBackAsTheyWereChosen) {
  EXPECT_EQ((EngineText{38, {}}), textOf(*config(38, {})));
  const auto made = config(38, {{CUDNN_KNOB_TYPE_TILE_SIZE, 8}});
  EXPECT_EQ((EngineText{38, {{CUDNN_KNOB_TYPE_TILE_SIZE, 8}}}), textOf(*made));
  std::int64_t count = -1;  // which is not how many there are
  EXPECT_CUDNN(cudnnBackendGetAttribute(made->get(),
                                        CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        0,
                                        &count,
                                        nullptr));
  EXPECT_EQ(0, count);
}

TEST_F(BackendContractTest, KnobChoicesThatCannotBeSet) {
  const Descriptor made(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const Descriptor choice(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  EXPECT_CUDNN(choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                          CUDNN_TYPE_KNOB_TYPE,
                          std::vector<cudnnBackendKnobType_t>{CUDNN_KNOB_TYPE_TILE_SIZE}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
            choice.set(
                CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT32, std::vector<std::int32_t>{1}));
  EXPECT_EQ(CUDNN_STATUS_NOT_INITIALIZED,
            made.setDescriptor(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choice));
  EXPECT_CUDNN(choice.finalize());
  EXPECT_EQ(-1,  // unless set
            choice.one<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            made.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                     CUDNN_TYPE_BACKEND_DESCRIPTOR,
                     std::vector<cudnnBackendDescriptor_t>{choice.get(), choice.get()}));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, made.setInt(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, 5));
}

TEST_F(BackendContractTest, APlanNeedsWhatItsConfigurationNeeds) {
  const auto made = config(38, {});
  const auto plan = this->plan(*made);
  EXPECT_EQ(made->one<std::int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64),
            workspaceOf(*plan));
  const auto given = plan->descriptors(
      CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 1);
  ASSERT_EQ(1U, given.size());
  EXPECT_EQ(textOf(*made), textOf(*given.front()));
  const Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  cudnnBackendDescriptor_t wrong = tensor.get();
  std::int64_t count = 0;
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            cudnnBackendGetAttribute(made->get(),
                                     CUDNN_ATTR_ENGINECFG_ENGINE,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                     1,
                                     &count,
                                     &wrong));
  const Descriptor open(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  std::int64_t bytes = 0;
  EXPECT_EQ(CUDNN_STATUS_NOT_INITIALIZED,
            cudnnBackendGetAttribute(open.get(),
                                     CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64,
                                     1,
                                     &bytes,
                                     &bytes));
}

TEST_F(BackendContractTest, VariantPacks) {
  const auto finalize = [](const Int64s& uids, const std::vector<void*>& pointers) {
    const Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    if (!uids.empty()) {
      EXPECT_CUDNN(pack.setInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids));
    }
    if (!pointers.empty()) {
      EXPECT_CUDNN(pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers));
    }
    return pack.finalize();
  };
  int data = 0;
  EXPECT_CUDNN(finalize({1, 2}, {&data, &data}));
  EXPECT_CUDNN(finalize({1, 1}, {&data, nullptr}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, finalize({1, 2}, {&data}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, finalize({1, 2}, {}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, finalize({}, {&data}));
}

using Names = std::array<cudnnBackendAttributeName_t, 4>;  ///< of x, w, y and the convolution
constexpr Names kBackwardData = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC};
constexpr Names kBackwardFilter = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC};

class BackwardContractTest : public BackendContractTest {
 protected:
  /// The graph of one operation.
  void makeGraph(const Names& names, cudnnDataType_t dataType = CUDNN_DATA_FLOAT) {
    const Descriptor node(names == kBackwardData
                              ? CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                              : CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
    TensorCase parts[] = {kX, kW, kY};
    for (std::size_t i = 0; i < 3; ++i) {
      parts[i].type = dataType;
      EXPECT_CUDNN(node.setDescriptor(names[i], *tensor(parts[i])));
    }
    EXPECT_CUDNN(node.setDescriptor(names[3], *convolution()));
    EXPECT_CUDNN(node.finalize());
    graph_ = graphOf(node);
  }

  std::int64_t engineCount() const {
    return graph_->one<std::int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                                     CUDNN_TYPE_INT64);
  }
  std::vector<cudnnBackendNumericalNote_t> notes(std::int64_t index) const {
    return engine(index)->all<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                           CUDNN_TYPE_NUMERICAL_NOTE);
  }
};

using Notes = std::vector<cudnnBackendNumericalNote_t>;

TEST_F(BackwardContractTest, EnginesOfBackwardData) {
  makeGraph(kBackwardData);
  EXPECT_EQ(85, engineCount());
  EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, notes(0));
  EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, notes(25));
  EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, notes(71));
  EXPECT_EQ(Notes{}, notes(2));
  EXPECT_EQ(Notes{}, notes(74));
}

TEST_F(BackwardContractTest, EnginesOfBackwardFilter) {
  makeGraph(kBackwardFilter);
  EXPECT_EQ(75, engineCount());
  EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, notes(0));
  EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, notes(20));
  EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, notes(34));
  EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, notes(68));
  EXPECT_EQ(Notes{}, notes(1));
}

// Atomic kernels add up in the output.
TEST_F(BackwardContractTest, NotesOfShortTypes) {
  const Notes atomic{CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
                     CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    makeGraph(kBackwardData, type);
    EXPECT_EQ(atomic, notes(25));
    EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, notes(71));
    makeGraph(kBackwardFilter, type);
    EXPECT_EQ(atomic, notes(20));
    EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, notes(34));
    EXPECT_EQ(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, notes(48));
  }
}

}  // namespace
}  // namespace ucudnn::simulator::test
