// Add, scale, set, transform, and the bias gradient.
#include <vector>

#include "simulator/cudnn/elementwise.hpp"

using namespace ucudnn::simulator;

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle,
                                                    const void* alpha,
                                                    const cudnnTensorDescriptor_t aDesc,
                                                    const void* A,
                                                    const void* beta,
                                                    const cudnnTensorDescriptor_t cDesc,
                                                    void* C) {
  return guarded(__func__, [&] {
    require(handle != nullptr, "null handle");
    const TensorShape a = scalarShape(aDesc);
    const TensorShape c = scalarShape(cDesc);
    requireBroadcast(a, c);
    requireSupported(a.type == c.type, "the tensors differ in data type");
    const double scale = readFactor(alpha, c.type);
    const double keep = readFactor(beta, c.type);
    submitMemory(handle, "addTensor", {{a, A, "A"}, {c, C, "C", true}}, [=] {
      writeElements(c, C, keep, [&](const auto& index) { return scale * loadAt(a, A, index); });
    });
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle,
                                                          const void* alpha,
                                                          const cudnnTensorDescriptor_t xDesc,
                                                          const void* x,
                                                          const void* beta,
                                                          const cudnnTensorDescriptor_t yDesc,
                                                          void* y) {
  return guarded(__func__, [&] {
    require(handle != nullptr, "null handle");
    const TensorShape from = scalarShape(xDesc);
    const TensorShape to = scalarShape(yDesc);
    require(from.sameDims(to), "dimensions do not match");
    requireSupported(from.type == to.type || to.type == CUDNN_DATA_FLOAT,
                     "a tensor of another data type is transformed to float only");
    const double scale = readFactor(alpha, to.type);
    const double keep = readFactor(beta, to.type);
    submitMemory(handle, "transformTensor", {{from, x, "x"}, {to, y, "y", true}}, [=] {
      writeElements(to, y, keep, [&](const auto& index) { return scale * loadAt(from, x, index); });
    });
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle,
                                                      const cudnnTensorDescriptor_t yDesc,
                                                      void* y,
                                                      const void* alpha) {
  return guarded(__func__, [&] {
    require(handle != nullptr, "null handle");
    const TensorShape shape = scalarShape(yDesc);
    const double scale = readFactor(alpha, shape.type);
    submitMemory(handle, "scaleTensor", {{shape, y, "y", true}}, [=] {
      writeElements(
          shape, y, 0, [&](const auto& index) { return scale * loadAt(shape, y, index); });
    });
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle,
                                                    const cudnnTensorDescriptor_t yDesc,
                                                    void* y,
                                                    const void* valuePtr) {
  return guarded(__func__, [&] {
    require(handle != nullptr && valuePtr != nullptr, "null handle or value");
    const TensorShape shape = scalarShape(yDesc);
    // The value has the tensor's own type, unlike all scaling factors.
    const double value = loadElement(shape.type, valuePtr);
    submitMemory(handle, "setTensor", {{shape, y, "y", true}}, [=] {
      writeElements(shape, y, 0, [&](const auto&) { return value; });
    });
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnConvolutionBackwardBias(cudnnHandle_t handle,
                             const void* alpha,
                             const cudnnTensorDescriptor_t dyDesc,
                             const void* dy,
                             const void* beta,
                             const cudnnTensorDescriptor_t dbDesc,
                             void* db) {
  return guarded(__func__, [&] {
    require(handle != nullptr, "null handle");
    const TensorShape from = scalarShape(dyDesc);
    const TensorShape to = scalarShape(dbDesc);
    require(from.type == to.type, "the tensors differ in data type");
    require(from.rank == to.rank && from.dims[1] == to.dims[1] &&
                elementCount(to) == static_cast<std::size_t>(to.dims[1]),
            "db does not have one value for each channel of dy");
    const double scale = readFactor(alpha, to.type);
    const double keep = readFactor(beta, to.type);
    submitMemory(handle, "convolutionBackwardBias", {{from, dy, "dy"}, {to, db, "db", true}}, [=] {
      std::vector<double> sums(static_cast<std::size_t>(to.dims[1]), 0.0);
      forEachOffset(from, [&](std::int64_t, const auto& index) {
        sums[static_cast<std::size_t>(index[1])] += loadAt(from, dy, index);
      });
      writeElements(to, db, keep, [&](const auto& index) {
        return scale * sums[static_cast<std::size_t>(index[1])];
      });
    });
  });
}
