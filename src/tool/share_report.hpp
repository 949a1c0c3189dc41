// Shares of a mini-batch as a table and as JSON.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "optimizer/share_search.hpp"

namespace ucudnn::tool {

/// A participant's name and workspace limit.
struct NamedDevice {
  std::string name;
  std::size_t limitBytes = 0;
};

/// A line for each device, and the steps side by side.
void writeShares(std::ostream& stream,
                 const std::vector<NamedDevice>& devices,
                 const std::vector<Participant>& participants,
                 const FoundShares& found);

nlohmann::ordered_json toJson(const std::vector<NamedDevice>& devices,
                              const std::vector<Participant>& participants,
                              const FoundShares& found);

}  // namespace ucudnn::tool
