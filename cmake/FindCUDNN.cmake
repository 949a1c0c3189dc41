# Finds cuDNN: target CUDNN::cudnn, CUDNN_VERSION. Hints: CUDNN_ROOT, the CUDA toolkit.
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}
             PATH_SUFFIXES lib lib64)
if(CUDNN_INCLUDE_DIR)
  set(version_header "${CUDNN_INCLUDE_DIR}/cudnn_version.h")
  if(EXISTS "${version_header}")
    file(STRINGS "${version_header}" defines REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+")
    string(REGEX REPLACE "[^0-9;]" "" numbers "${defines}")
    string(REPLACE ";" "." CUDNN_VERSION "${numbers}")
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR
                                  VERSION_VAR CUDNN_VERSION)
if(CUDNN_FOUND AND NOT TARGET CUDNN::cudnn)
  add_library(CUDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(CUDNN::cudnn PROPERTIES IMPORTED_LOCATION "${CUDNN_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${CUDNN_INCLUDE_DIR}"
                        INTERFACE_LINK_LIBRARIES CUDA::cudart)
endif()
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY)
