# embed.cmake -- run as a script: writes OUTPUT, a C file that holds the text of every file in INPUTS
# (separated by commas) without comments, indentation and most other spaces. Lines keep their numbers,
# so that compilers' messages stay right. What occurs most often is one byte of those that no text has
# (device/sources.c puts it back), which saves a fifth. Pure CMake, so that cross-compiling needs no host tool.
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

# The words, in the order in which they are looked for; each is the byte of its place.
set(bytes_of_words 1 2 3 4 5 6 7 8 11 12 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
set(words "tern_" "define " " + " "(idx)" "TERN_" "(ARG,i64," " - " "BASE(" "idx " ",PARAM_ p" "REAL" "return "
  "f32" "s),(IN,STO," "f64" "),(OUT,STO," "INLINE" "KERNEL" "for (" "LANES(j," "),(ARG," "row" "FLOAT" "def "
  "if " ",NONE,PLAIN," "GLOBAL STO *" "pair_")
set(table "")
foreach(byte word IN ZIP_LISTS bytes_of_words words)
  string(APPEND table "    [${byte}] = \"${word}\",\n")
endforeach()

set(arrays "")
set(rows "")
set(number 0)
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
  foreach(byte word IN ZIP_LISTS bytes_of_words words)
    string(ASCII ${byte} code)
    string(REPLACE "${word}" "${code}" text "${text}")
  endforeach()
  string(HEX "${text}" hex)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const char file${number}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", file${number}, sizeof file${number} - 1},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "/* Made by cmake/embed.cmake from cl_kernels/. */
#include \"device/sources.h\"
${arrays}const tern_source tern_sources[] = {\n${rows}    {0, 0, 0},\n};
const char *const tern_source_words[32] = {\n${table}};\n")
