# Findjansson.cmake -- jansson's header and library as jansson::jansson. Debian's package has no file for CMake.
find_path(jansson_INCLUDE_DIR jansson.h)
find_library(jansson_LIBRARY jansson)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(jansson REASON_FAILURE_MESSAGE "Debian: libjansson-dev"
  REQUIRED_VARS jansson_LIBRARY jansson_INCLUDE_DIR)
if(jansson_FOUND AND NOT TARGET jansson::jansson)
  add_library(jansson::jansson UNKNOWN IMPORTED)
  set_target_properties(jansson::jansson PROPERTIES IMPORTED_LOCATION "${jansson_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${jansson_INCLUDE_DIR}")
endif()
mark_as_advanced(jansson_INCLUDE_DIR jansson_LIBRARY)
