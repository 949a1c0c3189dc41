// Rows of `ucudnn bench`: a layer's operation planned, run, timed and compared within each limit.
#pragma once

#include <vector>

#include "tool/layer_list.hpp"
#include "tool/options.hpp"
#include "tool/report.hpp"

namespace ucudnn::tool {

/// The rows of a layer that has not run, with the reason: one for each limit.
std::vector<Row> rowsNotRun(const Layer& layer,
                            ucudnnOperation_t operation,
                            const BenchOptions& options,
                            const std::string& why);

/// A row for each limit. Never throws DeviceError: what goes wrong stands in the row's `error`,
/// beside what was found out before. `autotuner`: plans undivided kernels of all sources, for
/// comparison, and cuDNN's engines are compared too; null: nobody does.
std::vector<Row> benchRows(const Handles& handles,
                           const Handles* autotuner,
                           cudaStream_t stream,
                           const Layer& layer,
                           ucudnnOperation_t operation,
                           const BenchOptions& options);

/// The arithmetic that a check on the simulator uses.
Arithmetic arithmeticFor(const BenchOptions& options, const Layer& layer);

}  // namespace ucudnn::tool
