# What a builder can choose. The names and defaults of the published μ-cuDNN's options are kept; the
# UCUDNN_DEBUG_* ones only set the default of the run-time switch that each names.
option(UCUDNN_DIVIDE "Divide a total workspace among convolutions (WD, the policy divide)" ON)
option(UCUDNN_USE_GLPK "Solve that with GLPK where it is found" ON)
option(UCUDNN_USE_SQLITE "Keep measurements in an SQLite database" ON)
option(UCUDNN_TEST "Build the tests and the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(UCUDNN_BUILD_TOOL "Build the command ucudnn" ON)
option(UCUDNN_BUILD_SIMULATOR "Build the simulator" ${UCUDNN_TEST})
option(UCUDNN_DEBUG_GLPK_PRINT "Write GLPK's problem and solution to files" OFF)
option(UCUDNN_DEBUG_OUTPUT "Log at level debug by default (UCUDNN_LOG_LEVEL)" OFF)
option(UCUDNN_DEBUG_OUTPUT_ENV "Log every setting read from the environment, at level info" OFF)
option(UCUDNN_DEBUG_EQUIVALENCE_TEST "Run the equivalence test by default (UCUDNN_EQUIVALENCE_TEST)" OFF)
option(UCUDNN_WERROR "Make warnings errors" OFF)
set(UCUDNN_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, address;undefined, or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

include(GNUInstallDirs)
include(CheckPIESupported)
check_pie_supported()  # so that POSITION_INDEPENDENT_CODE makes a program one, whatever the compiler's default
# As they lie when installed, so that a RUNPATH from one to the other is good for both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)  # for clang-tidy
