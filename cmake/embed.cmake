# embed.cmake -- run as a script: writes OUTPUT, a C file that holds the text of every file in INPUTS
# (separated by commas) without comments, indentation and most other spaces. Lines keep their numbers,
# so that compilers' messages stay right. DEFLATE: all of it as one deflated stream, a quarter of the bytes.
# Pure CMake, so that cross-compiling needs no host tool.
string(REPLACE "," ";" INPUTS "${INPUTS}")

# What is left of a comment: its line ends.
function(remove_comments variable)
  set(text "${${variable}}")
  set(kept "")
  string(FIND "${text}" "/*" start)
  while(NOT start EQUAL -1)
    string(SUBSTRING "${text}" 0 ${start} before)
    string(SUBSTRING "${text}" ${start} -1 text)
    string(FIND "${text}" "*/" end)
    math(EXPR end "${end} + 2")
    string(SUBSTRING "${text}" 0 ${end} comment)
    string(SUBSTRING "${text}" ${end} -1 text)
    string(REGEX REPLACE "[^\n]" "" comment "${comment}")
    string(APPEND kept "${before}${comment}")
    string(FIND "${text}" "/*" start)
  endwhile()
  set(${variable} "${kept}${text}" PARENT_SCOPE)
endfunction()

set(whole "")
set(rows "")
foreach(input IN LISTS INPUTS)
  get_filename_component(name ${input} NAME)
  file(READ ${input} text)
  remove_comments(text)
  string(REGEX REPLACE "[ \t]+(\\\\?\n)" " \\1" text "${text}")
  string(REGEX REPLACE " \n" "\n" text "${text}")
  string(REGEX REPLACE "\n[ \t]+" "\n" text "${text}")
  # Spaces that no token needs; those of + - & / keep tokens apart.
  string(REGEX REPLACE " ([=<>!*?:]+|&&|[|]+|[-+*/]=) " "\\1" text "${text}")
  string(REGEX REPLACE "([,;]) " "\\1" text "${text}")
  string(REGEX REPLACE " ([-+*/%^|]) ([A-Za-z0-9_(])" "\\1\\2" text "${text}")
  string(REGEX REPLACE "([])}]) " "\\1" text "${text}")
  string(REGEX REPLACE "(#define [A-Za-z0-9_]+)  +" "\\1 " text "${text}")
  string(LENGTH "${whole}" from)
  string(LENGTH "${text}" bytes)
  string(APPEND rows "    {\"${name}\", ${from}, ${bytes}},\n")
  string(APPEND whole "${text}")
endforeach()
string(LENGTH "${whole}" total)
file(WRITE ${OUTPUT}.txt "${whole}")
if(DEFLATE)
  file(ARCHIVE_CREATE OUTPUT ${OUTPUT}.gz PATHS ${OUTPUT}.txt FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  file(READ ${OUTPUT}.gz hex OFFSET 10 HEX) # after gzip's header, which has the time in it
else()
  file(READ ${OUTPUT}.txt hex HEX)
endif()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "/* Made by cmake/embed.cmake from cl_kernels/. */
#include \"device/sources.h\"
static const unsigned char bytes[] = {${bytes}};
const tern_source_pack tern_packed_sources = {bytes, sizeof bytes, ${total}};
const tern_source tern_sources[] = {\n${rows}    {0, 0, 0},\n};\n")
