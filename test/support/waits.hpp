// What a body of code costs, whoever else wants the machine.
#pragma once

#include <chrono>

namespace ucudnn::test {

/// What this process has asked to sleep, in all: a busy machine sleeps longer.
std::chrono::nanoseconds waited();

/// The processor's time that this process has taken, and what it has asked to sleep.
std::chrono::nanoseconds spent();

}  // namespace ucudnn::test
