#include "support/workspace_room.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace ucudnn {
namespace {

/// An output of ten samples; those before the last `behind` are written already.
class Output {
 public:
  Output(std::size_t begin, std::size_t sampleBytes, int behind)
      : end_(begin + 10 * sampleBytes),
        behind_(end_ - static_cast<std::size_t>(behind) * sampleBytes) {}

  void expectHolds(std::size_t bytes, std::size_t alignment) const {
    const auto place = reinterpret_cast<std::uintptr_t>(
        borrowedPlace(reinterpret_cast<const void*>(end_), bytes, alignment));
    EXPECT_EQ(place % alignment, 0U);
    EXPECT_GE(place, behind_);
    EXPECT_LE(place + bytes, end_);
  }

 private:
  std::uintptr_t end_, behind_;
};

TEST(WorkspaceRoomTest, NothingThatIsWrittenIsBorrowed) {
  for (std::size_t sampleBytes = 1; sampleBytes < 1100; ++sampleBytes)
    for (const int behind : {1, 2, 5}) {
      SCOPED_TRACE(testing::Message() << sampleBytes << " " << behind);
      const WorkspaceRoom room{0, sampleBytes};
      for (const std::size_t begin : {4096, 4096 + 16, 4096 + 500}) {
        const Output output(begin, sampleBytes, behind);
        if (room.borrowed(behind) > 0) output.expectHolds(room.borrowed(behind), kMemoryAlignment);
        if (begin % kEngineAlignment == 0 && room.forCopy(behind) > 0)
          output.expectHolds(room.forCopy(behind), kEngineAlignment);
      }
    }
}

/// Half a batch has room for the other half's copy.
TEST(WorkspaceRoomTest, CopiesOfAlignedSamplesHaveAllOfTheRoom) {
  EXPECT_EQ((WorkspaceRoom{0, 48}.forCopy(3)), 144U);
  EXPECT_EQ((WorkspaceRoom{0, 0}.forCopy(3)), 0U);
  EXPECT_LT((WorkspaceRoom{0, 44}.forCopy(3)), 132U);
}

}  // namespace
}  // namespace ucudnn
