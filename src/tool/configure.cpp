// Applies options to a handle, and describes them in a report.
#include <fmt/format.h>
#include <ucudnn/diagnosis.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "support/text.hpp"
#include "tool/failure.hpp"
#include "tool/options.hpp"

namespace ucudnn::tool {

void configure(UcudnnHandle_t handle, const ConvolutionOptions& options) {
  check(handle.setOptimizerBatchSizePolicy(static_cast<ucudnnBatchSizePolicy_t>(options.policy)),
        "ucudnnSetBatchSizePolicy");
  check(handle.setKernels(static_cast<ucudnnKernels_t>(options.kernels)), "ucudnnSetKernels");
  check(handle.setTuning(static_cast<ucudnnTuning_t>(options.tuning)), "ucudnnSetTuning");
  check(handle.setMaxError(options.maxError), "ucudnnSetMaxError");
  check(handle.setGraphMemory(options.graphMemoryBytes), "ucudnnSetGraphMemory");
  if (options.database) check(handle.setDatabase(*options.database), "ucudnnSetDatabase");
}

void expectWritablePlans(const ConvolutionOptions& options) {
  const std::string& path = options.plansFile;
  // A file that is there stays as it is: UCUDNN_PLANS may name it.
  if (!path.empty() && !std::ofstream(path, std::ios::app))
    throw BadInput(fmt::format("--save: {}: {}", excerpt(path), std::strerror(errno)));
}

void savePlans(const ConvolutionOptions& options) {
  const std::string& path = options.plansFile;
  if (!path.empty() && ucudnnSavePlans(path.c_str()) != CUDNN_STATUS_SUCCESS)
    throw BadInput(fmt::format("--save: {}: cannot be written", excerpt(path)));
}

nlohmann::ordered_json toJson(const ConvolutionOptions& options) {
  nlohmann::ordered_json operations = nlohmann::ordered_json::array();
  for (const ucudnnOperation_t operation : options.operations)
    operations.push_back(toText(operation));
  return {{"layer_files", options.files},
          {"layers", options.patterns},
          {"batch_size",
           options.batchSize > 0 ? nlohmann::ordered_json(options.batchSize)
                                 : nlohmann::ordered_json(nullptr)},
          {"operations", std::move(operations)},
          {"workspace_limit_bytes", options.limitBytes},
          {"policy", toText(options.policy)},
          {"kernels", toText(options.kernels)},
          {"tuning", toText(options.tuning)},
          {"max_error",
           options.maxError > 0 ? nlohmann::ordered_json(options.maxError)
                                : nlohmann::ordered_json(nullptr)},
          {"replay", options.graphMemoryBytes > 0},
          {"data_type", options.dataTypeName},
          {"math", options.mathName},
          {"layout", options.layoutName},
          {"device", options.device}};
}

}  // namespace ucudnn::tool
