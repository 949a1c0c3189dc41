# The header under every compiler and standard of misc/docs/CLIENTS.md, "At compile time", 3: one test for each pair, which
# compiles the sources of compile/ and every public header alone. A compiler that is absent is a skipped test.
find_program(UCUDNN_TEST_GCC gcc)
find_program(UCUDNN_TEST_GXX g++)
find_program(UCUDNN_TEST_CLANG clang)
find_program(UCUDNN_TEST_CLANGXX clang++)
find_program(UCUDNN_TEST_NVCC nvcc HINTS "${CUDAToolkit_BIN_DIR}")
mark_as_advanced(UCUDNN_TEST_GCC UCUDNN_TEST_GXX UCUDNN_TEST_CLANG UCUDNN_TEST_CLANGXX UCUDNN_TEST_NVCC)

# Examples of clients. nvcc is ten times slower and compiles only these.
set(compile_dir "${CMAKE_CURRENT_SOURCE_DIR}/compile")
set(client_sources
  ${compile_dir}/client_after_cudnn.cpp
  ${compile_dir}/client_before_cudnn.cpp
  ${compile_dir}/client_extern_c.cpp
  ${compile_dir}/client_handle_places.cpp
  ${compile_dir}/client_own_removed.cpp
  ${compile_dir}/client_warn_deprecated.cpp)
set(cxx_sources ${client_sources})
set(c_sources
  ${compile_dir}/client_c.c
  ${compile_dir}/client_c_plain.c)
foreach(header IN ITEMS c_names convolution functions handle layer host_memory overloads diagnosis preamble removed
                        settings small_layers ucudnn version)
  set(alone "${CMAKE_CURRENT_BINARY_DIR}/alone_${header}")
  foreach(language IN ITEMS c cpp)
    # `declared` because ISO C forbids an empty translation unit.
    file(CONFIGURE OUTPUT "${alone}.${language}" CONTENT
      "#include <ucudnn/@header@.h>\n#include <ucudnn/@header@.h>\nextern int declared;\n" @ONLY)
    if(language STREQUAL "c")
      list(APPEND c_sources "${alone}.c")
    else()
      list(APPEND cxx_sources "${alone}.cpp")
    endif()
  endforeach()
endforeach()

set(includes "-I${PROJECT_SOURCE_DIR}/include")
foreach(directory IN LISTS CUDAToolkit_INCLUDE_DIRS CUDNN_INCLUDE_DIR)
  list(APPEND includes -isystem "${directory}")
endforeach()
set(warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fsyntax-only)
# The warnings of stricter clients; the header has casts that C and C++ share.
set(cxx_warnings ${warnings} -Wold-style-cast)
# nvcc's own warnings count too; it emits line directives that -Wpedantic objects to.
set(nvcc_warnings -Xcompiler=-Wall,-Wextra,-Werror -Werror=all-warnings -x=cu -c)

function(ucudnn_add_compile_test name standard compiler)
  set(test header.compile.${name}.${standard})
  if(compiler)
    set(directory "${CMAKE_CURRENT_BINARY_DIR}/${name}.${standard}") # nvcc leaves its objects there
    file(MAKE_DIRECTORY "${directory}")
    add_test(NAME ${test} COMMAND ${compiler} -std=${standard} ${ARGN} ${includes}
             WORKING_DIRECTORY "${directory}")
  else()
    add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -E echo "skipped: there is no ${name} here")
    set_tests_properties(${test} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: ")
  endif()
  set_tests_properties(${test} PROPERTIES LABELS unit)
endfunction()

foreach(standard IN ITEMS c99 c11)
  ucudnn_add_compile_test(gcc ${standard} "${UCUDNN_TEST_GCC}" ${warnings} ${c_sources})
  ucudnn_add_compile_test(clang ${standard} "${UCUDNN_TEST_CLANG}" ${warnings} ${c_sources})
endforeach()
foreach(standard IN ITEMS c++11 c++14 c++17 c++20)
  ucudnn_add_compile_test(g++ ${standard} "${UCUDNN_TEST_GXX}" ${cxx_warnings} ${cxx_sources})
  ucudnn_add_compile_test(clang++ ${standard} "${UCUDNN_TEST_CLANGXX}" ${cxx_warnings} ${cxx_sources})
  ucudnn_add_compile_test(nvcc ${standard} "${UCUDNN_TEST_NVCC}" ${nvcc_warnings} ${client_sources})
endforeach()

# A header that nobody listed above is a header that nobody compiles.
add_test(NAME header.compile.all-are-listed COMMAND ${CMAKE_COMMAND}
  "-DDIRECTORY=${PROJECT_SOURCE_DIR}/include/ucudnn" "-DLISTED=${cxx_sources}"
  -P "${CMAKE_CURRENT_SOURCE_DIR}/all_headers_listed.cmake")
set_tests_properties(header.compile.all-are-listed PROPERTIES LABELS unit)
