# Installs BUILD and moves the tree to PREFIX: what works there depends on no path of the installation.
file(REMOVE_RECURSE "${PREFIX}" "${PREFIX}-first")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}-first"
                COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
file(RENAME "${PREFIX}-first" "${PREFIX}")
file(GLOB_RECURSE files "${PREFIX}/*.cmake" "${PREFIX}/*.pc")
foreach(file IN LISTS files)
  file(STRINGS "${file}" leaks REGEX "${PREFIX}-first")
  if(leaks)
    message(SEND_ERROR "${file} names the place where it was installed: ${leaks}")
  endif()
endforeach()
