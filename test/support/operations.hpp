// The operations that tests go through.
#pragma once

#include "problem/problem.hpp"

namespace ucudnn {

inline constexpr Operation kOperations[] = {
    Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter};

}  // namespace ucudnn
