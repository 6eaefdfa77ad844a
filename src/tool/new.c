/* new.c -- tern new: writes a project that builds, trains and has a test, from the files of
 * src/tool/project. */
#include "tool/tool.h"
#include "base/os.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>

/* The files, which cmake/project_files.cmake writes into the build folder. */
extern const struct tool_file {
    const char *path, *text;
} tool_project[];

/* Copies the last part of path to name; a program's name begins with a letter and has letters,
 * digits, _ and -. */
static bool name_of(const char *path, char name[64])
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start && path[start - 1] != '/')
        start--;
    const size_t n = end - start;
    if (!n || n > 63 || !isalpha((unsigned char)path[start]))
        return false;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)path[start + i];
        if (!isalnum(c) && c != '_' && c != '-')
            return false;
        name[i] = (char)c;
    }
    name[n] = '\0';
    /* names of CMake's own targets */
    return strcmp(name, "test") != 0 && strcmp(name, "all") != 0 && strcmp(name, "install") != 0 &&
           strcmp(name, "clean") != 0;
}

/* Writes a file of the project with @NAME@ replaced; existing files are not overwritten. */
static int write_file(const char *folder, const struct tool_file *file, const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, file->path);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        tern_os_mkdir(path, 0777);
        *slash = '/';
    }
    FILE *out = tern_os_fopen(path, "wx");
    if (!out)
        return tool_fail(TOOL_WRONG, "new: %s: %s", path, strerror(errno));
    const char *text = file->text;
    for (const char *at; (at = strstr(text, "@NAME@")); text = at + strlen("@NAME@")) {
        fwrite(text, 1, (size_t)(at - text), out);
        fputs(name, out);
    }
    fputs(text, out);
    const bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed)
        return tool_fail(TOOL_WRONG, "new: %s: %s", path, strerror(errno));
    printf("  %s\n", path);
    return TOOL_FINE;
}

static int run(const char *const *words, int n)
{
    char name[64];
    if (!n)
        return tool_fail(TOOL_USAGE, "new: which folder? For example: tern new hello");
    char path_of_folder[4001];
    const int bytes = snprintf(path_of_folder, sizeof path_of_folder, "%s", words[0]);
    const char *folder = tern_os_plain_path(path_of_folder);
    if (bytes >= (int)sizeof path_of_folder || !name_of(folder, name))
        return tool_fail(TOOL_WRONG,
                         "new: the folder's name becomes the program's: letters, digits, _ and -, "
                         "beginning with a letter, not \"test\" or \"all\"; got \"%s\"",
                         words[0]);
    for (const struct tool_file *file = tool_project; file->path; file++) {
        char path[4200];
        struct tern_os_stat there;
        snprintf(path, sizeof path, "%s/%s", folder, file->path);
        if (tern_os_stat(path, &there) == 0)
            return tool_fail(TOOL_WRONG, "new: %s is there already; nothing was written", path);
    }
    if (tern_os_mkdir(folder, 0777) != 0 && errno != EEXIST)
        return tool_fail(TOOL_WRONG, "new: %s: %s", folder, strerror(errno));
    printf("writing\n");
    for (const struct tool_file *file = tool_project; file->path; file++)
        if (write_file(folder, file, name) != TOOL_FINE)
            return TOOL_WRONG;
    printf("\nnext:\n  cd %s && cmake -S . -B build && cmake --build build\n  ./build/%s auto\n"
           "  ctest --test-dir build\n",
           folder, name);
    return TOOL_FINE;
}

const tool_command tool_new = {
    .name = "new",
    .arguments = "DIR",
    .summary = "Write a project: a program that trains, CMake, tests, CI",
    .more =
        "`tern new` makes DIR if it does not exist, and overwrites nothing. The program is named "
        "after DIR.\n"
        "The project builds against an installed tern, and trains on the cpu, OpenCL and CUDA.\n",
    .example = "tern new hello",
    .part = TOOL_BEGIN,
    .most = 1,
    .run = run,
};
