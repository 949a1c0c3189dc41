// Whether there are copies to blocks, which decides about kernels and so about plans.
#pragma once

#include <gtest/gtest.h>

#include "cuda/block_copy.hpp"

namespace ucudnn::test {

/// The simulator loads their code only with full arithmetic, and μ-cuDNN keeps it for the process.
/// So a test without arithmetic finds other kernels after a test with it than alone. Such tests are
/// in programs of their own.
inline void expectNoBlockCopies() {
  EXPECT_FALSE(hasBlockCopies()) << "an earlier test of this program had full arithmetic";
}

}  // namespace ucudnn::test
