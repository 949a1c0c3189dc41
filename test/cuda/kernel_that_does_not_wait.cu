// For check_kernels_wait.sh; compiled by nobody.
__global__ void one(const int* from) {
  waitForInputs();
  use(from);
}
__global__ void other(const int* from) {
  use(from);
  waitForInputs();
}
