// The time of a step on devices that are elsewhere, from a database.
#pragma once

#include <string>
#include <vector>

#include "optimizer/share_search.hpp"
#include "tool/layer_list.hpp"

namespace ucudnn::tool {

struct ConvolutionOptions;

/// The plans of a step for 1 to the layers' number of samples, within the limit, on the kind of
/// device of that name: made of the kernels that the database has of it, measured and checked
/// nowhere here. Of kinds that differ in versions alone the one that was measured last. The first
/// plan, of no samples, is empty. Throws BadInput where the database has not all convolutions.
std::vector<StepPlan> storedSteps(const std::string& database,
                                  const std::string& machine,
                                  const std::vector<Layer>& layers,
                                  const ConvolutionOptions& options,
                                  std::size_t limitBytes);

}  // namespace ucudnn::tool
