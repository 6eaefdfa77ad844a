# Findutf8proc.cmake -- utf8proc's header and library as utf8proc::utf8proc, with or without its own files for CMake.
find_path(utf8proc_INCLUDE_DIR utf8proc.h)
find_library(utf8proc_LIBRARY utf8proc)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(utf8proc REASON_FAILURE_MESSAGE "Debian: libutf8proc-dev"
  REQUIRED_VARS utf8proc_LIBRARY utf8proc_INCLUDE_DIR)
if(utf8proc_FOUND AND NOT TARGET utf8proc::utf8proc)
  add_library(utf8proc::utf8proc UNKNOWN IMPORTED)
  set_target_properties(utf8proc::utf8proc PROPERTIES IMPORTED_LOCATION "${utf8proc_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${utf8proc_INCLUDE_DIR}")
  if(WIN32 AND utf8proc_LIBRARY MATCHES "[.]a$" AND NOT utf8proc_LIBRARY MATCHES "[.]dll[.]a$") # whose functions are not a DLL's
    set_property(TARGET utf8proc::utf8proc APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS UTF8PROC_STATIC)
  endif()
endif()
mark_as_advanced(utf8proc_INCLUDE_DIR utf8proc_LIBRARY)
