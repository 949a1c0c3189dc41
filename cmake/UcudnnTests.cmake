# How tests are registered.
include(GoogleTest)

# As gtest_discover_tests, but a busy machine has the time to list the tests: its 5 s do not do (a list that takes 0.1 s
# has taken 11 s), and where it fails, ctest runs nothing at all.
function(ucudnn_discover_tests target)
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 300 ${ARGN})
endfunction()

# The sanitizer's runtime, which must be the first library of a program: what LD_PRELOAD has to begin with. Empty
# without a sanitizer.
function(ucudnn_sanitizer_runtime variable)
  set(runtime "")
  if(UCUDNN_SANITIZE)
    string(SUBSTRING "${UCUDNN_SANITIZE}" 0 1 kind)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${kind}san.so
                    OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  set(${variable} "${runtime}" PARENT_SCOPE)
endfunction()

# Gives TARGET the environment that its tests expect, in the program itself: by hand they run as by ctest. What is
# set already stays.
#   ucudnn_set_environment(TARGET variable=value...)
function(ucudnn_set_environment target)
  if(NOT ARGN)
    return()
  endif()
  list(JOIN ARGN "\", \"" assignments)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}_environment.cpp")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT [==[
#include <cstdlib>
#include <string>

// Before all constructors, which may read it.
__attribute__((constructor(101))) static void setEnvironment() {
  for (const std::string assignment : {"@assignments@"}) {
    const auto place = assignment.find('=');
    ::setenv(assignment.substr(0, place).c_str(), assignment.substr(place + 1).c_str(), 0);
  }
}
]==])
  target_sources(${target} PRIVATE "${source}")
endfunction()

# Registers the tests of TARGET on the simulator, as simulator.* (with NO_PREFIX: under their own names), where it
# is built; with GPU also as gpu.*, where tests that find no GPU skip themselves.
#   ucudnn_discover_device_tests(TARGET [GPU] [NO_PREFIX] [ENVIRONMENT variable=value...] [PROPERTIES ...])
function(ucudnn_discover_device_tests target)
  cmake_parse_arguments(PARSE_ARGV 1 test "GPU;NO_PREFIX" "" "ENVIRONMENT;PROPERTIES")
  ucudnn_set_environment(${target} ${test_ENVIRONMENT})
  if(test_GPU)
    ucudnn_discover_tests(${target} TEST_PREFIX "gpu." DISCOVERY_MODE PRE_TEST PROPERTIES LABELS gpu ${test_PROPERTIES})
  endif()
  if(NOT UCUDNN_BUILD_SIMULATOR)
    return()
  endif()
  set(prefix "simulator.")
  if(test_NO_PREFIX)
    set(prefix "")
  endif()
  add_dependencies(${target} ucudnn_simulated_cudnn ucudnn_simulated_cudart)
  ucudnn_discover_tests(${target} TEST_PREFIX "${prefix}" DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS simulator ${test_PROPERTIES}
               ENVIRONMENT_MODIFICATION "LD_LIBRARY_PATH=path_list_prepend:${UCUDNN_SIMULATOR_DIR}")
endfunction()
