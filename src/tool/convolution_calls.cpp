// The tool's calls of cuDNN's convolution API, on either kind of handle.
#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/native.hpp"
#include "tool/convolution.hpp"

// cuDNN 9 marks the convolution API deprecated; it is what frameworks call and what this measures.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn::tool {
namespace {

template <typename Performance>
std::vector<Choice> successful(const Performance* results, int count, std::size_t limitBytes) {
  std::vector<Choice> choices;
  for (int i = 0; i < count; ++i) {
    const Performance& result = results[i];
    if (result.status != CUDNN_STATUS_SUCCESS || result.memory > limitBytes) continue;
    choices.push_back({static_cast<int>(result.algo), result.mathType, result.memory, result.time});
  }
  return choices;
}

/// alpha and beta: double for double tensors, else float.
struct Factors {
  explicit Factors(cudnnDataType_t type) : isDouble(type == CUDNN_DATA_DOUBLE) {}
  const void* one() const { return isDouble ? static_cast<const void*>(&doubles[1]) : &floats[1]; }
  const void* zero() const { return isDouble ? static_cast<const void*>(&doubles[0]) : &floats[0]; }
  bool isDouble;
  double doubles[2] = {0, 1};
  float floats[2] = {0, 1};
};

/// cuDNN's functions by the names of kernels/native.hpp. Overloads: the handle decides whose they
/// are.
template <Operation operation>
struct Functions;
#define UCUDNN_TOOL_FUNCTIONS(NAME)                                  \
  template <>                                                        \
  struct Functions<Operation::k##NAME> {                             \
    template <typename... Arguments>                                 \
    static cudnnStatus_t convolve(Arguments... arguments) {          \
      return cudnnConvolution##NAME(arguments...);                   \
    }                                                                \
    template <typename... Arguments>                                 \
    static cudnnStatus_t rank(Arguments... arguments) {              \
      return cudnnGetConvolution##NAME##Algorithm_v7(arguments...);  \
    }                                                                \
    template <typename... Arguments>                                 \
    static cudnnStatus_t findEx(Arguments... arguments) {            \
      return cudnnFindConvolution##NAME##AlgorithmEx(arguments...);  \
    }                                                                \
    template <typename... Arguments>                                 \
    static cudnnStatus_t workspaceSize(Arguments... arguments) {     \
      return cudnnGetConvolution##NAME##WorkspaceSize(arguments...); \
    }                                                                \
  };
UCUDNN_TOOL_FUNCTIONS(Forward)
UCUDNN_TOOL_FUNCTIONS(BackwardData)
UCUDNN_TOOL_FUNCTIONS(BackwardFilter)
#undef UCUDNN_TOOL_FUNCTIONS

/// A convolution's operands in the order of its operation's functions.
template <typename Row>
struct Operands {
  using Of = Functions<Row::kOperation>;
  using Algorithm = typename Row::Algorithm;
  using Results = std::array<typename Row::Performance, kMostResults>;

  explicit Operands(const Convolution& c, const Tensors* t = nullptr)
      : descriptors{c.x(), c.w(), c.convolution(), c.y()} {
    if (t == nullptr) return;
    pointers.x = t->x.get();
    pointers.w = t->w.get();
    pointers.y = t->y.get();
  }
  auto firstDesc() const { return descriptors.*Row::kFirstDescriptor; }
  auto secondDesc() const { return descriptors.*Row::kSecondDescriptor; }
  auto outputDesc() const { return descriptors.*Row::kOutputDescriptor; }
  const void* first() const { return pointers.*Row::kFirst; }
  const void* second() const { return pointers.*Row::kSecond; }
  void* output() const { return const_cast<void*>(pointers.*Row::kOutput); }

  ConvolutionDescriptors descriptors;
  ConvolutionPointers pointers;
};

/// Calls `use` with the operands of the convolution's operation.
template <typename Use>
auto withOperands(const Convolution& c, const Tensors* tensors, Use use) {
  return withNative(static_cast<Operation>(c.operation()),
                    [&](auto row) { return use(Operands<decltype(row)>(c, tensors)); });
}

}  // namespace

template <typename Handle>
std::vector<Choice> findAlgorithms(Handle handle,
                                   const Convolution& c,
                                   const Tensors& tensors,
                                   const DeviceBuffer& workspace,
                                   int most) {
  return withOperands(c, &tensors, [&](auto o) {
    typename decltype(o)::Results results{};
    int count = 0;
    check(decltype(o)::Of::findEx(handle,
                                  o.firstDesc(),
                                  o.first(),
                                  o.secondDesc(),
                                  o.second(),
                                  c.convolution(),
                                  o.outputDesc(),
                                  o.output(),
                                  std::min(most, static_cast<int>(results.size())),
                                  &count,
                                  results.data(),
                                  workspace.get(),
                                  workspace.bytes()),
          "cudnnFindConvolution*AlgorithmEx");
    return successful(results.data(), count, workspace.bytes());
  });
}

std::optional<Choice> pickAlgorithm(cudnnHandle_t handle, const Convolution& c) {
  return withOperands(c, nullptr, [&](auto o) -> std::optional<Choice> {
    typename decltype(o)::Results results{};
    int count = 0;
    check(decltype(o)::Of::rank(handle,
                                o.firstDesc(),
                                o.secondDesc(),
                                c.convolution(),
                                o.outputDesc(),
                                kMostResults,
                                &count,
                                results.data()),
          "cudnnGetConvolution*Algorithm_v7");
    const auto choices = successful(results.data(), count, SIZE_MAX);
    return choices.empty() ? std::nullopt : std::optional(choices.front());
  });
}

template <typename Handle>
bool getWorkspaceSize(Handle handle, const Convolution& c, int algorithm, std::size_t* bytes) {
  return withOperands(c, nullptr, [&](auto o) {
    return decltype(o)::Of::workspaceSize(handle,
                                          o.firstDesc(),
                                          o.secondDesc(),
                                          c.convolution(),
                                          o.outputDesc(),
                                          static_cast<typename decltype(o)::Algorithm>(algorithm),
                                          bytes) == CUDNN_STATUS_SUCCESS;
  });
}

template <typename Handle, typename... LayerIds>
void run(Handle handle,
         const Convolution& c,
         const Tensors& tensors,
         int algorithm,
         const Workspace& workspace,
         void* output,
         LayerIds... layer) {
  const Factors factors(c.numerics().dataType);
  withOperands(c, &tensors, [&](auto o) {
    check(decltype(o)::Of::convolve(handle,
                                    factors.one(),
                                    o.firstDesc(),
                                    o.first(),
                                    o.secondDesc(),
                                    o.second(),
                                    c.convolution(),
                                    static_cast<typename decltype(o)::Algorithm>(algorithm),
                                    workspace.memory,
                                    workspace.bytes,
                                    factors.zero(),
                                    o.outputDesc(),
                                    output,
                                    layer...),
          "cudnnConvolution*");
  });
}

#define UCUDNN_TOOL_INSTANTIATE(HANDLE)                                          \
  template std::vector<Choice> findAlgorithms(                                   \
      HANDLE, const Convolution&, const Tensors&, const DeviceBuffer&, int);     \
  template bool getWorkspaceSize(HANDLE, const Convolution&, int, std::size_t*); \
  template void run(HANDLE, const Convolution&, const Tensors&, int, const Workspace&, void*);
UCUDNN_TOOL_INSTANTIATE(cudnnHandle_t)
UCUDNN_TOOL_INSTANTIATE(UcudnnHandle_t)
#undef UCUDNN_TOOL_INSTANTIATE
template void run(UcudnnHandle_t,
                  const Convolution&,
                  const Tensors&,
                  int,
                  const Workspace&,
                  void*,
                  ucudnnLayerId_t);

}  // namespace ucudnn::tool
