# Flags and the two kinds of target that the tree is made of.

# What every target of ours is compiled with.
add_library(ucudnn_flags INTERFACE)
target_compile_features(ucudnn_flags INTERFACE cxx_std_17)
target_compile_options(ucudnn_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion>
  # Several sources may be compiled as one: names of one source then shadow names of another, and share its file.
  $<$<COMPILE_LANGUAGE:CXX>:$<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:$<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-subobject-linkage>>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-sign-conversion>  # as g++: no part of -Wconversion
  $<$<BOOL:${UCUDNN_WERROR}>:-Werror>)
target_link_options(ucudnn_flags INTERFACE -Wl,--as-needed -Wl,--enable-new-dtags
  -gz)  # compresses debug information: else it is more than half of a build folder
# What makes a mistake of ours harder to exploit (misc/docs/SECURITY.md); checked on the installed files.
target_compile_options(ucudnn_flags INTERFACE -fstack-protector-strong)
target_link_options(ucudnn_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
if(NOT UCUDNN_SANITIZE)  # They check more, and miss what the fortified functions do.
  # glibc wants optimization for it. Distributions may have set another level.
  target_compile_options(ucudnn_flags INTERFACE "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()
if(UCUDNN_SANITIZE)
  list(JOIN UCUDNN_SANITIZE "," sanitizers)
  target_compile_options(ucudnn_flags INTERFACE -fsanitize=${sanitizers} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(ucudnn_flags INTERFACE -fsanitize=${sanitizers})
  # Under AddressSanitizer, g++ 12 takes members of std::regex for uninitialized.
  target_compile_options(ucudnn_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
endif()

set(UCUDNN_SIMULATOR_DIR "${PROJECT_BINARY_DIR}/simulator")

# A room (misc/docs/ARCHITECTURE.md): a static library ucudnn_NAME, position
# independent and hidden, so that libucudnn.so exports nothing of it and the unit tests can link it.
#   ucudnn_add_room(NAME SOURCES file... [LINK target...] [PRIVATE_LINK target...])
function(ucudnn_add_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "SOURCES;LINK;PRIVATE_LINK")
  add_library(ucudnn_${name} STATIC ${room_SOURCES})
  target_include_directories(ucudnn_${name} PUBLIC "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(ucudnn_${name} PUBLIC ucudnn_flags ${room_LINK} PRIVATE ${room_PRIVATE_LINK})
  set_target_properties(ucudnn_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# Device code of a room: the fatbin of the .cu file is compiled in as the array `symbol`. nvcc makes it for the
# architectures of CUDA's own libraries, or it is the one that misc/scripts/update_device_code.sh has kept.
function(ucudnn_add_device_code name file symbol)
  cmake_path(GET file STEM stem)
  set(fatbin "${PROJECT_SOURCE_DIR}/misc/package/${stem}.fatbin")
  if(UCUDNN_BUILD_DEVICE_CODE)
    set(fatbin "${CMAKE_CURRENT_BINARY_DIR}/${stem}.fatbin")
    add_custom_command(OUTPUT "${fatbin}"
      COMMAND "${CUDAToolkit_NVCC_EXECUTABLE}" -fatbin -arch=all-major -Xfatbin -compress-all -std=c++17
              "-I${PROJECT_SOURCE_DIR}/src" -MD -MF "${fatbin}.d" -MT "${fatbin}"  # else it is made anew at each build
              -o "${fatbin}" "${CMAKE_CURRENT_SOURCE_DIR}/${file}"
      DEPENDS "${file}"
      DEPFILE "${fatbin}.d"
      VERBATIM)
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${stem}.c")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/device_code.c.in" "${source}" @ONLY)
  set_source_files_properties("${source}" PROPERTIES OBJECT_DEPENDS "${fatbin}")
  target_sources(ucudnn_${name} PRIVATE "${source}")
endfunction()
