#include "context/fused_call.hpp"

#include <algorithm>

#include "context/call_path.hpp"
#include "kernels/factor.hpp"

// RELU's treatment of NaNs is marked deprecated, but cuDNN has no other name for it.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {
namespace {

constexpr LayerId kNoLayer = -1;

[[noreturn]] void refuse(cudnnStatus_t status, const char* why) {
  throw Error(status, why);
}

Operation transposed(Operation operation) noexcept {
  return operation == Operation::kForward        ? Operation::kBackwardData
         : operation == Operation::kBackwardData ? Operation::kForward
                                                 : operation;
}

struct Activation {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
  cudnnNanPropagation_t nans = CUDNN_NOT_PROPAGATE_NAN;
};
Activation read(cudnnActivationDescriptor_t descriptor) {
  Activation activation;
  double coefficient = 0;
  if (descriptor != nullptr)
    UCUDNN_CHECK_CUDNN(cudnn().getActivationDescriptor(
        descriptor, &activation.mode, &activation.nans, &coefficient));
  return activation;
}

bool isPlainRelu(cudnnActivationDescriptor_t descriptor) {
  const Activation activation = read(descriptor);
  return activation.mode == CUDNN_ACTIVATION_RELU && activation.nans == CUDNN_NOT_PROPAGATE_NAN;
}

}  // namespace

FusedCall::FusedCall(Context& context, const FusedLayer& layer) : context_(context), layer_(layer) {
  const bool hasPooling = layer.pooling != nullptr;
  if (layer.x == nullptr || layer.w == nullptr || layer.convolution == nullptr ||
      layer.y == nullptr || hasPooling != (layer.pooled != nullptr))
    refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor is missing");
  const Operation operation = layer.isTransposed ? Operation::kBackwardData : Operation::kForward;
  if (!readProblem(operation, inOrder(layer.x, layer.y), problem_))
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "its convolution is not served");
  for (cudnnActivationDescriptor_t* each : {&layer_.activation, &layer_.xActivation})
    if (read(*each).mode == CUDNN_ACTIVATION_IDENTITY) *each = nullptr;
  pass_.sizes = problem_.xSizes;
  pass_.axes = {0};
}

std::size_t FusedCall::addSamples(cudnnTensorDescriptor_t descriptor,
                                  const void* pointer,
                                  Use use) {
  PassTensor tensor = HostPass::read(descriptor);
  if (tensor.layout.sizes[0] != pass_.sizes[0])
    refuse(CUDNN_STATUS_BAD_PARAM, "its tensors' batch sizes differ");
  tensor.isCut[0] = true;
  return addShared(tensor, pointer, use);
}

std::size_t FusedCall::addShared(PassTensor tensor, const void* pointer, Use use) {
  if (pointer != nullptr) tensor.place = placeOf(pointer);
  tensor.isRead = use == Use::kRead;
  tensor.isWritten = use == Use::kWritten;
  pass_.tensors.push_back(tensor);
  pointers_.push_back(const_cast<void*>(pointer));
  return pointers_.size() - 1;
}

std::size_t FusedCall::addFilter(const void* pointer, Use use) {
  PassTensor filter;
  filter.isFilter = true;
  filter.type = problem_.wType;
  filter.layout = layoutOfW(problem_);
  return addShared(filter, pointer, use);
}

ConvolutionDescriptors FusedCall::inOrder(cudnnTensorDescriptor_t x,
                                          cudnnTensorDescriptor_t y) const noexcept {
  if (layer_.isTransposed) std::swap(x, y);
  return {x, layer_.w, layer_.convolution, y};
}

void FusedCall::convolve(Operation operation, std::size_t x, std::size_t w, std::size_t y) {
  if (layer_.isTransposed) operation = transposed(operation);
  Problem problem = problem_;
  problem.operation = operation;
  pass_.convolutions.push_back({problem, layer_.isTransposed ? y : x, layer_.isTransposed ? x : y});
  steps_.emplace_back([=](const PassPart& part) {
    const bool adds = part.adds && operation == Operation::kBackwardFilter;
    const Operand &from = part.tensors[x], &to = part.tensors[y];
    ConvolutionCall call{inOrder(from.descriptor, to.descriptor), {}, nullptr, kAnyAlgorithm};
    call.pointers = {one(),
                     adds ? one() : zero(),
                     layer_.isTransposed ? to.pointer : from.pointer,
                     part.tensors[w].pointer,
                     layer_.isTransposed ? from.pointer : to.pointer,
                     part.workspace,
                     part.workspaceBytes};
    return CallPath::runOnDevice(context_, operation, call, kNoLayer);
  });
}

/// One kernel does all where cuDNN surely has it.
void FusedCall::addBiasAndActivation(std::size_t x,
                                     std::size_t w,
                                     std::size_t bias,
                                     std::size_t y) {
  pass_.convolutions.push_back({problem_, x, y});
  Problem& problem = pass_.convolutions.back().problem;
  problem.operation = Operation::kBiasActivationForward;
  problem.activation = CUDNN_ACTIVATION_RELU;
  steps_.emplace_back([=](const PassPart& part) {
    const Operand& output = part.tensors[y];
    const BiasActivation fused{output.descriptor,
                               output.pointer,
                               part.tensors[bias].descriptor,
                               part.tensors[bias].pointer,
                               layer_.activation};
    const ConvolutionCall call{inOrder(part.tensors[x].descriptor, output.descriptor),
                               {one(),
                                zero(),
                                part.tensors[x].pointer,
                                part.tensors[w].pointer,
                                output.pointer,
                                part.workspace,
                                part.workspaceBytes},
                               &fused,
                               kFusedAlgorithm};
    return CallPath::runOnDevice(context_, Operation::kBiasActivationForward, call, kNoLayer);
  });
}

cudnnStatus_t FusedCall::forward(const FusedTensors& tensors) {
  if (tensors.x == nullptr || tensors.w == nullptr ||
      (layer_.bias != nullptr) != (tensors.bias != nullptr) ||
      (layer_.pooling != nullptr) != (tensors.pooled != nullptr) ||
      (tensors.y == nullptr && layer_.pooling == nullptr))
    refuse(CUDNN_STATUS_BAD_PARAM, "a tensor is missing");
  const std::size_t x = addSamples(layer_.x, tensors.x, Use::kRead);
  const std::size_t w = addFilter(tensors.w, Use::kRead);
  const std::size_t y = addSamples(layer_.y, tensors.y, Use::kWritten);
  const bool hasBias = layer_.bias != nullptr;
  const std::size_t bias =
      hasBias ? addShared(HostPass::read(layer_.bias), tensors.bias, Use::kRead) : 0;
  const bool isFloat = problem_.xType == CUDNN_DATA_FLOAT && problem_.yType == CUDNN_DATA_FLOAT;
  if (hasBias && isPlainRelu(layer_.activation) && isFloat && !layer_.isTransposed) {
    addBiasAndActivation(x, w, bias, y);
  } else {
    convolve(Operation::kForward, x, w, y);
    if (hasBias)
      steps_.emplace_back([=](const PassPart& part) {
        const Operand &from = part.tensors[bias], &to = part.tensors[y];
        return cudnn().addTensor(context_.handle(),
                                 one(),
                                 from.descriptor,
                                 from.pointer,
                                 one(),
                                 to.descriptor,
                                 to.pointer);
      });
    if (layer_.activation != nullptr)
      steps_.emplace_back([=](const PassPart& part) {
        const auto& [descriptor, pointer] = part.tensors[y];
        return cudnn().activationForward(context_.handle(),
                                         layer_.activation,
                                         one(),
                                         descriptor,
                                         pointer,
                                         zero(),
                                         descriptor,
                                         pointer);
      });
  }
  if (layer_.pooling != nullptr)
    addPooling(y, addSamples(layer_.pooled, tensors.pooled, Use::kWritten));
  return run("ucudnnFusedForward");
}

void FusedCall::addPooling(std::size_t y, std::size_t pooled) {
  steps_.emplace_back([=](const PassPart& part) {
    const Operand &from = part.tensors[y], &to = part.tensors[pooled];
    return cudnn().poolingForward(context_.handle(),
                                  layer_.pooling,
                                  one(),
                                  from.descriptor,
                                  from.pointer,
                                  zero(),
                                  to.descriptor,
                                  to.pointer);
  });
}

void FusedCall::differentiate(cudnnActivationDescriptor_t activation,
                              std::size_t written,
                              std::size_t from,
                              std::size_t to) {
  const cudnnActivationMode_t mode = read(activation).mode;
  if (mode == CUDNN_ACTIVATION_ELU || mode == CUDNN_ACTIVATION_SWISH)
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "the gradient of its activation needs the input");
  steps_.emplace_back([=](const PassPart& part) {
    const Operand* const t = part.tensors;
    return cudnn().activationBackward(context_.handle(),
                                      activation,
                                      one(),
                                      t[written].descriptor,
                                      t[written].pointer,
                                      t[from].descriptor,
                                      t[from].pointer,
                                      t[written].descriptor,
                                      t[written].pointer,
                                      zero(),
                                      t[to].descriptor,
                                      t[to].pointer);
  });
}

std::size_t FusedCall::differentiateOutput(const FusedTensors& tensors) {
  const bool hasPooling = layer_.pooling != nullptr;
  const std::size_t given =
      addSamples(hasPooling ? layer_.pooled : layer_.y, tensors.dOutput, Use::kRead);
  const bool hasActivation = layer_.activation != nullptr && tensors.y != nullptr;
  if (!hasPooling && !hasActivation) return given;
  const std::size_t y = addSamples(layer_.y, tensors.y, Use::kRead);
  const std::size_t dy = addSamples(layer_.y, nullptr, Use::kWritten);
  if (hasPooling) {
    const std::size_t pooled = addSamples(layer_.pooled, tensors.pooled, Use::kRead);
    if (tensors.pooled == nullptr) addPooling(y, pooled);
    steps_.emplace_back([=](const PassPart& part) {
      const Operand* const t = part.tensors;
      return cudnn().poolingBackward(context_.handle(),
                                     layer_.pooling,
                                     one(),
                                     t[pooled].descriptor,
                                     t[pooled].pointer,
                                     t[given].descriptor,
                                     t[given].pointer,
                                     t[y].descriptor,
                                     t[y].pointer,
                                     zero(),
                                     t[dy].descriptor,
                                     t[dy].pointer);
    });
  }
  if (hasActivation) differentiate(layer_.activation, y, hasPooling ? dy : given, dy);
  return dy;
}

cudnnStatus_t FusedCall::backward(const FusedTensors& tensors) {
  const bool hasInputGradient = tensors.dx != nullptr && layer_.xActivation != nullptr;
  if (tensors.dOutput == nullptr || (layer_.pooling != nullptr && tensors.y == nullptr) ||
      ((tensors.dw != nullptr || hasInputGradient) && tensors.x == nullptr) ||
      (tensors.dx != nullptr && tensors.w == nullptr) ||
      (tensors.db != nullptr && layer_.bias == nullptr) ||
      (tensors.dx == nullptr && tensors.dw == nullptr && tensors.db == nullptr))
    refuse(CUDNN_STATUS_BAD_PARAM, "a tensor is missing");
  // Each addition to a gradient in half or bfloat16 would be rounded.
  const bool adds = tensors.dw != nullptr || tensors.db != nullptr;
  if (adds && isRounded(problem_.wType)) pass_.axes.clear();
  const std::size_t dy = differentiateOutput(tensors);
  if (tensors.db != nullptr) {
    const std::size_t db = addShared(HostPass::read(layer_.bias), tensors.db, Use::kWritten);
    steps_.emplace_back([=](const PassPart& part) {
      const Operand &from = part.tensors[dy], &to = part.tensors[db];
      return cudnn().convolutionBackwardBias(context_.handle(),
                                             one(),
                                             from.descriptor,
                                             from.pointer,
                                             part.adds ? one() : zero(),
                                             to.descriptor,
                                             to.pointer);
    });
  }
  const bool readsX = tensors.dw != nullptr || hasInputGradient;
  const std::size_t x = readsX ? addSamples(layer_.x, tensors.x, Use::kRead) : 0;
  if (tensors.dw != nullptr)
    convolve(Operation::kBackwardFilter, x, addFilter(tensors.dw, Use::kWritten), dy);
  if (tensors.dx != nullptr) {
    const std::size_t w = addFilter(tensors.w, Use::kRead);
    const std::size_t dx = addSamples(layer_.x, tensors.dx, Use::kWritten);
    convolve(Operation::kBackwardData, dx, w, dy);
    if (hasInputGradient) differentiate(layer_.xActivation, x, dx, dx);
  }
  return run("ucudnnFusedBackward");
}

const void* FusedCall::one() const noexcept {
  return Factor::one(problem_).get();
}
const void* FusedCall::zero() const noexcept {
  return Factor::zero(problem_).get();
}

cudnnStatus_t FusedCall::run(const char* name) {
  if (pass_.axes.empty())
    for (PassTensor& tensor : pass_.tensors) tensor.isCut = {};
  return HostPass::run(context_, name, pass_, pointers_, [this](const PassPart& part) {
    for (const Step& step : steps_) {
      const cudnnStatus_t status = step(part);
      if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    return CUDNN_STATUS_SUCCESS;
  });
}

}  // namespace ucudnn
