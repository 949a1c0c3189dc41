#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "simulator/cudnn/elementwise.hpp"

using namespace ucudnn::simulator;

namespace {

// Workspace: this many partial results in double for each output.
constexpr std::size_t kPartialResults = 32;

double initialValue(cudnnReduceTensorOp_t op) {
  switch (op) {
    case CUDNN_REDUCE_TENSOR_MIN:
      return std::numeric_limits<double>::infinity();
    case CUDNN_REDUCE_TENSOR_MAX:
      return -std::numeric_limits<double>::infinity();
    case CUDNN_REDUCE_TENSOR_MUL:
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
      return 1;
    default:
      return 0;
  }
}

double accumulate(const cudnnReduceTensorStruct& reduce, double sum, double value) {
  const bool propagate = reduce.nanPropagation == CUDNN_PROPAGATE_NAN;
  switch (reduce.op) {
    case CUDNN_REDUCE_TENSOR_MUL:
      return sum * value;
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
      return value == 0 ? sum : sum * value;
    case CUDNN_REDUCE_TENSOR_MIN:
      if (propagate && (std::isnan(sum) || std::isnan(value))) return sum + value;
      return std::fmin(sum, value);
    case CUDNN_REDUCE_TENSOR_MAX:
      if (propagate && (std::isnan(sum) || std::isnan(value))) return sum + value;
      return std::fmax(sum, value);
    case CUDNN_REDUCE_TENSOR_AMAX:
      if (propagate && (std::isnan(sum) || std::isnan(value))) return sum + value;
      return std::fmax(sum, std::fabs(value));
    case CUDNN_REDUCE_TENSOR_NORM1:
      return sum + std::fabs(value);
    case CUDNN_REDUCE_TENSOR_NORM2:
      return sum + value * value;
    default:  // ADD, AVG
      return sum + value;
  }
}

double finish(cudnnReduceTensorOp_t op, double sum, double count) {
  switch (op) {
    case CUDNN_REDUCE_TENSOR_AVG:
      return sum / count;
    case CUDNN_REDUCE_TENSOR_NORM2:
      return std::sqrt(sum);
    default:
      return sum;
  }
}

// The reduction of a, in the row-major order of a: one number for each element of c (packed).
std::vector<double> reduceAll(const cudnnReduceTensorStruct& reduce,
                              const TensorShape& a,
                              const void* A,
                              const TensorShape& packedC) {
  std::vector<double> sums(elementCount(packedC), initialValue(reduce.op));
  forEachOffset(a, [&](std::int64_t, const auto& index) {
    double& sum = sums[static_cast<std::size_t>(broadcastOffset(packedC, index))];
    sum = accumulate(reduce, sum, loadAt(a, A, index));
  });
  const double count =
      static_cast<double>(elementCount(a)) / static_cast<double>(elementCount(packedC));
  for (double& sum : sums) sum = finish(reduce.op, sum, count);
  return sums;
}

std::size_t workspaceBytes(const TensorShape& a, const TensorShape& c) {
  return a.sameDims(c) ? 0 : elementCount(c) * kPartialResults * sizeof(double);
}

void checkShapes(const TensorShape& a, const TensorShape& c) {
  requireBroadcast(c, a);
  // cuDNN 9.19 on an H200 answers NOT_SUPPORTED.
  requireSupported(a.type != CUDNN_DATA_BFLOAT16, "no reduction of bfloat16");
  require((a.type == CUDNN_DATA_DOUBLE) == (c.type == CUDNN_DATA_DOUBLE),
          "double reduces to double only");
}

}  // namespace

UCUDNN_SIMULATED_DESCRIPTOR(ReduceTensor)

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduceTensorDesc,
                               cudnnReduceTensorOp_t reduceTensorOp,
                               cudnnDataType_t reduceTensorCompType,
                               cudnnNanPropagation_t reduceTensorNanOpt,
                               cudnnReduceTensorIndices_t reduceTensorIndices,
                               cudnnIndicesType_t) {
  return guarded(__func__, [&] {
    require(reduceTensorDesc != nullptr, "null descriptor");
    require(reduceTensorOp >= CUDNN_REDUCE_TENSOR_ADD &&
                reduceTensorOp <= CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS,
            "unknown operation");
    requireSupported(
        reduceTensorCompType == CUDNN_DATA_FLOAT || reduceTensorCompType == CUDNN_DATA_DOUBLE,
        "the compute type is neither FLOAT nor DOUBLE");
    *reduceTensorDesc = {
        reduceTensorOp, reduceTensorCompType, reduceTensorNanOpt, reduceTensorIndices};
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetReductionWorkspaceSize(cudnnHandle_t handle,
                               const cudnnReduceTensorDescriptor_t reduceTensorDesc,
                               const cudnnTensorDescriptor_t aDesc,
                               const cudnnTensorDescriptor_t cDesc,
                               size_t* sizeInBytes) {
  return guarded(__func__, [&] {
    require(handle != nullptr && reduceTensorDesc != nullptr && sizeInBytes != nullptr,
            "null pointer");
    const TensorShape& a = scalarShape(aDesc);
    const TensorShape& c = scalarShape(cDesc);
    checkShapes(a, c);
    *sizeInBytes = workspaceBytes(a, c);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnReduceTensor(cudnnHandle_t handle,
                  const cudnnReduceTensorDescriptor_t reduceTensorDesc,
                  void*,
                  size_t,
                  void* workspace,
                  size_t workspaceSizeInBytes,
                  const void* alpha,
                  const cudnnTensorDescriptor_t aDesc,
                  const void* A,
                  const void* beta,
                  const cudnnTensorDescriptor_t cDesc,
                  void* C) {
  return guarded(__func__, [&] {
    require(handle != nullptr && reduceTensorDesc != nullptr, "null handle or descriptor");
    requireSupported(reduceTensorDesc->indices == CUDNN_REDUCE_TENSOR_NO_INDICES,
                     "the simulator has no reduction indices");
    const cudnnReduceTensorStruct reduce = *reduceTensorDesc;
    const TensorShape a = scalarShape(aDesc);
    const TensorShape c = scalarShape(cDesc);
    checkShapes(a, c);
    // cuDNN 9.19 on an H200 answers BAD_PARAM; it has a workspace size for it, though.
    require(!a.sameDims(c), "A and C have the same dimensions: nothing is reduced");
    const double scale = readFactor(alpha, c.type);
    const double keep = readFactor(beta, c.type);
    const std::size_t needed = workspaceBytes(a, c);
    require(workspaceSizeInBytes >= needed, "the workspace is smaller than the reduction needs");
    require(workspace != nullptr || needed == 0, "null workspace");
    if (!checkRange(workspace, needed, "workspace")) {
      refuse(CUDNN_STATUS_EXECUTION_FAILED, "the workspace is not within device memory");
    }
    const TensorShape packed = packedShape(c);
    submitMemory(handle, "reduceTensor", {{a, A, "A"}, {c, C, "C", true}}, [=] {
      if (needed > 0) std::memset(workspace, 0xFF, needed);
      const std::vector<double> results = reduceAll(reduce, a, A, packed);
      writeElements(c, C, keep, [&](const auto& index) {
        return scale * results[static_cast<std::size_t>(broadcastOffset(packed, index))];
      });
    });
  });
}
