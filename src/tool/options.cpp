#include "tool/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "support/text.hpp"
#include "tool/failure.hpp"

namespace ucudnn::tool {
namespace {

template <typename Value>
using Choices = std::vector<std::pair<const char*, Value>>;

template <typename Value>
Value choose(const char* option, const std::string& text, const Choices<Value>& choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (text == name) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  throw BadInput(fmt::format("{}: \"{}\" is none of {}", option, excerpt(text), names));
}

}  // namespace

cudnnDataType_t parseDataType(const std::string& text) {
  return choose<cudnnDataType_t>("--data-type",
                                 text,
                                 {{"float", CUDNN_DATA_FLOAT},
                                  {"half", CUDNN_DATA_HALF},
                                  {"bfloat16", CUDNN_DATA_BFLOAT16},
                                  {"double", CUDNN_DATA_DOUBLE}});
}

cudnnMathType_t parseMath(const std::string& text) {
  // cuDNN's default math lets float convolutions use TF32 where the device has it.
  return choose<cudnnMathType_t>(
      "--math",
      text,
      {{"fma", CUDNN_FMA_MATH}, {"tf32", CUDNN_DEFAULT_MATH}, {"tensor", CUDNN_TENSOR_OP_MATH}});
}

cudnnTensorFormat_t parseLayout(const std::string& text) {
  return choose<cudnnTensorFormat_t>(
      "--layout", text, {{"nchw", CUDNN_TENSOR_NCHW}, {"nhwc", CUDNN_TENSOR_NHWC}});
}

std::optional<Arithmetic> parseArithmetic(const std::string& text) {
  return choose<std::optional<Arithmetic>>("--arithmetic",
                                           text,
                                           {{"auto", std::nullopt},
                                            {"full", Arithmetic::kFull},
                                            {"sampled", Arithmetic::kSampled},
                                            {"off", Arithmetic::kOff}});
}

BatchSizePolicy parsePolicy(const std::string& text) {
  return choose<BatchSizePolicy>("--policy",
                                 text,
                                 {{"undivided", BatchSizePolicy::kUndivided},
                                  {"powerOfTwo", BatchSizePolicy::kPowerOfTwo},
                                  {"all", BatchSizePolicy::kAll}});
}

std::vector<ucudnnOperation_t> parseOperations(const std::string& text) {
  std::vector<ucudnnOperation_t> operations;
  std::istringstream stream(text);
  for (std::string name; std::getline(stream, name, ',');) {
    const auto operation = choose<ucudnnOperation_t>("--operations",
                                                     name,
                                                     {{"forward", UCUDNN_FORWARD},
                                                      {"backward_data", UCUDNN_BACKWARD_DATA},
                                                      {"backward_filter", UCUDNN_BACKWARD_FILTER}});
    if (std::find(operations.begin(), operations.end(), operation) == operations.end())
      operations.push_back(operation);
  }
  if (operations.empty()) throw BadInput("--operations: names no operation");
  return operations;
}

TotalWorkspacePolicy parseTotalPolicy(const std::string& text) {
  try {
    return totalWorkspacePolicyFromText(text);
  } catch (const std::invalid_argument& reason) {
    throw BadInput(
        fmt::format("--total-workspace-policy: \"{}\": {}; accepted: divide, share, auto",
                    excerpt(text),
                    reason.what()));
  }
}

const char* toText(Streams streams) {
  static const char* const names[] = {"one", "operation", "layer"};
  return names[static_cast<std::size_t>(streams)];
}

Streams parseStreams(const std::string& text) {
  return choose<Streams>(
      "--streams",
      text,
      {{"one", Streams::kOne}, {"operation", Streams::kOperation}, {"layer", Streams::kLayer}});
}

Kernels parseKernels(const std::string& text) {
  return choose<Kernels>(
      "--kernels",
      text,
      {{"legacy", Kernels::kLegacy}, {"engines", Kernels::kEngines}, {"all", Kernels::kAll}});
}

Tuning parseTuning(const std::string& text) {
  return choose<Tuning>(
      "--tuning", text, {{"exhaustive", Tuning::kExhaustive}, {"fast", Tuning::kFast}});
}

bool parseReplay(const std::string& text) {
  return choose<bool>("--replay", text, {{"on", true}, {"off", false}});
}

double parseMaxError(const std::string& text) {
  std::istringstream stream(text);
  double error = 0;
  if (!(stream >> error) || !stream.eof() || !isMaxError(error))
    throw BadInput(fmt::format("--max-error: \"{}\" is no number, as 1e-5", excerpt(text)));
  return error;
}

}  // namespace ucudnn::tool
