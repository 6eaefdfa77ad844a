# portfile.cmake -- the port of tern for vcpkg: `vcpkg install tern --overlay-ports=packaging/vcpkg`. The sources are the tree that
# it lies in.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    models TERN_MODELS
    tool TERN_TOOL)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${FEATURE_OPTIONS} -DTERN_TESTS=OFF -DTERN_EXAMPLES=OFF -DTERN_MPI=OFF -DTERN_ONNX=OFF -DTERN_OPENMP=OFF
    -DTERN_ONEDNN=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/tern)
vcpkg_fixup_pkgconfig()
if("tool" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES tern AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
# tern builds archives beside the shared libraries.
set(archives "${CURRENT_PACKAGES_DIR}/share/tern/tern-static-targets*.cmake")
foreach(lib IN ITEMS "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/debug/lib")
  list(APPEND archives "${lib}/libtern*.a" "${lib}/pkgconfig/tern*_static.pc")
endforeach()
file(GLOB archives ${archives})
list(FILTER archives EXCLUDE REGEX "\\.dll\\.a$")
if(archives)
  file(REMOVE ${archives})
endif()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
