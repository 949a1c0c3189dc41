/* libstdc++.a of g++ 12 refers to this function of glibc 2.36 in std::random_device, which nothing
   of ours uses: with one of its own a wheel runs with an older glibc. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t arc4random(void);
uint32_t arc4random(void) {
  uint32_t number;
  if (getentropy(&number, sizeof number) != 0) abort();
  return number;
}
