/* The checks' own check: a libucudnn that takes one of cuDNN's names, and exports another. */
#include <stdlib.h>

int ucudnnCreate(void) {
  return 0;
}
int cudnnConvolutionForward(void) {
  return 0;
}
int helper(void) {
  return 0;
}
#if __GLIBC_PREREQ(2, 36)
unsigned needsNewGlibc(void) {
  return arc4random();
}
#endif
