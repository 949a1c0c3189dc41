/* The checks' own check: a libucudnn that takes one of cuDNN's names, and exports another. */
int ucudnnCreate(void) {
  return 0;
}
int cudnnConvolutionForward(void) {
  return 0;
}
int helper(void) {
  return 0;
}
