// The convolution calls themselves.
#include "simulator/cudnn/launch.hpp"

using namespace ucudnn::simulator;

namespace {

// Checks what all three operations have in common and puts the call on the stream.
void runConvolution(cudnnHandle_t handle,
                    const char* name,
                    ConvolutionCall call,
                    int algorithm,
                    void* workspace,
                    std::size_t workspaceBytes,
                    double extraBytes = 0) {
  require(handle != nullptr, "null handle");
  requireTensor(call.problem.x, call.data.x, "x");
  requireTensor(call.problem.w, call.data.w, "w");
  requireTensor(call.problem.y, call.data.y, "y");
  Cost cost;
  requireSupported(findCost(call.problem, algorithm, deviceModel(handle->device), &cost),
                   "the algorithm does not support this convolution");
  require(workspaceBytes >= cost.workspaceBytes,
          "the workspace is smaller than the algorithm needs");
  require(workspace != nullptr || cost.workspaceBytes == 0, "null workspace");
  const CallKernels kernels = algorithmKernels(call.problem, algorithm, cost);
  submitKernels(handle,
                kernels.id,
                convolutionWork(handle, name, std::move(call), workspace, kernels, extraBytes));
}

Epilogue plainEpilogue(const void* alpha, const void* beta, const TensorShape& shape, void* out) {
  Epilogue epilogue;
  epilogue.alpha = readFactor(alpha, shape.type);
  epilogue.beta = readFactor(beta, shape.type);
  epilogue.source = out;
  epilogue.sourceShape = shape;
  return epilogue;
}

}  // namespace

// SHORT, FIRST, SECOND, OUTPUT: how cuDNN's types of the operation are named.
#define UCUDNN_SIMULATED_CONVOLUTION(NAME, SHORT, FIRST, SECOND, OUTPUT)                       \
  UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnConvolution##NAME(                                 \
      cudnnHandle_t handle,                                                                    \
      const void* alpha,                                                                       \
      const cudnn##FIRST##Descriptor_t firstDesc,                                              \
      const void* first,                                                                       \
      const cudnn##SECOND##Descriptor_t secondDesc,                                            \
      const void* second,                                                                      \
      const cudnnConvolutionDescriptor_t convDesc,                                             \
      cudnnConvolution##SHORT##Algo_t algorithm,                                               \
      void* workspace,                                                                         \
      size_t workspaceBytes,                                                                   \
      const void* beta,                                                                        \
      const cudnn##OUTPUT##Descriptor_t outputDesc,                                            \
      void* output) {                                                                          \
    return guarded(__func__, [&] {                                                             \
      ConvolutionCall call;                                                                    \
      call.problem = problemOf(firstDesc, secondDesc, convDesc, outputDesc);                   \
      call.data = dataOf(call.problem, first, second, output);                                 \
      call.epilogue = plainEpilogue(alpha, beta, outputShape(call.problem), output);           \
      runConvolution(handle, "convolution" #NAME, call, algorithm, workspace, workspaceBytes); \
    });                                                                                        \
  }
UCUDNN_SIMULATED_CONVOLUTION(Forward, Fwd, Tensor, Filter, Tensor)
UCUDNN_SIMULATED_CONVOLUTION(BackwardData, BwdData, Filter, Tensor, Tensor)
UCUDNN_SIMULATED_CONVOLUTION(BackwardFilter, BwdFilter, Tensor, Tensor, Filter)

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnConvolutionBiasActivationForward(cudnnHandle_t handle,
                                      const void* alpha1,
                                      const cudnnTensorDescriptor_t xDesc,
                                      const void* x,
                                      const cudnnFilterDescriptor_t wDesc,
                                      const void* w,
                                      const cudnnConvolutionDescriptor_t convDesc,
                                      cudnnConvolutionFwdAlgo_t algo,
                                      void* workSpace,
                                      size_t workSpaceSizeInBytes,
                                      const void* alpha2,
                                      const cudnnTensorDescriptor_t zDesc,
                                      const void* z,
                                      const cudnnTensorDescriptor_t biasDesc,
                                      const void* bias,
                                      const cudnnActivationDescriptor_t activationDesc,
                                      const cudnnTensorDescriptor_t yDesc,
                                      void* y) {
  return guarded(__func__, [&] {
    require(zDesc != nullptr && biasDesc != nullptr && activationDesc != nullptr,
            "null descriptor");
    ConvolutionCall call;
    call.problem = problemOf(xDesc, wDesc, convDesc, yDesc);
    call.data = dataOf(call.problem, x, w, y);
    call.epilogue = plainEpilogue(alpha1, alpha2, call.problem.y, nullptr);
    require(zDesc->shape.sameDims(call.problem.y), "z and y differ in dimensions");
    requireSupported(activationDesc->mode == CUDNN_ACTIVATION_RELU ||
                         activationDesc->mode == CUDNN_ACTIVATION_IDENTITY,
                     "the activation is neither RELU nor IDENTITY");
    requireSupported(activationDesc->mode != CUDNN_ACTIVATION_RELU ||
                         activationDesc->nanPropagation == CUDNN_NOT_PROPAGATE_NAN,
                     "the activation propagates NaNs");  // as cuDNN documents it
    // As cuDNN documents it: no activation goes with this one algorithm only.
    requireSupported(activationDesc->mode == CUDNN_ACTIVATION_RELU ||
                         algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                     "IDENTITY goes with IMPLICIT_PRECOMP_GEMM only");
    call.epilogue.source = z;
    call.epilogue.sourceShape = zDesc->shape;
    if (call.epilogue.beta != 0) requireTensor(zDesc->shape, z, "z");

    const TensorShape& biasShape = biasDesc->shape;
    requireTensor(biasShape, bias, "bias");
    require(biasShape.rank == call.problem.y.rank && biasShape.dims[1] == call.problem.filters() &&
                elementCount(biasShape) == static_cast<std::size_t>(biasShape.dims[1]),
            "the bias does not have one value for each output channel");
    call.epilogue.bias = bias;
    call.epilogue.biasType = biasShape.type;
    call.epilogue.biasStride = biasShape.strides[1];
    call.epilogue.activation = *activationDesc;
    runConvolution(handle,
                   "convolutionBiasActivationForward",
                   call,
                   algo,
                   workSpace,
                   workSpaceSizeInBytes,
                   tensorBytes(biasShape));
  });
}
