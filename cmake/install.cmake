# install.cmake -- headers, libtern, libtern_names, libtern_report and libtern_models, two .pc of each (tern, tern_static), and a CMake package:
# find_package(tern) gives tern::tern, tern::names, tern::report and tern::models, find_package(tern COMPONENTS static)
# tern::tern_static, tern::names_static and tern::models_static too.
if(SKBUILD) # a Python wheel: the two libraries beside the package's files, found by $ORIGIN
  install(TARGETS tern_shared tern_names_shared LIBRARY DESTINATION . COMPONENT python NAMELINK_SKIP)
  return()
endif()
set(TERN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tern)

install(DIRECTORY include/tern DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES ${TERN_WHERE} ${TERN_CPP_OPS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tern)
set(companions tern_names tern_report)
if(TERN_MODELS)
  list(APPEND companions tern_models)
endif()
list(TRANSFORM companions APPEND _shared OUTPUT_VARIABLE shared)
list(TRANSFORM companions APPEND _static OUTPUT_VARIABLE static)
install(TARGETS tern_shared ${shared} EXPORT tern-targets)
install(TARGETS tern_static ${static} EXPORT tern-static-targets)
foreach(set IN ITEMS tern-targets tern-static-targets)
  install(EXPORT ${set} NAMESPACE tern:: DESTINATION ${TERN_PACKAGE_DIR})
endforeach()

foreach(family IN LISTS TERN_MPI_FAMILIES)
  install(TARGETS tern_mpi_${family} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tern)
endforeach()

if(TERN_ONNX)
  install(TARGETS tern_onnx LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tern)
endif()

configure_package_config_file(cmake/tern-config.cmake.in ${PROJECT_BINARY_DIR}/tern-config.cmake
  INSTALL_DESTINATION ${TERN_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tern-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/Findjansson.cmake cmake/Findpcre2.cmake cmake/Findutf8proc.cmake
  ${PROJECT_BINARY_DIR}/tern-config.cmake ${PROJECT_BINARY_DIR}/tern-config-version.cmake
  DESTINATION ${TERN_PACKAGE_DIR})

# These files find their prefix from where they lie, so that the tree can be moved.
set(TERN_PC_LIBS "-ljansson -lpthread -lm -ldl")
file(RELATIVE_PATH TERN_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TERN_PC_PREFIX "${TERN_PC_PREFIX}")
# tern_pc(<name> <description> <requires> <private>): one template for all.
function(tern_pc name description requires private)
  set(libs -l${name})
  configure_file(cmake/library.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  # The archive itself: -l takes the shared library where both lie, also of `pkg-config --static`.
  set(libs "-l:lib${name}.a ${private}")
  set(private)
  string(REGEX REPLACE "^tern " "tern_static " requires "${requires}")
  set(description "${description}, the archive")
  set(shared ${name})
  string(APPEND name _static)
  configure_file(cmake/library.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${shared}.pc ${PROJECT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
set(this "tern = ${PROJECT_VERSION}")
tern_pc(tern "${PROJECT_DESCRIPTION}" "" "${TERN_PC_LIBS}")
tern_pc(tern_names "Operations of tern by PyTorch's name" "${this}" "")
tern_pc(tern_report "Progress, curves and event files of trainings with tern" "${this}" "-lm")
if(TERN_MODELS)
  set(libs "-ljansson -lpcre2-8 -lutf8proc -lm")
  if(OpenMP_C_FOUND)
    string(APPEND libs " -lgomp")
  endif()
  tern_pc(tern_models "Pretrained models and tokenizers for tern" "${this}" "${libs}")
endif()

# Examples, to be built where they lie (make -C) or in a copy.
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples PATTERN CMakeLists.txt EXCLUDE)
