# Install rules and package files: `find_package(ucudnn)` (target ucudnn::ucudnn), pkg-config, -lucudnn.
include(CMakePackageConfigHelpers)

set(UCUDNN_INSTALL_CMAKEDIR "${CMAKE_INSTALL_LIBDIR}/cmake/ucudnn")
set(UCUDNN_INSTALL_PKGCONFIGDIR "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/ucudnn" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h")

if(TARGET ucudnn)
  # Where cuDNN and the CUDA runtime were found is kept as a RUNPATH, for the linker as much as for the loader:
  # `-lucudnn` alone must resolve them. LD_LIBRARY_PATH still goes first, as the simulator needs.
  # The build tree has the same: one that CMake replaces later ends in a colon, and the empty element behind it is
  # the current folder.
  set_target_properties(ucudnn PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS ucudnn EXPORT ucudnnTargets
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
          INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT ucudnnTargets NAMESPACE ucudnn:: DESTINATION "${UCUDNN_INSTALL_CMAKEDIR}")

  configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/misc/package/ucudnnConfig.cmake.in" "${PROJECT_BINARY_DIR}/ucudnnConfig.cmake"
    INSTALL_DESTINATION "${UCUDNN_INSTALL_CMAKEDIR}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR
    NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/ucudnnConfigVersion.cmake"
                                   COMPATIBILITY ${UCUDNN_COMPATIBILITY})
  install(FILES "${PROJECT_BINARY_DIR}/ucudnnConfig.cmake" "${PROJECT_BINARY_DIR}/ucudnnConfigVersion.cmake"
                "${PROJECT_SOURCE_DIR}/cmake/FindCUDNN.cmake"
          DESTINATION "${UCUDNN_INSTALL_CMAKEDIR}")

  # The prefix is written relative to the .pc file, so that an installed tree can be moved.
  file(RELATIVE_PATH UCUDNN_PC_PREFIX "/prefix/${UCUDNN_INSTALL_PKGCONFIGDIR}" "/prefix")
  string(REGEX REPLACE "/$" "" UCUDNN_PC_PREFIX "${UCUDNN_PC_PREFIX}")
  get_filename_component(UCUDNN_PC_CUDNN_LIBDIR "${CUDNN_LIBRARY}" DIRECTORY)
  list(GET CUDAToolkit_INCLUDE_DIRS 0 UCUDNN_PC_CUDA_INCLUDEDIR)
  configure_file("${PROJECT_SOURCE_DIR}/misc/package/ucudnn.pc.in" "${PROJECT_BINARY_DIR}/ucudnn.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/ucudnn.pc" DESTINATION "${UCUDNN_INSTALL_PKGCONFIGDIR}")
endif()

if(TARGET ucudnn_preload)
  # Nobody links it: no header, no package names it.
  install(TARGETS ucudnn_preload LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

if(TARGET ucudnn_tool)
  file(RELATIVE_PATH bindir_to_libdir "/prefix/${CMAKE_INSTALL_BINDIR}" "/prefix/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(ucudnn_commands PROPERTIES INSTALL_RPATH "$ORIGIN/${bindir_to_libdir}"
                                                   INSTALL_RPATH_USE_LINK_PATH ON BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS ucudnn_tool ucudnn_commands ucudnn_database RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# Measurements that `ucudnn run` begins with (misc/docs/DATABASE.md); where libucudnn.so looks in the build tree, too.
set(measurements "${PROJECT_SOURCE_DIR}/misc/package/measurements.db")
if(TARGET ucudnn AND UCUDNN_USE_SQLITE AND EXISTS "${measurements}")
  configure_file("${measurements}" "${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_DATADIR}/ucudnn/measurements.db" COPYONLY)
  install(FILES "${measurements}" DESTINATION "${CMAKE_INSTALL_DATADIR}/ucudnn")
endif()

# In the folders that they have here, so that links between them hold.
foreach(folder IN ITEMS examples layers)
  if(EXISTS "${PROJECT_SOURCE_DIR}/misc/${folder}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/misc/${folder}" DESTINATION "${CMAKE_INSTALL_DOCDIR}/misc")
  endif()
endforeach()
set(documents LICENSE README.md misc/python/NOTICES.txt)
foreach(name IN ITEMS ARCHITECTURE CHANGELOG CLIENTS COMPATIBILITY CONTRIBUTING DATABASE RESULTS SECURITY SETTINGS
             SIMULATOR TOOL)
  list(APPEND documents misc/docs/${name}.md)
endforeach()
foreach(name IN ITEMS split.svg programs.svg alexnet_h200.png)
  list(APPEND documents misc/figures/${name})
endforeach()
foreach(document IN LISTS documents)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${document}")
    get_filename_component(folder "${document}" DIRECTORY)
    install(FILES "${PROJECT_SOURCE_DIR}/${document}" DESTINATION "${CMAKE_INSTALL_DOCDIR}/${folder}")
  endif()
endforeach()
