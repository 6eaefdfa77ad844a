# library.cmake -- the library itself: objects once, then a shared and a static library of them.

# What every target of the project is compiled with: tern_common; all but kernels: tern_flags.
add_library(tern_common INTERFACE)
target_compile_options(tern_common INTERFACE
  -Wall -Wextra -ffp-contract=off $<$<BOOL:${TERN_WERROR}>:-Werror>)
if(TERN_SANITIZE)
  target_compile_options(tern_common INTERFACE -fsanitize=${TERN_SANITIZE} -fno-omit-frame-pointer -g
                         -fno-sanitize-recover=all)
  target_link_options(tern_common INTERFACE -fsanitize=${TERN_SANITIZE})
endif()
add_library(tern_flags INTERFACE)
target_compile_options(tern_flags INTERFACE
  -Wpedantic -Wshadow -Wconversion $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes -Wstrict-prototypes>)
target_link_libraries(tern_flags INTERFACE tern_common)

# The kernels for the host, once per instruction set; fewer of them build faster.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TERN_CPU_ISAS v2 v3 v4 CACHE STRING "Levels of x86-64 that the cpu device is compiled for")
else()
  set(TERN_CPU_ISAS any CACHE STRING "Instruction sets that the cpu device is compiled for")
endif()
list(TRANSFORM TERN_CPU_ISAS PREPEND TERN_ISA_ OUTPUT_VARIABLE TERN_ISA_DEFINITIONS)
set(TERN_HOST_OBJECTS)
function(tern_host_object name isa source)
  add_library(${name} OBJECT ${source})
  target_include_directories(${name} PRIVATE cl_kernels)
  target_compile_definitions(${name} PRIVATE TERN_ISA=${isa})
  target_compile_options(${name} PRIVATE
    $<$<NOT:$<STREQUAL:${isa},any>>:-march=x86-64-${isa}>)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  target_link_libraries(${name} PRIVATE tern_common)
  set(TERN_HOST_OBJECTS ${TERN_HOST_OBJECTS} $<TARGET_OBJECTS:${name}> PARENT_SCOPE)
endfunction()
# The lowest one has every element type, the highest of several only f32 and the halves.
list(LENGTH TERN_CPU_ISAS TERN_LEVELS)
set(TERN_LEVEL 0)
set_source_files_properties(src/device/cpu/product_kernels.c # after the target's -ffp-contract=off
                            PROPERTIES COMPILE_OPTIONS -ffp-contract=fast)
foreach(isa IN LISTS TERN_CPU_ISAS)
  math(EXPR TERN_LEVEL "${TERN_LEVEL} + 1")
  if(TERN_LEVEL EQUAL 1)
    set(TERN_TYPES 3)
  elseif(TERN_LEVEL LESS TERN_LEVELS OR TERN_LEVELS EQUAL 2)
    set(TERN_TYPES 2)
  else()
    set(TERN_TYPES 1)
  endif()
  set(families ${TERN_KERNEL_FAMILIES})
  if(TERN_LEVEL GREATER 1)
    list(REMOVE_ITEM families ${TERN_KERNEL_FAMILIES_ONCE})
  endif()
  list(TRANSFORM families REPLACE "(.+)" "X(\\1)" OUTPUT_VARIABLE TERN_FAMILY_ROWS)
  list(JOIN TERN_FAMILY_ROWS " " TERN_FAMILY_ROWS)
  string(APPEND TERN_FAMILY_ROWS " X(product)")
  tern_host_object(tern_host_table_${isa} ${isa} src/device/cpu/host_table.c)
  target_compile_definitions(tern_host_table_${isa} PRIVATE "TERN_FAMILIES=${TERN_FAMILY_ROWS}")
  # Sums of products round once a step: no other device has to agree with them to the bit.
  tern_host_object(tern_host_product_${isa} ${isa} src/device/cpu/product_kernels.c)
  target_compile_options(tern_host_product_${isa} PRIVATE
    -O3 -fopenmp-simd -fno-math-errno -fno-trapping-math -Wno-maybe-uninitialized)
  foreach(family IN LISTS families)
    set(object tern_host_${family}_${isa})
    tern_host_object(${object} ${isa} src/device/cpu/host_kernels.c)
    target_compile_definitions(${object} PRIVATE
      TERN_FAMILY="${family}.cl" TERN_FAMILY_NAME=${family} TERN_TYPES=${TERN_TYPES})
    # Rows are written for every type at once: not each of them uses every parameter.
    target_compile_options(${object} PRIVATE
      -O2 --param=vect-epilogues-nomask=0 # half the size of -O3, as fast
      -fwrapv -fopenmp-simd -fno-math-errno -fno-trapping-math -ftrack-macro-expansion=0
      -Wno-unused-parameter -Wno-unused-variable -Wno-unused-function -Wno-type-limits
      -Wno-bool-operation -Wno-int-in-bool-context -Wno-tautological-compare)
  endforeach()
endforeach()

# Their text, for devices that compile it at run time.
foreach(family IN LISTS TERN_KERNEL_FAMILIES)
  list(APPEND TERN_EMBEDDED_FILES ${family}.cl)
endforeach()
list(TRANSFORM TERN_EMBEDDED_FILES PREPEND ${PROJECT_SOURCE_DIR}/cl_kernels/ OUTPUT_VARIABLE TERN_EMBEDDED)
list(JOIN TERN_EMBEDDED "," TERN_EMBEDDED_INPUTS)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/embedded.c
  COMMAND ${CMAKE_COMMAND} -DINPUTS=${TERN_EMBEDDED_INPUTS} -DOUTPUT=${PROJECT_BINARY_DIR}/embedded.c
          -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${TERN_EMBEDDED} cmake/embed.cmake VERBATIM)

add_library(tern_objects OBJECT ${TERN_SOURCES} ${PROJECT_BINARY_DIR}/embedded.c)
target_include_directories(tern_objects PUBLIC
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/cl_kernels)
target_compile_definitions(tern_objects PRIVATE ${TERN_ISA_DEFINITIONS}
  $<$<BOOL:${TERN_OPENCL}>:TERN_WITH_OPENCL> $<$<BOOL:${onednn_FOUND}>:TERN_WITH_ONEDNN>)
if(TERN_OPENCL)
  target_include_directories(tern_objects PRIVATE ${TERN_OPENCL_INCLUDE})
endif()
set_target_properties(tern_objects PROPERTIES POSITION_INDEPENDENT_CODE ON
                      C_VISIBILITY_PRESET hidden)
target_link_libraries(tern_objects PRIVATE tern_flags Threads::Threads
  $<$<BOOL:${OpenMP_C_FOUND}>:OpenMP::OpenMP_C> $<$<BOOL:${onednn_FOUND}>:onednn::onednn>)

foreach(kind IN ITEMS SHARED STATIC)
  string(TOLOWER ${kind} suffix)
  string(REPLACE tern_shared tern name_of_export tern_${suffix})
  add_library(tern_${suffix} ${kind} $<TARGET_OBJECTS:tern_objects> ${TERN_HOST_OBJECTS})
  set_target_properties(tern_${suffix} PROPERTIES OUTPUT_NAME tern EXPORT_NAME ${name_of_export}
    VERSION ${PROJECT_VERSION} SOVERSION 0)
  target_include_directories(tern_${suffix} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(tern_${suffix} PRIVATE $<BUILD_INTERFACE:tern_flags> Threads::Threads m
    ${CMAKE_DL_LIBS} $<$<BOOL:${OpenMP_C_FOUND}>:OpenMP::OpenMP_C>
    $<$<BOOL:${onednn_FOUND}>:onednn::onednn>)
endforeach()
target_link_options(tern_shared PRIVATE
  "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map")
set_property(TARGET tern_shared APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
add_library(tern::tern ALIAS tern_shared)
