# Findpcre2.cmake -- PCRE2's header and library as pcre2::pcre2, with or without its own files for CMake.
find_path(pcre2_INCLUDE_DIR pcre2.h)
find_library(pcre2_LIBRARY pcre2-8)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(pcre2 REASON_FAILURE_MESSAGE "Debian: libpcre2-dev"
  REQUIRED_VARS pcre2_LIBRARY pcre2_INCLUDE_DIR)
if(pcre2_FOUND AND NOT TARGET pcre2::pcre2)
  add_library(pcre2::pcre2 UNKNOWN IMPORTED)
  set_target_properties(pcre2::pcre2 PROPERTIES IMPORTED_LOCATION "${pcre2_LIBRARY}"
    INTERFACE_COMPILE_DEFINITIONS PCRE2_CODE_UNIT_WIDTH=8
    INTERFACE_INCLUDE_DIRECTORIES "${pcre2_INCLUDE_DIR}")
  if(WIN32 AND pcre2_LIBRARY MATCHES "[.]a$" AND NOT pcre2_LIBRARY MATCHES "[.]dll[.]a$") # whose functions are not a DLL's
    set_property(TARGET pcre2::pcre2 APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS PCRE2_STATIC)
  endif()
endif()
mark_as_advanced(pcre2_INCLUDE_DIR pcre2_LIBRARY)
