# Findonednn.cmake -- oneDNN's header and library as onednn::onednn. Its own package file is not used:
# where its GPU side is built for OpenCL (Debian's is) that file stops the configuration of whoever lacks
# the OpenCL development files, which tern, loading libOpenCL at run time, does not need.
find_path(onednn_INCLUDE_DIR oneapi/dnnl/dnnl.h)
find_library(onednn_LIBRARY dnnl)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(onednn DEFAULT_MSG onednn_LIBRARY onednn_INCLUDE_DIR)
if(onednn_FOUND AND NOT TARGET onednn::onednn)
  add_library(onednn::onednn UNKNOWN IMPORTED)
  set_target_properties(onednn::onednn PROPERTIES IMPORTED_LOCATION "${onednn_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${onednn_INCLUDE_DIR}")
endif()
mark_as_advanced(onednn_INCLUDE_DIR onednn_LIBRARY)
