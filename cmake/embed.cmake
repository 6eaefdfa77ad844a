# embed.cmake -- run as a script: writes OUTPUT, a C file that holds the text of every file in INPUTS
# (separated by commas). Pure CMake, so that cross-compiling needs no host tool.
string(REPLACE "," ";" INPUTS "${INPUTS}")
set(arrays "")
set(rows "")
set(number 0)
foreach(input IN LISTS INPUTS)
  get_filename_component(name ${input} NAME)
  file(READ ${input} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const char file${number}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", file${number}, sizeof file${number} - 1},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "/* Made by cmake/embed.cmake from cl_kernels/. */
#include \"device/sources.h\"
${arrays}const tern_source tern_sources[] = {\n${rows}    {0, 0, 0},\n};\n")
