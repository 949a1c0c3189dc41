// Convolutions of tensors that span 2^31 elements and more: in which parts engines are offered, and
// what they compute against the same numbers side by side. Gaps make the tensors large, so that a
// simulator's memory, of which only what is touched is there, and a GPU's hold them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "device_kernels.hpp"
#include "kernels/channels_last.hpp"
#include "support/operations.hpp"
#include "support/simulator.hpp"
#include "support/skips.hpp"

namespace ucudnn {
namespace {

using namespace test;

constexpr std::int64_t kFar = std::int64_t{1} << 31;

/// Whose elements are far apart.
enum class Gaps { kChannels, kDepth, kPixels };

/// One of few numbers, packed.
Problem packed(Operation operation, Gaps gaps, cudnnDataType_t type) {
  Problem problem = ofLines({12, 3, 1, 1}, {10, 3, 1, 1}, 8, 8, CUDNN_DEFAULT_MATH).withBatch(1);
  problem.operation = operation;
  problem.xType = problem.wType = problem.yType = type;
  if (gaps == Gaps::kDepth) {
    problem.dimensions = 5;
    problem.dilations[2] = 1;
    setLine(problem, 2, {10, 3, 1, 1});
  }
  setSizes(problem, 8, 8, gaps == Gaps::kPixels);
  return problem;
}

/// The same, spread over 2^31 elements of x and y.
Problem spread(const Problem& packed, Gaps gaps) {
  Problem problem = packed;
  for (Problem::Strides* const strides : {&problem.xStrides, &problem.yStrides}) {
    if (gaps == Gaps::kChannels) (*strides)[1] = kFar / 4;
    if (gaps == Gaps::kDepth) (*strides)[2] = kFar / 8;
    if (gaps == Gaps::kPixels) (*strides)[3] = kFar / 64, (*strides)[2] = 10 * (*strides)[3];
    (*strides)[0] = 8 * kFar;
  }
  return problem;
}

class LargeTest : public DeviceKernelsTest {
 protected:
  std::vector<KernelOffer> offers(const Problem& problem) const {
    return offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), true);
  }

  /// The elements of a sample, in the order of the dimensions: each place in the packed tensor, and
  /// in the one with gaps.
  template <typename Use>
  static void forEach(const Problem::Sizes& sizes,
                      int dimensions,
                      const Problem::Strides& packed,
                      const Problem::Strides& spread,
                      Use use) {
    const int depth = dimensions > 4 ? sizes[4] : 1;
    for (int c = 0; c < sizes[1]; ++c)
      for (int i = 0; i < sizes[2]; ++i)
        for (int j = 0; j < sizes[3]; ++j)
          for (int k = 0; k < depth; ++k) {
            const auto at = [&](const Problem::Strides& strides) {
              return static_cast<std::size_t>(c * strides[1] + i * strides[2] + j * strides[3] +
                                              k * strides[4]);
            };
            use(at(packed), at(spread));
          }
  }

  /// Between a packed tensor on the host and one with gaps on the device.
  static void copy(const Problem& packed,
                   const Problem& spread,
                   bool isX,
                   std::vector<char>& host,
                   const DeviceBuffer& device,
                   bool toDevice) {
    const std::size_t bytes = elementBytes(packed.xType);
    forEach(isX ? packed.xSizes : packed.ySizes,
            packed.dimensions,
            isX ? packed.xStrides : packed.yStrides,
            isX ? spread.xStrides : spread.yStrides,
            [&](std::size_t at, std::size_t far) {
              char* const there = static_cast<char*>(device.get()) + far * bytes;
              char* const here = host.data() + at * bytes;
              UCUDNN_CHECK_CUDA(cudaMemcpy(
                  toDevice ? there : here, toDevice ? here : there, bytes, cudaMemcpyDefault));
            });
  }

  /// The result of `run` for the packed problem, computed by the problem with gaps. Empty: a GPU's
  /// cuDNN refuses to run the kernel, as 9.19 does engine 0's gradients of groups with such gaps.
  std::optional<std::vector<char>> runSpread(const Problem& packed,
                                             const Problem& spread,
                                             Kernel kernel,
                                             bool adds) {
    Values values(packed);
    const auto built = build(spread, kernel);
    std::size_t bytes = 0;
    EXPECT_EQ(built->workspaceSize(handle_.get(), &bytes), CUDNN_STATUS_SUCCESS);
    const DeviceBuffer x(spread.xBytes()), w(spread.wBytes()), y(spread.yBytes()), workspace(bytes);
    copy(packed, spread, true, values.x, x, true);
    copy(packed, spread, false, values.y, y, true);
    UCUDNN_CHECK_CUDA(cudaMemcpy(w.get(), values.w.data(), w.bytes(), cudaMemcpyHostToDevice));
    const Factor& beta = adds ? Factor::one(packed) : Factor::zero(packed);
    const cudnnStatus_t status = built->enqueue(
        handle_.get(),
        {Factor::one(packed).get(), beta.get(), x.get(), w.get(), y.get(), workspace.get(), bytes},
        nullptr);
    if (status == CUDNN_STATUS_INTERNAL_ERROR && !onSimulator()) return std::nullopt;
    EXPECT_EQ(status, CUDNN_STATUS_SUCCESS);
    UCUDNN_CHECK_CUDA(cudaDeviceSynchronize());
    if (packed.operation == Operation::kBackwardFilter) {
      UCUDNN_CHECK_CUDA(cudaMemcpy(values.w.data(), w.get(), w.bytes(), cudaMemcpyDeviceToHost));
      return values.w;
    }
    const bool isX = packed.operation == Operation::kBackwardData;
    std::vector<char>& output = isX ? values.x : values.y;
    copy(packed, spread, isX, output, isX ? x : y, false);
    return output;
  }

  /// All that is offered of the problem with gaps, beside an engine of the packed one. The last.
  EngineConfiguration compare(const Problem& small, const Problem& large) {
    EXPECT_TRUE(large.isLarge());
    EngineConfiguration last;
    const auto whole = engines(small);
    const auto plain = whole.empty() ? std::nullopt : offerOf(small, whole.front());
    EXPECT_TRUE(plain);
    for (const KernelOffer& offer : plain ? offers(large) : std::vector<KernelOffer>()) {
      last = engineConfigurationOf(offer.kernel.id);
      SCOPED_TRACE(large.text() + " " + toText(last));
      for (const bool adds : {false, true}) {
        const auto result = runSpread(small, large, offer.kernel, adds);
        if (!result) continue;
        ++compared_;
        EXPECT_LE(distance(*result, run(small, *plain, adds), small.outputType()), 1e-6);
      }
    }
    return last;
  }

  int compared_ = 0;  ///< results
};

/// Small integers: whatever the order, the sums are the same.
TEST_F(LargeTest, BandsAreTheResultOfThePackedTensors) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  for (const Gaps gaps : {Gaps::kChannels, Gaps::kDepth, Gaps::kPixels})
    for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT})
      for (const Operation operation : kOperations) {
        const Problem small = packed(operation, gaps, type);
        EXPECT_GT(compare(small, spread(small, gaps)).bands, 1);
      }
}

/// Two channels in a group, which bands don't have.
TEST_F(LargeTest, TilesAreTheResultOfThePackedTensors) {
  for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT})
    for (const Operation operation : kOperations) {
      Problem small = packed(operation, Gaps::kChannels, type);
      small.groups = 4;
      setSizes(small, 8, 8, false);
      const EngineConfiguration last = compare(small, spread(small, Gaps::kChannels));
      EXPECT_TRUE(last.tiles > 1 || !onSimulator()) << "a GPU's engines may refuse gaps";
    }
  EXPECT_LT(0, compared_);
}

/// Half a billion in each of eight channels, or sixteen samples, in any layout: nothing that is
/// offered reads or writes 2^31 of a tensor at once.
TEST_F(LargeTest, OfferedAreOnlyPartsThatAreNotLarge) {
  for (const Operation operation : kOperations)
    for (const bool isNhwc : {false, true})
      for (const int batch : {1, 16}) {
        Problem problem =
            ofLines({16384 / batch, 3, 1, 1}, {32768, 3, 1, 1}, 8, 8, CUDNN_DEFAULT_MATH);
        problem = problem.withBatch(batch);
        problem.operation = operation;
        problem.xType = problem.wType = problem.yType = CUDNN_DATA_BFLOAT16;
        setSizes(problem, 8, 8, isNhwc);
        ASSERT_TRUE(problem.isLarge());
        EXPECT_FALSE(areThere(ProblemDescriptors(problem).get()));
        const auto found = offers(problem);
        EXPECT_TRUE(!found.empty() || !kHasBlockCopies) << problem.text();
        std::size_t least = SIZE_MAX, most = 0;
        for (const KernelOffer& offer : found) {
          ASSERT_EQ(offer.kernel.source, kEngines);
          EXPECT_TRUE(mayBePlanned(problem, offer.kernel));
          const EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
          if (value.bands == 1) continue;
          EXPECT_FALSE(ChannelsLast(problem, value.bands, value.folds).problem().isLarge());
          EXPECT_TRUE(value.folds == (isNhwc ? 1 : 8) || value.bands == 2048) << value.bands;
          least = std::min(least, offer.workspaceBytes);
          most = std::max(most, offer.workspaceBytes);
        }
        if (kHasBlockCopies) {
          EXPECT_LT(least, std::size_t{24} << 20) << problem.text();
        }
        EXPECT_LT(most, std::size_t{1100} << 20) << problem.text();
        const Problem half = problem.withBatch(batch / 2);
        if (batch == 1 || half.isLarge()) continue;
        for (const KernelOffer& offer : offers(half)) EXPECT_TRUE(mayBePlanned(half, offer.kernel));
      }
}

/// A kernel of the whole is no candidate, whoever has named it: a database, or a smaller batch.
TEST_F(LargeTest, KernelsOfTheWholeAreNotPlanned) {
  const Problem small = packed(Operation::kForward, Gaps::kChannels, CUDNN_DATA_HALF);
  const Problem large = spread(small, Gaps::kChannels);
  for (const KernelOffer& offer : offers(small)) {
    EXPECT_TRUE(mayBePlanned(small, offer.kernel));
    const bool isDivided =
        offer.kernel.source == kEngines && engineConfigurationOf(offer.kernel.id).bands > 1;
    EXPECT_TRUE(isDivided || !mayBePlanned(large, offer.kernel)) << toText({}, offer.kernel);
  }
}

}  // namespace
}  // namespace ucudnn
