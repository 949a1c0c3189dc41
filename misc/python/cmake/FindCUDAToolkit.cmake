# In place of CMake's own: the headers and the runtime of NVIDIA's Python packages, in the folders UCUDNN_CUDA_WHEEL and
# UCUDNN_CRT_WHEEL, and for cuda_fp16.h of CUDA up to 12.4 UCUDNN_CCCL_WHEEL. They have no nvcc.
file(STRINGS "${UCUDNN_CUDA_WHEEL}/include/cuda_runtime_api.h" version REGEX "#define CUDART_VERSION +[0-9]+")
string(REGEX MATCH "[0-9]+$" version "${version}")
math(EXPR CUDAToolkit_VERSION_MAJOR "${version} / 1000")
math(EXPR CUDAToolkit_VERSION_MINOR "${version} % 1000 / 10")
set(CUDAToolkit_VERSION "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
set(CUDAToolkit_INCLUDE_DIRS "${UCUDNN_CUDA_WHEEL}/include" "${UCUDNN_CRT_WHEEL}/include")
if(UCUDNN_CCCL_WHEEL)
  list(APPEND CUDAToolkit_INCLUDE_DIRS "${UCUDNN_CCCL_WHEEL}/include")
endif()
list(REMOVE_DUPLICATES CUDAToolkit_INCLUDE_DIRS)
set(CUDAToolkit_LIBRARY_DIR "${UCUDNN_CUDA_WHEEL}/lib")
set(CUDAToolkit_LIBRARY_ROOT "${UCUDNN_CUDA_WHEEL}")
add_library(CUDA::cudart SHARED IMPORTED)
set_target_properties(CUDA::cudart PROPERTIES
  IMPORTED_LOCATION "${CUDAToolkit_LIBRARY_DIR}/libcudart.so.${CUDAToolkit_VERSION_MAJOR}"
  INTERFACE_INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS}")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDAToolkit REQUIRED_VARS CUDAToolkit_INCLUDE_DIRS VERSION_VAR CUDAToolkit_VERSION)
