// How a convolution is cut along its filters. A kernel whose workspace holds a copy of the filter
// tensor needs that much at any batch size; a tile has only its share.
#pragma once

#include <vector>

#include "problem/part.hpp"

namespace ucudnn {

/// Equal tiles, as aligned as calls of engines are. If there are groups, tiles are of whole groups;
/// else they are of filters, and those of backward data add up. cuDNN takes no filter tensor with
/// gaps, so channels stay whole. Empty: there are none. Sums are not rounded to half or bfloat16
/// between tiles; bias and z are not cut.
std::vector<Part> cutInTiles(const Problem& problem, int tiles);

}  // namespace ucudnn
