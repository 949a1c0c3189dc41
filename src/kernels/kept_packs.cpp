#include "kernels/kept_packs.hpp"

#if UCUDNN_HAS_ENGINES

#include "cuda/cudnn.hpp"
#include "kernels/graph_operations.hpp"

namespace ucudnn {
namespace {

cudnnStatus_t makePack(const PackContents& contents,
                       std::int64_t tensors,
                       BackendDescriptor& pack) noexcept {
  static constexpr std::int64_t kIds[] = {kTensorX, kTensorW, kTensorY, kTensorBias, kTensorZ};
  cudnnBackendDescriptor_t made = nullptr;
  cudnnStatus_t status =
      cudnn().backendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &made);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  pack.reset(made);
  const auto set = [&](cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type,
                       std::int64_t count,
                       const void* values) {
    if (status == CUDNN_STATUS_SUCCESS)
      status = cudnn().backendSetAttribute(made, name, type, count, values);
  };
  set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensors, kIds);
  set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, tensors, contents.data.data());
  set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &contents.workspace);
  return status == CUDNN_STATUS_SUCCESS ? cudnn().backendFinalize(made) : status;
}

}  // namespace

cudnnStatus_t KeptPacks::execute(const PackContents& contents, std::int64_t tensors) noexcept {
  Place& place = places_[contents.hash() % places_.size()];
  if (place.isTaken.exchange(true, std::memory_order_acquire)) {
    Place own;
    return executeIn(own, contents, tensors);
  }
  const cudnnStatus_t status = executeIn(place, contents, tensors);
  place.isTaken.store(false, std::memory_order_release);
  return status;
}

cudnnStatus_t KeptPacks::executeIn(Place& place,
                                   const PackContents& contents,
                                   std::int64_t tensors) noexcept {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  if (place.pack == nullptr || !(place.contents == contents)) {
    place.contents = contents;
    status = makePack(contents, tensors, place.pack);
  }
  if (status == CUDNN_STATUS_SUCCESS)
    status = cudnn().backendExecute(contents.handle, contents.plan, place.pack.get());
  if (status != CUDNN_STATUS_SUCCESS) place.pack.reset();
  return status;
}

}  // namespace ucudnn

#endif
