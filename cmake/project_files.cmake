# project_files.cmake -- run as a script: writes OUTPUT, a C file with the texts of FOLDER, the files that `tern new` writes.
set(texts "")
set(rows "")
set(n 0)
foreach(pair IN ITEMS "CMakeLists.txt=CMakeLists.txt" "main.c=main.c" "README.md=README.md" "gitignore=.gitignore"
                      "ci.yml=.github/workflows/test.yml")
  string(REGEX REPLACE "=.*" "" input "${pair}")
  string(REGEX REPLACE ".*=" "" path "${pair}")
  file(READ ${FOLDER}/${input} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND texts "static const char text${n}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${path}\", text${n}},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUTPUT} "/* Made by cmake/project_files.cmake from src/tool/project/. */
extern const struct tool_file { const char *path, *text; } tool_project[];
${texts}const struct tool_file tool_project[] = {\n${rows}    {0, 0},\n};\n")
