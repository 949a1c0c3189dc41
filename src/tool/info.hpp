// `ucudnn info`
#pragma once

namespace ucudnn::tool {

/// Prints versions, devices and settings; if `verbose`, also what these mean. Returns 0, whether or
/// not there is a GPU and a cuDNN.
int info(bool verbose);

}  // namespace ucudnn::tool
