// Tests skip themselves where the CUDA or the cuDNN that they run with lacks what they are about:
// here are all the reasons. For a test's body or its SetUp. misc/scripts/test_old_cudnn.py counts.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <gtest/gtest.h>

namespace ucudnn::test {

/// What hasBlockCopies must answer, on the simulator with full arithmetic alone.
inline constexpr bool kHasBlockCopies = CUDART_VERSION >= 13000;

/// Before cuDNN 9.2 only plans tell their workspace, and to make one would be to compile it.
inline bool offersCompiledEngines() {
  return cudnnGetVersion() >= 90200;
}

}  // namespace ucudnn::test

#define UCUDNN_SKIP_WITHOUT_BLOCK_COPIES() \
  if (!ucudnn::test::kHasBlockCopies)      \
  GTEST_SKIP() << "for CUDA 12 there are no blocks, bands or planes"

#define UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES() \
  if (!ucudnn::test::offersCompiledEngines())  \
  GTEST_SKIP() << "before cuDNN 9.2 no engine that is compiled at run time is offered"

#define UCUDNN_SKIP_WITHOUT_DEVICE_DESCRIPTIONS() \
  if (cudnnGetVersion() < 90800)                  \
  GTEST_SKIP() << "before cuDNN 9.8 a device that is not there can't be described"
