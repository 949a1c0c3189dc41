// cuDNN's own types of the functions that μ-cuDNN answers, taken before there is an overload of any
// of them.
#pragma once

#ifdef UCUDNN_UCUDNN_H_
#error "include this before ucudnn.h"
#endif
#include <cudnn.h>

// Written out here, not taken from ucudnn/functions.h: a function missing there must be missed
// here. misc/docs/CLIENTS.md, "At compile time", 2.
#define UCUDNN_TEST_FOR_EACH_FUNCTION(X)          \
  X(ConvolutionForward, 12)                       \
  X(ConvolutionBackwardData, 12)                  \
  X(ConvolutionBackwardFilter, 12)                \
  X(ConvolutionBiasActivationForward, 17)         \
  X(GetConvolutionForwardAlgorithm_v7, 7)         \
  X(GetConvolutionBackwardDataAlgorithm_v7, 7)    \
  X(GetConvolutionBackwardFilterAlgorithm_v7, 7)  \
  X(FindConvolutionForwardAlgorithm, 7)           \
  X(FindConvolutionBackwardDataAlgorithm, 7)      \
  X(FindConvolutionBackwardFilterAlgorithm, 7)    \
  X(FindConvolutionForwardAlgorithmEx, 12)        \
  X(FindConvolutionBackwardDataAlgorithmEx, 12)   \
  X(FindConvolutionBackwardFilterAlgorithmEx, 12) \
  X(GetConvolutionForwardWorkspaceSize, 6)        \
  X(GetConvolutionBackwardDataWorkspaceSize, 6)   \
  X(GetConvolutionBackwardFilterWorkspaceSize, 6)

// Those without a variant for a layer.
#define UCUDNN_TEST_FOR_EACH_SMALL_LAYER(X) \
  X(AddTensor, 6)                           \
  X(ConvolutionBackwardBias, 6)             \
  X(ActivationForward, 7)                   \
  X(ActivationBackward, 11)                 \
  X(PoolingForward, 7)                      \
  X(PoolingBackward, 11)                    \
  X(SoftmaxForward, 8)                      \
  X(SoftmaxBackward, 10)

namespace cudnn_types {
#define UCUDNN_TEST_TYPE(NAME, COUNT) using NAME = decltype(&::cudnn##NAME);
UCUDNN_TEST_FOR_EACH_FUNCTION(UCUDNN_TEST_TYPE)
UCUDNN_TEST_FOR_EACH_SMALL_LAYER(UCUDNN_TEST_TYPE)
#undef UCUDNN_TEST_TYPE
}  // namespace cudnn_types
