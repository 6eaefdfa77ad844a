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
# tern_link_words(<result> <library>...): how a linker is told of libraries that CMake found, which are files or names of the system's.
function(tern_link_words result)
  set(words)
  foreach(library ${ARGN})
    get_filename_component(folder "${library}" DIRECTORY)
    get_filename_component(name "${library}" NAME)
    string(REGEX REPLACE "^lib(.+)\\.(so|a|dylib|dll\\.a)$" "\\1" name "${name}")
    if(IS_ABSOLUTE "${library}" AND NOT folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
      list(APPEND words "-L${folder}")
    endif()
    list(APPEND words "-l${name}")
  endforeach()
  list(REMOVE_DUPLICATES words)
  list(JOIN words " " words)
  set(${result} "${words}" PARENT_SCOPE)
endfunction()
tern_link_words(TERN_PC_LIBS "${jansson_LIBRARY}" pthread m ${CMAKE_DL_LIBS})
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
  set(openmp ${OpenMP_C_LIB_NAMES})
  list(REMOVE_ITEM openmp pthread)
  tern_link_words(libs "${jansson_LIBRARY}" "${pcre2_LIBRARY}" "${utf8proc_LIBRARY}" m ${openmp})
  tern_pc(tern_models "Pretrained models and tokenizers for tern" "${this}" "${libs}")
endif()

# Examples, to be built where they lie (make -C) or in a copy.
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples PATTERN CMakeLists.txt EXCLUDE)
