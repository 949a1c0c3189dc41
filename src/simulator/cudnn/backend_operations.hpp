// Descriptors of the backend API that describe what is computed: tensors, operations, graphs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "simulator/cudnn/backend_descriptor.hpp"
#include "simulator/cudnn/engines.hpp"

namespace ucudnn::simulator {

/// CUDNN_BACKEND_TENSOR_DESCRIPTOR.
class BackendTensor : public BackendDescriptor {
 public:
  struct Value {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    std::vector<std::int64_t> dims;
    std::vector<std::int64_t> strides;
    std::int64_t uid = 0;
    std::int64_t alignment = 0;
    bool isVirtual = false;
    bool byValue = false;
    bool finalized = false;
  };

  BackendTensor() : BackendDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR) {}
  Value value() const;

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  Value value_;
};

/// CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR.
class BackendConvolution : public BackendDescriptor {
 public:
  struct Value {
    cudnnDataType_t computeType = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CONVOLUTION;
    std::int64_t spatialRank = 0;
    std::vector<std::int64_t> dilations;
    std::vector<std::int64_t> strides;
    std::vector<std::int64_t> prePaddings;
    std::vector<std::int64_t> postPaddings;
    bool finalized = false;
  };

  BackendConvolution() : BackendDescriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) {}
  Value value() const;

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  Value value_;
};

/// alpha or beta: a float or a double, and read as what it was set.
struct BackendFactor {
  double value;
  cudnnBackendAttributeType_t type = CUDNN_TYPE_FLOAT;
};

BackendFactor readBackendFactor(const AttributeInput& input);

/// A tensor of the simulator; NOT_SUPPORTED where it would not fit one.
TensorShape shapeOf(const BackendTensor::Value& tensor);

/// CUDNN_BACKEND_OPERATION_CONVOLUTION_*_DESCRIPTOR.
class BackendOperation : public BackendDescriptor {
 public:
  explicit BackendOperation(Operation operation);
  /// The operation as a graph of one node. REQUIRES: finalized.
  const OperationGraph& graph() const { return graph_; }
  /// Whether its output is virtual, for the next operation of a larger graph.
  bool continues() const { return y_.isVirtual; }

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  Operation operation_;
  BackendTensor::Value x_;
  BackendTensor::Value w_;
  BackendTensor::Value y_;
  BackendConvolution::Value convolution_;
  BackendFactor alpha_{1};
  BackendFactor beta_{0};
  OperationGraph graph_;
};

/// CUDNN_BACKEND_POINTWISE_DESCRIPTOR.
class BackendPointwise : public BackendDescriptor {
 public:
  struct Value {
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    cudnnDataType_t computeType = CUDNN_DATA_FLOAT;
    cudnnNanPropagation_t nanPropagation = CUDNN_NOT_PROPAGATE_NAN;
    double lowerClip = 0;
    std::optional<double> upperClip;
    double slope = 0;
    double eluAlpha = 1;
  };

  BackendPointwise() : BackendDescriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR) {}
  const Value& value() const { return value_; }

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;

  Value value_;
};

/// CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, of one or two inputs.
class BackendPointwiseOperation : public BackendDescriptor {
 public:
  struct Value {
    std::optional<BackendPointwise::Value> pointwise;
    std::optional<BackendTensor::Value> x;
    std::optional<BackendTensor::Value> b;
    std::optional<BackendTensor::Value> y;
    BackendFactor alpha1{1};
    BackendFactor alpha2{1};
  };

  BackendPointwiseOperation() : BackendDescriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {}
  const Value& value() const { return value_; }

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  Value value_;
};

/// A forward convolution and the pointwise operations that follow it, each on the last one's
/// output. Throws NOT_SUPPORTED_GRAPH_PATTERN for what is no such chain.
OperationGraph fuse(OperationGraph convolution,
                    std::vector<BackendPointwiseOperation::Value> followers);

/// CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, of one convolution, or of one and what `fuse` takes.
class BackendGraph : public BackendDescriptor {
 public:
  BackendGraph() : BackendDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {}
  /// Null until finalized.
  const std::shared_ptr<const OperationGraph>& graph() const { return graph_; }
  void fill(std::shared_ptr<const OperationGraph> graph);

 private:
  void setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) override;
  void getAttribute(cudnnBackendAttributeName_t name, const AttributeOutput& output) const override;
  void complete() override;

  void addOperation(cudnnBackendDescriptor_t handle);

  struct Operations {
    std::vector<OperationGraph> convolutions;
    std::vector<BackendPointwiseOperation::Value> followers;
    bool continues = false;  ///< a convolution's output is virtual
  };
  Operations operations_;
  cudnnHandle_t handle_ = nullptr;
  std::shared_ptr<const OperationGraph> graph_;
};

}  // namespace ucudnn::simulator
