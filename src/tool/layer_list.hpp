// Layer lists: CSV files with one convolution in a row, read by their header.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace ucudnn::tool {

/// A convolution with two or three spatial dimensions, in cuDNN's order: (depth,) height, width.
struct Layer {
  std::string name;  ///< column `source`; "#2", "#3", ... is added where it is not the first
  int batch = 0;
  int inputChannels = 0;
  int outputChannels = 0;
  int groups = 1;
  std::string dataType;  ///< as --data-type names it; empty: the command's
  std::vector<int> size, kernel, pad, stride, dilation;  ///< one number for each spatial dimension

  std::vector<int> inputSizes() const;   ///< N, C, spatial
  std::vector<int> filterSizes() const;  ///< K, C / groups, spatial
  std::vector<int> outputSizes() const;  ///< N, K, spatial
  double multiplyAdds() const;
  double mostElements() const;  ///< of the largest of the three tensors
  std::string shape() const;    ///< "256x64x27x27 k192 5x5 pad 2x2 stride 1x1", its own data type
};

/// Reads one list. `file` is what messages call it. Columns may stand in any order:
///   source,W,H,C_in,N,C_out,kernel_w,kernel_h,pad_w,pad_h,stride_w,stride_h
/// and, optional: dilation_w, dilation_h, groups, data_type (that of the layer whatever the command
/// says; empty cells: the command's); for 3-D convolutions also D, kernel_d, pad_d,
/// stride_d, dilation_d. A byte-order mark, CRLF, quotes, empty lines and lines that begin with #
/// are fine. No number is above 2^20, no tensor has more than 1e12 elements, no list more than
/// 10000 layers. Throws BadInput: "FILE, line 3, column C_in: ...".
std::vector<Layer> parseLayers(std::istream& stream, const std::string& file);

/// The lists one after another; batchSize > 0 replaces every N. Throws BadInput.
std::vector<Layer> readLayers(const std::vector<std::string>& files, int batchSize);

/// The layers whose name matches at least one of the patterns, as a shell matches file names; all
/// layers if there are no patterns. Throws BadInput if none is left.
std::vector<Layer> filterLayers(std::vector<Layer> layers,
                                const std::vector<std::string>& patterns);

}  // namespace ucudnn::tool
