/* A CUDA runtime that nobody is built for. */
int cudaRuntimeGetVersion(int* version) {
  *version = 11000;
  return 0;
}
