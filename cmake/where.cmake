# where.cmake -- writes tern/where.h from the public headers: a macro for each function that tells where the
# call stands. Function-like macros that the headers define keep their text in it.
set(TERN_WHERE ${PROJECT_BINARY_DIR}/include/tern/where.h)

function(tern_write_where)
  file(GLOB_RECURSE headers ${PROJECT_SOURCE_DIR}/include/*.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
  set(lines "")
  set(typed "")
  foreach(header IN LISTS headers)
    file(READ ${header} text)
    # Lists of CMake's know no brackets, and begin again at semicolons.
    string(REGEX REPLACE "[][;]" " " plain "${text}")
    string(REGEX MATCHALL "\nTERN_API [^(]*[ *]tern_[a-z0-9_]+\\(" prototypes "${plain}")
    foreach(prototype IN LISTS prototypes)
      string(REGEX REPLACE ".*[ *](tern_[a-z0-9_]+)\\($" "\\1" name "${prototype}")
      list(APPEND functions ${name})
    endforeach()
    while(text MATCHES "\n#define (tern_[a-z0-9_]+)(\\([a-z0-9_, .]*\\))((\\\\\n|[^\n\\\\])*)")
      set(name ${CMAKE_MATCH_1})
      set(parameters "${CMAKE_MATCH_2}")
      string(REGEX REPLACE "[ \\\\\n]+" " " body "${CMAKE_MATCH_3}")
      string(FIND "${text}" "\n#define ${name}(" start)
      math(EXPR start "${start} + 9")
      string(SUBSTRING "${text}" ${start} -1 text)
      if(name IN_LIST typed)
        message(FATAL_ERROR "where.h: ${name} is defined twice, the second time in ${header}")
      endif()
      list(APPEND typed ${name})
      string(APPEND lines "#ifdef ${name}\n#undef ${name}\n#define ${name}${parameters} TERN_WHERE_(${body})\n"
             "#else\n#define ${name}(...) TERN_WHERE_(${name}(__VA_ARGS__))\n#endif\n")
    endwhile()
  endforeach()
  list(REMOVE_DUPLICATES functions)
  list(REMOVE_ITEM functions tern_at tern_where_enter tern_where_leave ${typed})
  list(SORT functions)
  foreach(name IN LISTS functions)
    string(APPEND lines "#define ${name}(...) TERN_WHERE_(${name}(__VA_ARGS__))\n")
  endforeach()
  set(text "/* where.h -- calls into tern that record their file and line, for errors and warnings to tell
 * (tern_get_error). Made from the headers, for the files of a program that include it; all others stay
 * as they are. A call takes some 6 ns longer. `&tern_exp` and `tern_exp` without parentheses are the
 * function. */
#ifndef TERN_WHERE_H
#define TERN_WHERE_H
#include <tern/models.h>
#include <tern/names.h>
#include <tern/report.h>
#include <tern/tern.h>

/* What is called for the arguments has places of its own, and goes back to this one. */
#ifdef __cplusplus
struct tern_where_until_end {
    tern_where_block block;
    tern_where_until_end(const char *file, int line) : block(tern_where_enter(file, line)) {}
    ~tern_where_until_end() { tern_where_leave(&block); }
};
#define TERN_WHERE_(...) \\
    (static_cast<void>(tern_where_until_end(__FILE__, __LINE__)), __VA_ARGS__)
#else
#define TERN_WHERE_(...) TERN_WHERE_OF_(TERN_BLOCK_NAME_(tern_where_, __COUNTER__), __VA_ARGS__)
#define TERN_WHERE_OF_(name, ...) \\
    __extension__({ \\
        tern_where_block name __attribute__((cleanup(tern_where_leave), unused)) = \\
            tern_where_enter(__FILE__, __LINE__); \\
        __VA_ARGS__; \\
    })
#endif

${lines}#endif
")
  # Only where it changed, as programs depend on it.
  file(CONFIGURE OUTPUT ${TERN_WHERE} CONTENT "${text}" @ONLY)
endfunction()
tern_write_where()
