#include "tool/layer_list.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "support/temporary_directory.hpp"
#include "tool/failure.hpp"

namespace ucudnn::tool {
namespace {

const std::string kHeader =
    "source,W,H,C_in,N,C_out,kernel_w,kernel_h,pad_w,pad_h,stride_w,stride_h\n";

std::vector<Layer> parse(const std::string& text) {
  std::istringstream stream(text);
  return parseLayers(stream, "net.csv");
}

using Numbers = std::vector<int>;

TEST(LayerList, ReadsColumnsByTheirNames) {
  const auto layers = parse(kHeader + "conv,30,20,8,4,16,5,3,2,1,2,1\n");
  ASSERT_EQ(layers.size(), 1U);
  const Layer& layer = layers[0];
  EXPECT_EQ(layer.name, "conv");
  EXPECT_EQ(layer.inputSizes(), (Numbers{4, 8, 20, 30}));
  EXPECT_EQ(layer.filterSizes(), (Numbers{16, 8, 3, 5}));
  EXPECT_EQ(layer.pad, (Numbers{1, 2}));
  EXPECT_EQ(layer.stride, (Numbers{1, 2}));
  EXPECT_EQ(layer.dilation, (Numbers{1, 1}));
  EXPECT_EQ(layer.outputSizes(), (Numbers{4, 16, 20, 15}));
  EXPECT_EQ(layer.multiplyAdds(), 4.0 * 16 * 20 * 15 * 3 * 5 * 8);
  EXPECT_EQ(layer.shape(), "4x8x20x30 k16 3x5 pad 1x2 stride 1x2");
}

TEST(LayerList, TakesColumnsInAnyOrder) {
  const auto layers = parse(
      "stride_h,stride_w,pad_h,pad_w,kernel_h,kernel_w,C_out,N,C_in,H,W,source\n"
      "1,2,1,2,3,5,16,4,8,20,30,conv\n");
  EXPECT_EQ(layers.at(0).shape(), "4x8x20x30 k16 3x5 pad 1x2 stride 1x2");
}

TEST(LayerList, TakesMarkCrlfQuotesCommentsAndEmptyLines) {
  const auto layers = parse("\xef\xbb\xbf" + kHeader.substr(0, kHeader.size() - 1) +
                            "\r\n# a comment\r\n\r\n\"a, \"\"b\"\"\", 8,8,1,1,1,3,3,1,1,1,1\r\n");
  ASSERT_EQ(layers.size(), 1U);
  EXPECT_EQ(layers[0].name, "a, \"b\"");
}

TEST(LayerList, NumbersNamesakes) {
  const std::string row = ",8,8,1,1,1,3,3,1,1,1,1\n";
  const auto layers = parse(kHeader + "a" + row + "b" + row + "a" + row + "a" + row);
  ASSERT_EQ(layers.size(), 4U);
  EXPECT_EQ(layers[0].name, "a");
  EXPECT_EQ(layers[1].name, "b");
  EXPECT_EQ(layers[2].name, "a#2");
  EXPECT_EQ(layers[3].name, "a#3");
}

TEST(LayerList, ReadsOptionalColumns) {
  const auto layers = parse(kHeader.substr(0, kHeader.size() - 1) +
                            ",groups,dilation_w,dilation_h,D,kernel_d,pad_d,stride_d,dilation_d\n"
                            "deep,9,9,8,2,4,3,3,2,2,1,1,4,2,2,7,3,1,2,1\n"
                            "flat,9,9,8,2,4,3,3,2,2,1,1,,,,,,,,\n");
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].inputSizes(), (Numbers{2, 8, 7, 9, 9}));
  EXPECT_EQ(layers[0].filterSizes(), (Numbers{4, 2, 3, 3, 3}));
  EXPECT_EQ(layers[0].outputSizes(), (Numbers{2, 4, 4, 9, 9}));
  EXPECT_EQ(layers[0].dilation, (Numbers{1, 2, 2}));
  EXPECT_EQ(layers[1].inputSizes(), (Numbers{2, 8, 9, 9}));
  EXPECT_EQ(layers[1].groups, 1);
  EXPECT_EQ(layers[1].outputSizes(), (Numbers{2, 4, 11, 11}));
}

TEST(LayerList, ALayerMayHaveADataTypeOfItsOwn) {
  const std::string header = kHeader.substr(0, kHeader.size() - 1) + ",data_type\n";
  const auto layers = parse(header + "a,8,8,1,1,1,3,3,1,1,1,1,half\nb,8,8,1,1,1,3,3,1,1,1,1,\n");
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].dataType, "half");
  EXPECT_EQ(layers[0].shape(), "1x1x8x8 k1 3x3 pad 1x1 stride 1x1 half");
  EXPECT_EQ(layers[1].dataType, "");
  EXPECT_EQ(layers[1].shape(), "1x1x8x8 k1 3x3 pad 1x1 stride 1x1");
}

const std::string kRequiredColumns =
    "; the columns are source,W,H,C_in,N,C_out,kernel_w,kernel_h,pad_w,pad_h,stride_w,stride_h";
const std::string kAllColumns =
    kRequiredColumns +
    ",dilation_w,dilation_h,groups,data_type,D,kernel_d,pad_d,stride_d,dilation_d";

TEST(LayerList, NamesFileLineAndColumnOfWhatIsBad) {
  const struct {
    std::string text;
    std::string message;
  } kCases[] = {
      {"", "net.csv: no header line"},
      {kHeader, "net.csv: no layers"},
      {"source,W\n",
       "net.csv, line 1: column H is missing" + kRequiredColumns +
           "; `ucudnn bench --help` says more"},
      {"source,w\n", "net.csv, line 1: unknown column \"w\"" + kAllColumns},
      {"source,source\n", "net.csv, line 1: column source stands twice"},
      {kHeader.substr(0, kHeader.size() - 1) + ",D\n",
       "net.csv, line 1: columns D and kernel_d go together"},
      {kHeader + "a,8,8\n", "net.csv, line 2: 3 cells, but the header has 12"},
      {kHeader + "a,8,8,x,1,1,3,3,1,1,1,1\n",
       "net.csv, line 2, column C_in: \"x\" is not a whole number"},
      {kHeader + "a,8,8,1.5,1,1,3,3,1,1,1,1\n",
       "net.csv, line 2, column C_in: \"1.5\" is not a whole number"},
      {kHeader + "a,99999999999,8,1,1,1,3,3,1,1,1,1\n",
       "net.csv, line 2, column W: 99999999999 is more than 1048576"},
      {kHeader + "a,8,8,1,100000000,1,3,3,1,1,1,1\n",
       "net.csv, line 2, column N: 100000000 is more than 1048576"},
      {kHeader + "a,8,8,1,1,1,3,3,2147483647,1,1,1\n",
       "net.csv, line 2, column pad_w: 2147483647 is more than 1048576"},
      {kHeader + "a,8,8,1,1,1,3,3,-99999999999,1,1,1\n",
       "net.csv, line 2, column pad_w: -99999999999 is less than 0"},
      {kHeader + "a,1048576,1048576,1,1,1,3,3,1,1,1,1\n",
       "net.csv, line 2: the input has 1.1e+12 elements, more than 1e+12"},
      {kHeader + "a,8,8,1048576,1,1048576,3,3,1,1,1,1\n",
       "net.csv, line 2: the filter has 9.9e+12 elements, more than 1e+12"},
      {kHeader + "a\xff\x1b[31m,8,8,1,1,1,3,3,1,1,1,1\n",
       "net.csv, line 2, column source: \"a\\xff\\x1b[31m\" is not UTF-8 without control "
       "characters"},
      {kHeader + std::string(201, 'a') + ",8,8,1,1,1,3,3,1,1,1,1\n",
       "net.csv, line 2, column source: \"" + std::string(97, 'a') +
           "...\" has 201 bytes, more than 200"},
      {kHeader + "\"a\"\",8,8\n", "net.csv, line 2: a quote is not closed: \"a\"\",8,8"},
      {kHeader + std::string(10001, ','), "net.csv, line 2: it has 10001 bytes, more than 10000"},
      {"\x1b]0;title\a\n", "net.csv, line 1: unknown column \"\\x1b]0;title\\x07\"" + kAllColumns},
      {kHeader + "\na,8,8,1,0,1,3,3,1,1,1,1\n", "net.csv, line 3, column N: 0 is less than 1"},
      {kHeader + "a,8,8,1,1,1,3,3,-1,1,1,1\n", "net.csv, line 2, column pad_w: -1 is less than 0"},
      {kHeader + "a,8,8,1,1,1,3,3,1,1,1,0\n", "net.csv, line 2, column stride_h: 0 is less than 1"},
      {kHeader + "a,8,8,1,,1,3,3,1,1,1,1\n", "net.csv, line 2, column N: is empty"},
      {kHeader + "a,8,8,1,1,1,3,11,1,1,1,1\n",
       "net.csv, line 2, column kernel_h: the kernel reaches over 11 of 10 padded inputs"},
      {kHeader.substr(0, kHeader.size() - 1) + ",groups\na,8,8,4,1,6,3,3,1,1,1,1,4\n",
       "net.csv, line 2, column groups: 4 does not divide C_in and C_out"},
      {kHeader.substr(0, kHeader.size() - 1) + ",data_type\na,8,8,4,1,6,3,3,1,1,1,1,tf32\n",
       "net.csv, line 2, column data_type: \"tf32\" is none of float, half, bfloat16, double"},
  };
  for (const auto& test : kCases) {
    try {
      parse(test.text);
      ADD_FAILURE() << "accepted: " << test.text;
    } catch (const BadInput& error) {
      EXPECT_EQ(error.what(), test.message);
    }
  }
}

TEST(LayerList, ReadsTheListsOfTheRepository) {
  const struct {
    const char* file;
    std::size_t layers;
  } kLists[] = {{"alexnet.csv", 5}, {"deepbench_3x3_5x5_n256.csv", 29}};
  for (const auto& list : kLists) {
    const auto layers = readLayers({std::string(UCUDNN_LAYERS) + "/" + list.file}, 0);
    EXPECT_EQ(layers.size(), list.layers) << list.file;
    for (const Layer& layer : layers) EXPECT_EQ(layer.batch, 256) << list.file;
  }
}

TEST(LayerList, ReadsTheListOfOneSample) {
  const auto layers = readLayers({UCUDNN_LAYERS "/one_sample.csv"}, 0);
  EXPECT_EQ(layers.size(), 40U);
  std::map<std::string, int> ofType;
  int flat = 0;
  for (const Layer& layer : layers) {
    EXPECT_EQ(layer.batch, 1) << layer.name;
    EXPECT_EQ(layer.name.find('#'), std::string::npos) << layer.name;
    EXPECT_LT(layer.mostElements(), 2147483648.0) << layer.name << ": cuDNN's tensors are smaller";
    ++ofType[layer.dataType];
    if (layer.size.size() == 2) ++flat;
  }
  EXPECT_EQ(ofType, (std::map<std::string, int>{{"bfloat16", 22}, {"float", 6}, {"half", 12}}));
  EXPECT_EQ(flat, 16);
  const auto find = [&](const char* name) { return filterLayers(layers, {name}).at(0); };
  EXPECT_EQ(find("pytorch166643").outputSizes(), (Numbers{1, 96, 6, 626, 626}));
  EXPECT_EQ(find("frames-16-1x3x3").outputSizes(), (Numbers{1, 16, 124, 1280, 720}));
  EXPECT_EQ(find("wan-96-480x832-4").outputSizes(), (Numbers{1, 96, 4, 480, 832}));
  EXPECT_EQ(find("qwen-96-1328").outputSizes(), (Numbers{1, 96, 1, 1328, 1328}));
  EXPECT_EQ(find("hunyuan-128-512").outputSizes(), (Numbers{1, 128, 17, 512, 512}));
}

TEST(LayerList, ReplacesTheBatchSize) {
  for (const Layer& layer : readLayers({UCUDNN_LAYERS "/alexnet.csv"}, 32))
    EXPECT_EQ(layer.batch, 32);
}

TEST(LayerList, BoundsListsAndFiles) {
  std::string text = kHeader;
  for (int i = 0; i <= 10000; ++i) text += "a,8,8,1,1,1,3,3,1,1,1,1\n";
  const auto expectRefused = [](auto read, const std::string& part) {
    try {
      read();
      ADD_FAILURE() << "accepted";
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  expectRefused([&] { parse(text); }, "more than 10000");
  const test::TemporaryDirectory directory;
  const std::string file = directory.file("net.csv");
  std::ofstream(file) << text.substr(0, text.size() / 2);
  expectRefused([&] { readLayers({file, file, file}, 0); }, "more than 10000 layers");
  std::ofstream(file) << kHeader << "a,1000,1000,4,1,1,3,3,1,1,1,1\n";
  expectRefused([&] { readLayers({file}, 1 << 20); }, "--batch-size: a: the input has 4.19e+12");
  std::ofstream(file) << std::string((16 << 20) + 1, '#');
  expectRefused([&] { readLayers({file}, 0); }, "it is larger than 16 MiB");
  expectRefused([&] { readLayers({"/dev/zero"}, 0); }, "/dev/zero: it is larger than 16 MiB");
}

TEST(LayerList, FiltersByShellPatterns) {
  const auto all = readLayers({UCUDNN_LAYERS "/alexnet.csv"}, 0);
  EXPECT_EQ(filterLayers(all, {}).size(), 5U);
  const auto some = filterLayers(all, {"conv[12]", "*5"});
  ASSERT_EQ(some.size(), 3U);
  EXPECT_EQ(some[2].name, "conv5");
  EXPECT_THROW(filterLayers(all, {"fc*"}), BadInput);
}

}  // namespace
}  // namespace ucudnn::tool
