#include "executor/replay_key.hpp"

#include <cstring>

#include "cuda/cudnn.hpp"

namespace ucudnn {
namespace {

/// Writes words one after another. REQUIRES: no more words than the key has.
class Writer {
 public:
  explicit Writer(ReplayKey& key) : next_(key.words.data()) {}
  void add(std::uint64_t word) noexcept { *next_++ = word; }
  void add(const void* pointer) noexcept { add(reinterpret_cast<std::uintptr_t>(pointer)); }
  /// Adds the bits of a scaling factor or a coefficient.
  void addBits(const void* value, std::size_t bytes) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, value, bytes);
    add(word);
  }

 private:
  std::uint64_t* next_;
};

/// Adds what bias_activation_forward has besides. Includes the contents of its descriptors, because
/// a client may change a descriptor in place. z has y's layout, which is the plan's.
bool addFused(Writer& words, const BiasActivation& fused) noexcept {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  double coefficient = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int dimensions = 0;
  std::array<int, Problem::kMaxDimensions> sizes{};
  std::array<int, Problem::kMaxDimensions> strides{};
  if (cudnn().getActivationDescriptor(fused.activation, &mode, &nan, &coefficient) !=
          CUDNN_STATUS_SUCCESS ||
      cudnn().getTensorNdDescriptor(fused.biasDescriptor,
                                    Problem::kMaxDimensions,
                                    &type,
                                    &dimensions,
                                    sizes.data(),
                                    strides.data()) != CUDNN_STATUS_SUCCESS)
    return false;
  words.add(fused.z);
  words.add(fused.bias);
  words.add(static_cast<std::uint64_t>(mode) << 32 | static_cast<std::uint64_t>(nan));
  words.addBits(&coefficient, sizeof coefficient);
  words.add(static_cast<std::uint64_t>(type) << 32 | static_cast<std::uint64_t>(dimensions));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    words.add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(sizes[i])) << 32 |
              static_cast<std::uint32_t>(strides[i]));
  return fused.bias != nullptr;
}

}  // namespace

/// Multiplies and shifts, so that neighbouring addresses don't meet in one slot.
std::uint64_t ReplayKey::hash() const noexcept {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  std::uint64_t hash = 0;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 29;
  };
  mix(owner);
  mix(plan);
  mix(stream);
  for (const std::uint64_t word : words) mix(word);
  return hash;
}

std::optional<ReplayKey> replayKey(std::uint64_t owner,
                                   const Plan& plan,
                                   const ConvolutionCall& call,
                                   const CallStream& stream) noexcept {
  const ConvolutionPointers& pointers = call.pointers;
  if (pointers.alpha == nullptr || pointers.beta == nullptr || pointers.x == nullptr ||
      pointers.w == nullptr || pointers.y == nullptr)
    return std::nullopt;
  ReplayKey key;
  key.owner = owner;
  key.plan = plan.id;
  key.stream = stream.id;
  Writer words(key);
  words.add(pointers.x);
  words.add(pointers.w);
  words.add(pointers.y);
  words.add(pointers.workspace);
  words.add(std::uint64_t{pointers.workspaceBytes});
  const std::size_t factorBytes =
      plan.problem.xType == CUDNN_DATA_DOUBLE ? sizeof(double) : sizeof(float);
  words.addBits(pointers.alpha, factorBytes);
  words.addBits(pointers.beta, factorBytes);
  if (call.fused != nullptr && !addFused(words, *call.fused)) return std::nullopt;
  return key;
}

}  // namespace ucudnn
