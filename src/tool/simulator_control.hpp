// The simulator, where the tool runs on it: how much of a convolution it computes.
#pragma once

#include <string>

namespace ucudnn::tool {

enum class Arithmetic { kFull, kSampled, kOff };  // as the simulator's: src/simulator/runtime.hpp

const char* toText(Arithmetic arithmetic);

/// Whether the loader took the simulated CUDA runtime (misc/with-simulator).
bool onSimulator();

/// The recorded profile that its times come from (UCUDNN_SIMULATOR_PROFILE); empty: its model.
std::string simulatorProfile();

/// Has no effect on a GPU.
void setArithmetic(Arithmetic arithmetic);

/// The meaning of --arithmetic auto for a convolution with so many multiply-adds, whose largest
/// tensor has so many elements. It is full if a single core computes it at once, off if even
/// reading the tensors takes long, else sampled.
Arithmetic automaticArithmetic(double multiplyAdds, double elements);

}  // namespace ucudnn::tool
