# UCUDNN_HEADER_VERSION, for project(): the version is written in <ucudnn/version.h> and nowhere else.
set(version_header "${CMAKE_CURRENT_LIST_DIR}/../include/ucudnn/version.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${version_header}")
file(STRINGS "${version_header}" defines REGEX "#define UCUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+$")
string(REGEX REPLACE "[^0-9;]" "" numbers "${defines}")
string(REPLACE ";" "." UCUDNN_HEADER_VERSION "${numbers}")
if(NOT UCUDNN_HEADER_VERSION MATCHES "^[0-9]+[.][0-9]+[.][0-9]+$")
  message(FATAL_ERROR "${version_header} has no version: '${UCUDNN_HEADER_VERSION}'")
endif()
