// How much longer than usual a test may take before it counts as hanging.
#pragma once

namespace ucudnn::test {

/// ThreadSanitizer makes the library up to ten times slower, AddressSanitizer three times.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr unsigned kSlowness = 10;
#else
inline constexpr unsigned kSlowness = 1;
#endif

}  // namespace ucudnn::test
