/* portable.h -- what the examples take from POSIX and Windows' C library lacks. */
#ifndef EXAMPLES_PORTABLE_H
#define EXAMPLES_PORTABLE_H
#ifdef _WIN32
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define lstat(path, about) stat(path, about) /* no links */
#define mkdir(path, mode)  mkdir(path)

/* A variable without a value is none on Windows: "" removes it. */
static inline int setenv(const char *name, const char *value, int overwrite)
{
    return !overwrite && getenv(name) ? 0 : _putenv_s(name, value);
}

#define strndup copy_part
static inline char *copy_part(const char *from, size_t n)
{
    const size_t length = strnlen(from, n);
    char *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, from, length);
        copy[length] = '\0';
    }
    return copy;
}

static inline ssize_t getline(char **line, size_t *room, FILE *file)
{
    size_t n = 0;
    int c = 0;
    while (c != '\n' && (c = getc(file)) != EOF) {
        if (!*line || n + 2 > *room) {
            const size_t bytes = 2 * n + 128;
            char *more = realloc(*line, bytes);
            if (!more)
                return -1;
            *line = more;
            *room = bytes;
        }
        (*line)[n++] = (char)c;
    }
    if (n > 0)
        (*line)[n] = '\0';
    return n > 0 ? (ssize_t)n : -1;
}
#endif
#endif
