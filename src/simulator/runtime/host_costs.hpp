// The host's virtual time for calls: UCUDNN_SIMULATOR_MEASURING_COST.
#pragma once

#include <cstddef>
#include <string_view>

namespace ucudnn::simulator {

/// The cost of a call of the function; every simulated function comes by here.
void hostCalls(std::string_view function);

/// Adds the part of an allocation's cost that grows with its size.
void hostMaps(std::size_t bytes);

}  // namespace ucudnn::simulator
