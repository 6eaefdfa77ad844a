# library.cmake -- the library itself: objects once, then a shared and a static library of them.

# What every target of the project is compiled with: tern_common; all but kernels: tern_flags.
add_library(tern_common INTERFACE)
target_compile_options(tern_common INTERFACE
  -Wall -Wextra -ffp-contract=off $<$<BOOL:${TERN_WERROR}>:-Werror>)
if(TERN_SANITIZE)
  target_compile_options(tern_common INTERFACE -fsanitize=${TERN_SANITIZE} -fno-omit-frame-pointer -g1
                         -fno-sanitize-recover=all)
  target_link_options(tern_common INTERFACE -fsanitize=${TERN_SANITIZE})
  # LeakSanitizer crashes over thread-local variables of OpenMP's threads in libraries that dlopen brings; linked, oneDNN is
  # there from the start, and dlopen finds it.
  find_library(TERN_SANITIZED_DNNL NAMES libdnnl.so.2 dnnl)
  if(TERN_ONEDNN AND TERN_SANITIZED_DNNL)
    target_link_libraries(tern_common INTERFACE -Wl,--no-as-needed ${TERN_SANITIZED_DNNL} -Wl,--as-needed)
  endif()
endif()
if(WIN32)
  # printf as C11 has it, files above 2 GiB, and nothing of what C11 calls otherwise.
  target_compile_definitions(tern_common INTERFACE __USE_MINGW_ANSI_STDIO=1 _FILE_OFFSET_BITS=64 _CRT_SECURE_NO_WARNINGS
                             _CRT_NONSTDC_NO_WARNINGS)
  # isnan and its like of mingw-w64 have a branch that converts to float.
  target_compile_options(tern_common INTERFACE -Wno-float-conversion)
  if(CMAKE_C_COMPILER_ID STREQUAL GNU) # which aligns no stack to 32 bytes there
    target_compile_options(tern_common INTERFACE -Wa,-muse-unaligned-vector-move)
  endif()
endif()
add_library(tern_flags INTERFACE)
target_compile_options(tern_flags INTERFACE
  -Wpedantic -Wshadow -Wconversion $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes -Wstrict-prototypes>)
target_link_libraries(tern_flags INTERFACE tern_common)

# For size: gcc's and clang's -Oz is a fiftieth less than -Os, and so is a register that is not saved around calls.
include(CheckCCompilerFlag)
set(TERN_FOR_SIZE -Os)
foreach(flag IN ITEMS Oz fno-caller-saves)
  check_c_compiler_flag(-${flag} TERN_COMPILER_HAS_${flag})
  if(TERN_COMPILER_HAS_${flag})
    list(APPEND TERN_FOR_SIZE -${flag}) # the last -O counts
  endif()
endforeach()

# The kernels for the host, once per instruction set; fewer of them build faster.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TERN_CPU_ISAS v2 v3 v4 CACHE STRING "Levels of x86-64 that the cpu device is compiled for")
else()
  set(TERN_CPU_ISAS any CACHE STRING "Instruction sets that the cpu device is compiled for")
endif()
list(TRANSFORM TERN_CPU_ISAS PREPEND TERN_ISA_ OUTPUT_VARIABLE TERN_ISA_DEFINITIONS)
# gcc 12 moves pairs of int32 by way of MMX for x86-64-v2, and leaves the caller no x87 registers.
set(TERN_HOST_MACHINE)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TERN_HOST_MACHINE -mno-mmx)
endif()
# What reads TERN_FAMILY once for each row of dtypes.def for which TERN_HAS(type) is 1.
set(dtypes ${PROJECT_SOURCE_DIR}/cl_kernels/dtypes.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${dtypes})
file(STRINGS ${dtypes} dtypes REGEX "^#define DTYPE_[a-z0-9]+ +\\(")
set(every "")
foreach(row IN LISTS dtypes)
  string(REGEX REPLACE "^#define DTYPE_([a-z0-9]+) .*" "\\1" type "${row}")
  string(APPEND every
         "#if TERN_HAS(${type})\n#define TERN_T ${type}\n#include TERN_FAMILY\n#undef TERN_T\n#endif\n")
endforeach()
set(TERN_KERNEL_INCLUDE ${PROJECT_SOURCE_DIR}/cl_kernels ${PROJECT_BINARY_DIR}/kernels)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/kernels/every_dtype.h CONTENT "${every}" @ONLY)

set(TERN_HOST_OBJECTS)
function(tern_host_object name isa source)
  add_library(${name} OBJECT ${source})
  target_include_directories(${name} PRIVATE ${TERN_KERNEL_INCLUDE} src)
  target_compile_definitions(${name} PRIVATE TERN_ISA=${isa} TERN_LOWEST=$<STREQUAL:${isa},${lowest}>)
  target_compile_options(${name} PRIVATE
    $<$<NOT:$<STREQUAL:${isa},any>>:-march=x86-64-${isa}> ${TERN_HOST_MACHINE}
    -fno-asynchronous-unwind-tables -fno-unwind-tables)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  target_link_libraries(${name} PRIVATE tern_common)
  set(TERN_HOST_OBJECTS ${TERN_HOST_OBJECTS} $<TARGET_OBJECTS:${name}> PARENT_SCOPE)
endfunction()
# Rows and kernels are written for every type at once: not each of them uses every parameter.
set(TERN_HOST_OPTIONS
  -fwrapv -fno-math-errno -fno-trapping-math $<$<C_COMPILER_ID:GNU>:-ftrack-macro-expansion=0>
  -Wno-unused-parameter -Wno-unused-variable -Wno-unused-function -Wno-type-limits
  -Wno-bool-operation -Wno-int-in-bool-context -Wno-tautological-compare)
set(TERN_HOST_FAST -O2 -fopenmp-simd $<$<C_COMPILER_ID:GNU>:--param=vect-epilogues-nomask=0>) # half of -O3, as fast
# Padding in front of loops and functions is a hundredth of the library.
list(APPEND TERN_HOST_FAST $<$<C_COMPILER_ID:GNU>:-fno-align-loops> $<$<C_COMPILER_ID:GNU>:-fno-align-jumps>
     $<$<C_COMPILER_ID:GNU>:-fno-align-functions>)
set(TERN_HOST_SMALL ${TERN_FOR_SIZE} -Wno-unknown-pragmas)
if(TERN_SANITIZE) # checks in every lane of unrolled loops take minutes to compile
  set(TERN_HOST_FAST -O1 -fopenmp-simd)
endif()
# The lowest instruction set has every family and element type; those above it have f32 of what gains
# speed from them, and halves where they matter.
list(GET TERN_CPU_ISAS 0 lowest)
list(LENGTH TERN_CPU_ISAS n_isas)
set_source_files_properties(src/device/cpu/product_kernels.c # after the target's -ffp-contract=off
                            PROPERTIES COMPILE_OPTIONS -ffp-contract=fast)
foreach(isa IN LISTS TERN_CPU_ISAS)
  set(families ${TERN_KERNEL_FAMILIES} ${TERN_ROW_FAMILIES})
  set(halves ${TERN_KERNEL_FAMILIES_HALVES})
  set(small) # what is compiled for size here
  set(product -O2 -ftree-vectorize # half of -O3, as fast
      $<$<C_COMPILER_ID:GNU>:-fvect-cost-model=dynamic> $<$<C_COMPILER_ID:GNU>:-fversion-loops-for-strides>)
  if(NOT isa STREQUAL lowest)
    list(REMOVE_ITEM families ${TERN_KERNEL_FAMILIES_ONCE})
  elseif(n_isas GREATER 1) # what old processors fall back to
    set(product -Os -Wno-unknown-pragmas -Wno-array-bounds) # gcc 12 sees indices there that are not
    set(halves)
    set(small ${families})
    list(REMOVE_ITEM small ${TERN_KERNEL_FAMILIES_ONCE})
    list(APPEND small ${TERN_KERNEL_FAMILIES_SMALL})
  endif()
  if(isa STREQUAL v4 AND v3 IN_LIST TERN_CPU_ISAS)
    set(families ${TERN_KERNEL_FAMILIES_V4})
    set(halves)
  endif()
  if(TERN_SANITIZE)
    set(product -O1)
  endif()
  set(objects product)
  # Sums of products round once a step: no other device has to agree with them to the bit.
  tern_host_object(tern_host_product_${isa} ${isa} src/device/cpu/product_kernels.c)
  target_compile_options(tern_host_product_${isa} PRIVATE
    ${product} -fno-unswitch-loops -fopenmp-simd -fno-math-errno -fno-trapping-math
    -Wno-maybe-uninitialized)
  # Each family for f32, and for doubles and integers, where size goes before speed.
  foreach(family IN LISTS families)
    foreach(wide IN ITEMS 0 1)
      if(wide AND NOT isa STREQUAL lowest AND NOT family IN_LIST TERN_KERNEL_FAMILIES_BYTES)
        continue()
      endif()
      list(APPEND objects ${family}_${wide})
      set(object tern_host_${family}_${wide}_${isa})
      if(family IN_LIST TERN_ROW_FAMILIES)
        tern_host_object(${object} ${isa} src/device/cpu/row_kernels.c)
        target_compile_definitions(${object} PRIVATE TERN_ROWS="${family}.def")
      else()
        tern_host_object(${object} ${isa} src/device/cpu/host_kernels.c)
        target_compile_definitions(${object} PRIVATE TERN_FAMILY="${family}.cl")
      endif()
      target_compile_definitions(${object} PRIVATE TERN_OBJECT=${family}_${wide} TERN_WIDE=${wide}
        TERN_HALVES_WIDE=$<NOT:$<IN_LIST:${family},${halves}>>)
      if((wide AND NOT family IN_LIST TERN_KERNEL_FAMILIES_BYTES) OR family IN_LIST small)
        target_compile_options(${object} PRIVATE ${TERN_HOST_OPTIONS} ${TERN_HOST_SMALL})
      else()
        target_compile_options(${object} PRIVATE ${TERN_HOST_OPTIONS} ${TERN_HOST_FAST})
        if(family IN_LIST TERN_KERNEL_FAMILIES_ALIGNED)
          target_compile_options(${object} PRIVATE $<$<C_COMPILER_ID:GNU>:-falign-loops=32>)
        endif()
      endif()
    endforeach()
  endforeach()
  tern_host_object(tern_host_row_run_${isa} ${isa} src/device/cpu/row_run.c)
  target_compile_definitions(tern_host_row_run_${isa} PRIVATE
    TERN_WIDE=$<STREQUAL:${isa},${lowest}>)
  target_compile_options(tern_host_row_run_${isa} PRIVATE ${TERN_HOST_FAST} ${TERN_HOST_OPTIONS})
  list(TRANSFORM objects REPLACE "(.+)" "X(\\1)")
  list(JOIN objects " " objects)
  tern_host_object(tern_host_table_${isa} ${isa} src/device/cpu/host_table.c)
  target_compile_definitions(tern_host_table_${isa} PRIVATE "TERN_FAMILIES=${objects}")
endforeach()

# Their text, for devices that compile it at run time. It is packed, but for Windows, which has no zlib.
set(TERN_PACKS_SOURCES ${TERN_ZLIB})
if(WIN32)
  set(TERN_PACKS_SOURCES OFF)
endif()
if(TERN_PACKS_SOURCES)
  set_source_files_properties(src/device/sources.c PROPERTIES COMPILE_DEFINITIONS TERN_PACKS_SOURCES)
endif()
list(TRANSFORM TERN_EMBEDDED_FILES PREPEND ${PROJECT_SOURCE_DIR}/cl_kernels/ OUTPUT_VARIABLE TERN_EMBEDDED)
list(JOIN TERN_EMBEDDED "," TERN_EMBEDDED_INPUTS)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/embedded.c
  COMMAND ${CMAKE_COMMAND} -DINPUTS=${TERN_EMBEDDED_INPUTS} -DOUTPUT=${PROJECT_BINARY_DIR}/embedded.c
          -DDEFLATE=$<BOOL:${TERN_PACKS_SOURCES}> -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${TERN_EMBEDDED} cmake/embed.cmake VERBATIM)

# What comes before a kernel takes far less time than it: it is compiled for size. The dispatcher, src/tensor and what is near
# it, is for speed; nothing of it is a loop over elements, which -O3 makes faster.
set(sources_plain ${TERN_SOURCES})
list(FILTER sources_plain INCLUDE REGEX "^src/(base|device|tensor)/")
set_source_files_properties(${sources_plain} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O2>)
set(sources_for_size ${TERN_SOURCES})
string(CONCAT for_size
  "^src/((ops|nn|optim|amp|metrics|data|io|dist|profile|device/opencl|device/cuda)/|device/(cpu/)?(user|conv_))"
  "|^src/device/cpu/(attention|convolution|cpu|kernels|onednn|product_bf16)\\.c"
  "|^src/device/(beside|chain.*|graph_.*|builds|program_groups|cache|capture|faults|interop|external|listing|program_archive|pinned|events|progress|random|registry|select|signature|transfers?)\\.c"
  "|^src/device/(sources|vendor_settings)\\.c|^src/base/(error|text|warning)\\.c"
  "|^src/tensor/(anomaly|autograd|checkpoint|dlpack|function|inplace|interop|leaves|memory_format|print|read|dependencies|recompute|set_data|storage_parts|trace|transfer|user_kernel|fuse/batched|fuse/chain|fuse/claim)\\.c")
list(FILTER sources_for_size INCLUDE REGEX "${for_size}")
list(REMOVE_ITEM sources_for_size src/data/collate.c) # -Os copies rows by a slow instruction
set_source_files_properties(${sources_for_size} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:${TERN_FOR_SIZE}>")
if(TERN_SANITIZE) # what comes before a kernel: twice as long in the compiler with -O1 as without
  list(REMOVE_ITEM sources_for_size src/data/item_state.c src/data/order.c) # words of random orders
  set_property(SOURCE ${sources_for_size} APPEND PROPERTY COMPILE_OPTIONS -O0)
  set_source_files_properties(src/data/item_state.c src/data/order.c PROPERTIES COMPILE_OPTIONS -O2)
endif()
add_library(tern_objects OBJECT ${TERN_SOURCES} ${PROJECT_BINARY_DIR}/embedded.c)
# Tables for unwinding are a twentieth of the library; with -g debuggers have their own.
target_compile_options(tern_objects PRIVATE
  "$<$<CONFIG:Release>:-fno-asynchronous-unwind-tables;-fno-unwind-tables;-fno-align-functions>")
target_include_directories(tern_objects PUBLIC
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/cl_kernels)
# It defines the functions that are macros for programs (tern/numbers.h, tern/pointers.h).
target_compile_definitions(tern_objects PRIVATE TERN_PLAIN_NAMES $<$<BOOL:${WIN32}>:TERN_EXPORTS> ${TERN_ISA_DEFINITIONS}
  $<$<BOOL:${TERN_OPENCL}>:TERN_WITH_OPENCL> $<$<BOOL:${TERN_CUDA}>:TERN_WITH_CUDA> $<$<BOOL:${TERN_ONEDNN}>:TERN_WITH_ONEDNN>
  $<$<BOOL:${TERN_ZLIB}>:TERN_WITH_ZLIB> $<$<BOOL:${TERN_ZIP}>:TERN_WITH_ZIP> $<$<BOOL:${TERN_IMAGES}>:TERN_WITH_IMAGES>)
if(TERN_OPENCL)
  target_include_directories(tern_objects PRIVATE ${TERN_OPENCL_INCLUDE})
endif()
foreach(option IN ITEMS TERN_ONEDNN TERN_ZLIB TERN_ZIP)
  if(${option})
    target_include_directories(tern_objects PRIVATE ${${option}_INCLUDE})
  endif()
endforeach()
set_target_properties(tern_objects PROPERTIES POSITION_INDEPENDENT_CODE ON
                      C_VISIBILITY_PRESET hidden)
target_link_libraries(tern_objects PRIVATE tern_flags Threads::Threads jansson::jansson)

set_source_files_properties(src/device/opencl/doctor.c src/device/opencl/tuning.c PROPERTIES COMPILE_DEFINITIONS TERN_VERSION_TEXT="${PROJECT_VERSION}")

# The operating system, for whatever is a library or program of its own: what it shows is hidden. The sources choose by system.
file(GLOB TERN_OS_SOURCES RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS src/base/os_*.c)
list(REMOVE_ITEM TERN_OS_SOURCES src/base/os_fiber.c) # the cpu device's alone
add_library(tern_os_objects OBJECT ${TERN_OS_SOURCES})
target_include_directories(tern_os_objects PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(tern_os_objects PRIVATE TERN_PLAIN_NAMES)
set_target_properties(tern_os_objects PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
target_link_libraries(tern_os_objects PRIVATE tern_flags)

# Companions, written against the public headers alone: operations by name, reports, and pretrained models.
function(tern_companion_objects name)
  add_library(${name}_objects OBJECT ${ARGN})
  target_include_directories(${name}_objects PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/cl_kernels)
  target_compile_definitions(${name}_objects PRIVATE TERN_PLAIN_NAMES $<$<BOOL:${WIN32}>:TERN_EXPORTS>)
  set_target_properties(${name}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON
                        C_VISIBILITY_PRESET hidden)
  target_link_libraries(${name}_objects PRIVATE tern_flags)
endfunction()
tern_companion_objects(tern_names ${TERN_NAMES_SOURCES})
tern_companion_objects(tern_report ${TERN_REPORT_SOURCES})
if(TERN_MODELS)
  set_source_files_properties(${TERN_MODELS_SOURCES} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:${TERN_FOR_SIZE}>")
  set_source_files_properties(src/models/adamw8bit.c src/models/nf4.c src/models/skinny.c PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>;-fno-math-errno")
  # Blocks are decoded in every product: compiled for speed.
  set_source_files_properties(src/models/gguf/fast.c PROPERTIES COMPILE_OPTIONS -O3)
  tern_companion_objects(tern_models ${TERN_MODELS_SOURCES})
  target_compile_options(tern_models_objects PRIVATE $<$<NOT:$<BOOL:${OpenMP_C_FOUND}>>:-Wno-unknown-pragmas>)
  target_link_libraries(tern_models_objects PRIVATE jansson::jansson pcre2::pcre2 utf8proc::utf8proc
                        $<$<BOOL:${OpenMP_C_FOUND}>:OpenMP::OpenMP_C>)
endif()

# ONNX: messages of its .proto, whose functions of protobuf-c are those of src/io/onnx/protobuf.c.
if(TERN_ONNX)
  set(onnx ${PROJECT_BINARY_DIR}/onnx)
  get_filename_component(folder ${TERN_ONNX_PROTO} DIRECTORY)
  add_custom_command(OUTPUT ${onnx}/onnx.pb-c.c ${onnx}/onnx.pb-c.h
    COMMAND ${CMAKE_COMMAND} -E make_directory ${onnx}
    COMMAND ${TERN_PROTOC_C} --proto_path=${folder} --c_out=${onnx} ${TERN_ONNX_PROTO}
    DEPENDS ${TERN_ONNX_PROTO} VERBATIM)
  set(renamed)
  foreach(function IN ITEMS unpack free_unpacked get_packed_size pack pack_to_buffer)
    list(APPEND renamed protobuf_c_message_${function}=tern_protobuf_${function})
  endforeach()
  set_source_files_properties(${TERN_ONNX_SOURCES} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>
                              OBJECT_DEPENDS ${onnx}/onnx.pb-c.h)
  set_source_files_properties(${onnx}/onnx.pb-c.c PROPERTIES COMPILE_OPTIONS "-Os;-w")
  tern_companion_objects(tern_onnx ${TERN_ONNX_SOURCES} ${onnx}/onnx.pb-c.c)
  target_compile_definitions(tern_onnx_objects PRIVATE ${renamed} NDEBUG)
  target_include_directories(tern_onnx_objects PRIVATE ${onnx})
endif()

# Tables of names and functions are a tenth of the library's addresses; packed, they take no room.
include(CheckLinkerFlag)
include(CheckSymbolExists)
set(TERN_ELF OFF) # whose linkers have versions of symbols, and -z
if(NOT WIN32 AND NOT APPLE)
  set(TERN_ELF ON)
endif()
if(TERN_ELF)
  # glibc says so where it can't read them; musl before 1.2.4 crashes.
  check_symbol_exists(__GLIBC__ features.h TERN_GLIBC)
  if(TERN_GLIBC)
    check_linker_flag(C "LINKER:-z,pack-relative-relocs" TERN_PACKS_RELOCATIONS)
  endif()
  check_linker_flag(C "LINKER:-z,noseparate-code" TERN_JOINS_SEGMENTS) # no padding between code and constants: two pages
  check_linker_flag(C "LINKER:-Bsymbolic-functions" TERN_BINDS_FUNCTIONS)
  check_linker_flag(C "LINKER:--undefined-version" TERN_VERSIONS_ARE_SHARED) # a companion has not all names of exports.map: lld asks
endif()

# CMake asks macOS itself whether its linker knows -rpath, and another system that builds for it says nothing.
if(APPLE AND NOT CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG)
  set(CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG "-Wl,-rpath,")
  set(CMAKE_EXECUTABLE_RUNTIME_C_FLAG "-Wl,-rpath,")
  set(CMAKE_MACOSX_RPATH ON)
endif()

# tern_library(<name> <export> <objects>...): lib<name>.so, which shows the public functions, and
# lib<name>.a; tern::<export> and tern::<export>_static to users.
function(tern_library name export)
  foreach(kind IN ITEMS SHARED STATIC)
    string(TOLOWER ${kind} suffix)
    set(target ${name}_${suffix})
    add_library(${target} ${kind} ${ARGN})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} EXPORT_NAME ${export}
      VERSION ${PROJECT_VERSION} SOVERSION 0 INSTALL_RPATH $ORIGIN)
    set(export ${export}_static)
    target_include_directories(${target} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
      $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tern_flags>)
  endforeach()
  if(APPLE)
    set_target_properties(${name}_shared PROPERTIES INSTALL_RPATH @loader_path)
  endif()
  if(NOT TERN_ELF) # there only what TERN_API marks is shown
    return()
  endif()
  # Calls of the library's own public functions go straight to them. The end of a thread that used
  # the library comes back to it: dlclose leaves it where it is.
  target_link_options(${name}_shared PRIVATE LINKER:-z,nodelete
    $<$<BOOL:${TERN_BINDS_FUNCTIONS}>:LINKER:-Bsymbolic-functions>
    $<$<BOOL:${TERN_PACKS_RELOCATIONS}>:LINKER:-z,pack-relative-relocs>
    $<$<BOOL:${TERN_JOINS_SEGMENTS}>:LINKER:-z,noseparate-code>
    $<$<BOOL:${TERN_VERSIONS_ARE_SHARED}>:LINKER:--undefined-version>
    "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map")
  set_property(TARGET ${name}_shared APPEND PROPERTY
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
endfunction()

# What ci/links reads: the objects of all layers.
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/objects.txt CONTENT
  "$<JOIN:$<TARGET_OBJECTS:tern_objects>;${TERN_HOST_OBJECTS},\n>\n")

# Of libtern.a a program gets the objects that something names. Nothing names the one that registers what ops/ does for
# src/tensor: it is compiled as one object with the pointer that it registers there, which everything that needs it names.
set(registered "/src/(tensor|ops)/from_ops\\.c")
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/from_ops.c
  CONTENT "#include \"ops/from_ops.c\"\n#include \"tensor/from_ops.c\"\n")
add_library(tern_from_ops OBJECT ${PROJECT_BINARY_DIR}/from_ops.c)
foreach(property IN ITEMS INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS LINK_LIBRARIES C_VISIBILITY_PRESET
                          POSITION_INDEPENDENT_CODE)
  get_target_property(of_objects tern_objects ${property})
  set_property(TARGET tern_from_ops PROPERTY ${property} "${of_objects}")
endforeach()
tern_library(tern tern "$<FILTER:$<TARGET_OBJECTS:tern_objects>,EXCLUDE,${registered}>" $<TARGET_OBJECTS:tern_from_ops>
  ${TERN_HOST_OBJECTS})
tern_library(tern_names names $<TARGET_OBJECTS:tern_names_objects> $<TARGET_OBJECTS:tern_os_objects>)
tern_library(tern_report report $<TARGET_OBJECTS:tern_report_objects> $<TARGET_OBJECTS:tern_os_objects>)
foreach(suffix IN ITEMS shared static)
  target_link_libraries(tern_${suffix} PRIVATE Threads::Threads m ${CMAKE_DL_LIBS} jansson::jansson)
  target_link_libraries(tern_names_${suffix} PUBLIC tern_${suffix})
  target_link_libraries(tern_report_${suffix} PUBLIC tern_${suffix} PRIVATE m)
endforeach()
if(TERN_MODELS)
  tern_library(tern_models models $<TARGET_OBJECTS:tern_models_objects> $<TARGET_OBJECTS:tern_os_objects>)
  foreach(suffix IN ITEMS shared static)
    target_link_libraries(tern_models_${suffix} PUBLIC tern_${suffix}
                          PRIVATE jansson::jansson pcre2::pcre2 utf8proc::utf8proc m
                          $<$<BOOL:${OpenMP_C_FOUND}>:OpenMP::OpenMP_C>)
  endforeach()
  add_library(tern::models ALIAS tern_models_shared)
endif()
if(TERN_ONNX)
  add_library(tern_onnx MODULE $<TARGET_OBJECTS:tern_onnx_objects> $<TARGET_OBJECTS:tern_os_objects>)
  set_target_properties(tern_onnx PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tern INSTALL_RPATH $ORIGIN/..)
  if(TERN_ELF)
    target_link_options(tern_onnx PRIVATE $<$<BOOL:${TERN_BINDS_FUNCTIONS}>:LINKER:-Bsymbolic-functions>
      $<$<BOOL:${TERN_VERSIONS_ARE_SHARED}>:LINKER:--undefined-version>
      "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map")
  endif()
  target_link_libraries(tern_onnx PRIVATE tern_flags tern_shared m)
  target_compile_definitions(tern_shared PRIVATE TERN_WITH_ONNX)
  target_sources(tern_static PRIVATE $<TARGET_OBJECTS:tern_onnx_objects>)
else()
  target_sources(tern_static PRIVATE src/io/onnx_open.c)
endif()
target_sources(tern_shared PRIVATE src/io/onnx_open.c)
set_source_files_properties(src/io/onnx_open.c PROPERTIES COMPILE_DEFINITIONS "TERN_PLAIN_NAMES;$<$<BOOL:${WIN32}>:TERN_EXPORTS>" INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/src)
if(TERN_ELF AND NOT TERN_SANITIZE)
  target_link_options(tern_names_shared PRIVATE "LINKER:-z,defs")
  target_link_options(tern_report_shared PRIVATE "LINKER:-z,defs")
  if(TERN_MODELS)
    target_link_options(tern_models_shared PRIVATE "LINKER:-z,defs")
  endif()
endif()
add_library(tern::tern ALIAS tern_shared)
add_library(tern::names ALIAS tern_names_shared)
add_library(tern::report ALIAS tern_report_shared)
