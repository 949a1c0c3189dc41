#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/alignment.hpp"
#include "support/settings.hpp"
#include "support/sizes.hpp"

namespace ucudnn {
namespace {

TEST(SizeTest, ParsesUnitsExactly) {
  const std::vector<std::pair<std::string, std::size_t>> cases = {
      {"0", 0},
      {"67108864", 67108864},
      {"64MiB", 67108864},
      {"64 MiB", 67108864},
      {" 64mib ", 67108864},
      {"64M", 67108864},
      {"64MB", 64000000},
      {"512KiB", 524288},
      {"1GiB", 1073741824},
      {"1.5GiB", 1610612736},
      {"0.1GB", 100000000},
      {"0.125K", 128},
      {"1.000", 1},
      {"2T", 2199023255552},
      {"7B", 7},
      {"18446744073709551615", SIZE_MAX},
  };
  for (const auto& [text, bytes] : cases) EXPECT_EQ(bytes, parseSize(text)) << text;
}

TEST(SizeTest, RefusesWhatIsNoSize) {
  for (const char* text : {"",
                           " ",
                           "-1",
                           "MiB",
                           "1.",
                           ".5K",
                           "1.5",
                           "0.1K",
                           "1 2",
                           "1MiBs",
                           "1PiB",
                           "1i",
                           "1e3",
                           "0x10",
                           "1,5M",
                           "+1",
                           "18446744073709551616",
                           "16777216T",
                           "18446744073709551615.5K",
                           "nan"}) {
    EXPECT_THROW(parseSize(text), std::invalid_argument) << text;
  }
}

TEST(SizeTest, DoubtsASmallNumberWithoutAUnit) {
  EXPECT_EQ("64 means 64 bytes: write 64MiB, or 64B if that is meant", doubtOfSize(" 64 "));
  for (const char* text : {"1", "8192", "65535"}) EXPECT_NE("", doubtOfSize(text)) << text;
  for (const char* text : {"0", "00", "65536", "67108864", "64B", "64 MiB", "0.5K", "all", ""})
    EXPECT_EQ("", doubtOfSize(text)) << text;
}

TEST(SizeTest, FormatsForPeople) {
  const std::vector<std::pair<std::size_t, std::string>> cases = {
      {0, "0 B"},
      {512, "512 B"},
      {1023, "1023 B"},
      {1024, "1 KiB"},
      {1536, "1.5 KiB"},
      {67108864, "64 MiB"},
      {67108863, "64 MiB"},
      {1048575, "1 MiB"},
      {1610612736, "1.5 GiB"},
      {SIZE_MAX, "16777216 TiB"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(text, formatSize(bytes));
}

TEST(SizeTest, SizesThatDifferByLittleAreToldAsOne) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  EXPECT_EQ(bytesToTell(0, SIZE_MAX), 0u);
  EXPECT_EQ(bytesToTell(1, SIZE_MAX), 512u);
  EXPECT_EQ(bytesToTell(31 * kMiB + 1, SIZE_MAX), 31 * kMiB + 512);
  EXPECT_EQ(bytesToTell(32 * kMiB + 1, SIZE_MAX), 64 * kMiB);
  EXPECT_EQ(bytesToTell(256 * kMiB, SIZE_MAX), 256 * kMiB);
  EXPECT_EQ(bytesToTell(256 * kMiB + 1, SIZE_MAX), 288 * kMiB);
  EXPECT_EQ(bytesToTell(512 * kMiB, SIZE_MAX), 512 * kMiB);
  EXPECT_EQ(bytesToTell(512 * kMiB + 1, SIZE_MAX), 544 * kMiB);
  for (const std::size_t near : {865, 872, 896})
    EXPECT_EQ(bytesToTell(near * kMiB, SIZE_MAX), 896 * kMiB);
  EXPECT_EQ(bytesToTell(872 * kMiB, 880 * kMiB), 880 * kMiB);
}

TEST(SizeTest, NoMoreThanTheCapIsTold) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  EXPECT_EQ(bytesToTell(33 * kMiB, 64 * kMiB), 64 * kMiB);
  EXPECT_EQ(bytesToTell(129 * kMiB, 256 * kMiB), 160 * kMiB);
  EXPECT_EQ(bytesToTell(246 * kMiB, 250 * kMiB), 250 * kMiB);
  EXPECT_EQ(bytesToTell(10 * kMiB, 12 * kMiB), 10 * kMiB);
}

TEST(SizeTest, WorkspacesAreReportedInMultiplesOf512) {
  EXPECT_EQ(roundUpToAlignment(0), 0u);
  EXPECT_EQ(roundUpToAlignment(1), 512u);
  EXPECT_EQ(roundUpToAlignment(512), 512u);
  EXPECT_EQ(roundUpToAlignment(513), 1024u);
}

}  // namespace
}  // namespace ucudnn
