// `ucudnn run --report` where libucudnn.so, which prints the report, has served nobody.
#pragma once

namespace ucudnn::preload {

/// The process has a handle of ours: its report comes from libucudnn.so.
void noteHandle() noexcept;

}  // namespace ucudnn::preload
