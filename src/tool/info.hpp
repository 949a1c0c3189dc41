// `ucudnn info`
#pragma once

namespace ucudnn::tool {

/// Prints versions, devices and settings, and what these mean where it is `verbose`. Returns 0,
/// whether there is a GPU and a cuDNN or not.
int info(bool verbose);

}  // namespace ucudnn::tool
