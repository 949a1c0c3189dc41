// The cost of a body of code, whoever else wants the machine.
#pragma once

#include <chrono>

namespace ucudnn::test {

/// The time that this process has asked to sleep, in all: a busy machine sleeps longer.
std::chrono::nanoseconds waited();

/// The processor's time that this process has taken, and what it has asked to sleep.
std::chrono::nanoseconds spent();

}  // namespace ucudnn::test
