// The time of a step on devices that are elsewhere, from a database.
#pragma once

#include <string>
#include <vector>

#include "optimizer/share_search.hpp"
#include "tool/layer_list.hpp"

namespace ucudnn::tool {

struct ConvolutionOptions;

/// The plans of a step for 1 to the layers' number of samples, within the limit, on a named kind of
/// device. They are made of the kernels that the database has of it; nothing is measured or checked
/// here. If kinds differ in versions alone, the one that was measured last counts. The first entry,
/// for no samples, is empty. Throws BadInput if the database lacks a convolution.
std::vector<StepPlan> storedSteps(const std::string& database,
                                  const std::string& machine,
                                  const std::vector<Layer>& layers,
                                  const ConvolutionOptions& options,
                                  std::size_t limitBytes);

}  // namespace ucudnn::tool
