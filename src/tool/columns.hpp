// Tables and texts for people, no wider than a terminal.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "support/columns.hpp"

namespace ucudnn::tool {

/// "1.234" and "12.3 %", of a part; "-": not known.
std::string milliseconds(const std::optional<double>& value);
std::string percent(const std::optional<double>& value);

/// Lines of cells, made printable, under a header, columns as wide as their widest cell. The first
/// `leftColumns` and the last are left-aligned.
void writeColumns(std::ostream& stream,
                  const std::vector<std::vector<std::string>>& cells,
                  std::size_t leftColumns);

/// The width left for one more column if lines are to fit kMostColumns; at least a few letters.
std::size_t columnsLeft(const std::vector<std::vector<std::string>>& cells);

/// The text, or as much of its begin and end as fits, with "..." between. REQUIRES: columns > 3.
std::string shortened(const std::string& text, std::size_t columns);

}  // namespace ucudnn::tool
