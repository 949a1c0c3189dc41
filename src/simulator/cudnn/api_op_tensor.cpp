#include <algorithm>
#include <cmath>

#include "simulator/cudnn/elementwise.hpp"

using namespace ucudnn::simulator;

namespace {

bool isUnary(cudnnOpTensorOp_t op) {
  return op == CUDNN_OP_TENSOR_SQRT || op == CUDNN_OP_TENSOR_NOT;
}

double apply(cudnnOpTensorOp_t op, double a, double b) {
  switch (op) {
    case CUDNN_OP_TENSOR_ADD:
      return a + b;
    case CUDNN_OP_TENSOR_MUL:
      return a * b;
    case CUDNN_OP_TENSOR_MIN:
      return std::min(a, b);
    case CUDNN_OP_TENSOR_MAX:
      return std::max(a, b);
    case CUDNN_OP_TENSOR_SQRT:
      return std::sqrt(a);
    default:  // CUDNN_OP_TENSOR_NOT
      return 1 - a;
  }
}

}  // namespace

UCUDNN_SIMULATED_DESCRIPTOR(OpTensor)

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc,
                           cudnnOpTensorOp_t opTensorOp,
                           cudnnDataType_t opTensorCompType,
                           cudnnNanPropagation_t opTensorNanOpt) {
  return guarded(__func__, [&] {
    require(opTensorDesc != nullptr, "null descriptor");
    require(opTensorOp >= CUDNN_OP_TENSOR_ADD && opTensorOp <= CUDNN_OP_TENSOR_NOT,
            "unknown operation");
    require(opTensorCompType == CUDNN_DATA_FLOAT || opTensorCompType == CUDNN_DATA_DOUBLE,
            "the compute type is neither FLOAT nor DOUBLE");
    *opTensorDesc = {opTensorOp, opTensorCompType, opTensorNanOpt};
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle,
                                                   const cudnnOpTensorDescriptor_t opTensorDesc,
                                                   const void* alpha1,
                                                   const cudnnTensorDescriptor_t aDesc,
                                                   const void* A,
                                                   const void* alpha2,
                                                   const cudnnTensorDescriptor_t bDesc,
                                                   const void* B,
                                                   const void* beta,
                                                   const cudnnTensorDescriptor_t cDesc,
                                                   void* C) {
  return guarded(__func__, [&] {
    require(handle != nullptr && opTensorDesc != nullptr, "null handle or descriptor");
    const cudnnOpTensorOp_t op = opTensorDesc->op;
    const cudnnDataType_t compute = opTensorDesc->computeType;
    const TensorShape a = scalarShape(aDesc);
    const TensorShape c = scalarShape(cDesc);
    require(a.sameDims(c), "A and C differ in dimensions");
    const double scaleA = readFactor(alpha1, compute);
    const double keep = readFactor(beta, compute);
    if (isUnary(op)) {
      return submitMemory(handle, "opTensor", {{a, A, "A"}, {c, C, "C", true}}, [=] {
        writeElements(c, C, keep, [&](const auto& index) {
          return apply(op, scaleA * loadAt(a, A, index), 0);
        });
      });
    }
    const TensorShape b = scalarShape(bDesc);
    requireBroadcast(b, c);
    // cuDNN's manual, cudnnOpTensor; cuDNN 9.19 answers BAD_PARAM.
    require(B != C || A == C, "B is the same tensor as C, and A is not");
    const double scaleB = readFactor(alpha2, compute);
    submitMemory(handle, "opTensor", {{a, A, "A"}, {b, B, "B"}, {c, C, "C", true}}, [=] {
      writeElements(c, C, keep, [&](const auto& index) {
        return apply(op, scaleA * loadAt(a, A, index), scaleB * loadAt(b, B, index));
      });
    });
  });
}
