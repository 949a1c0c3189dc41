// What calls take of the host's virtual time: UCUDNN_SIMULATOR_MEASURING_COST.
#pragma once

#include <cstddef>
#include <string_view>

namespace ucudnn::simulator {

/// The cost of a call of the function; every simulated function comes by here.
void hostCalls(std::string_view function);

/// What an allocation costs more the larger it is.
void hostMaps(std::size_t bytes);

}  // namespace ucudnn::simulator
