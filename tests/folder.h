/* folder.h -- a folder of a test's own, in which all its files lie; it goes when the test ends. */
#ifndef TERN_TESTS_FOLDER_H
#define TERN_TESTS_FOLDER_H
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[4096];

static inline void remove_tree(const char *path)
{
    DIR *open = opendir(path);
    for (struct dirent *e; open && (e = readdir(open));) {
        char inside[4400];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(inside, sizeof inside, "%.4000s/%s", path, e->d_name);
        if (unlink(inside) != 0)
            remove_tree(inside);
    }
    if (open)
        closedir(open);
    rmdir(path);
}

static inline int folder_make(void)
{
    char here[4000];
    if (!getcwd(here, sizeof here))
        return -1;
    snprintf(folder, sizeof folder, "%s/files.XXXXXX", here);
    return mkdtemp(folder) ? 0 : -1;
}

/* "<folder>/<name>"; good until the eighth call after this one. */
static inline const char *in_folder(const char *name)
{
    static char text[8][4400];
    static int next;
    char *path = text[next++ % 8];
    snprintf(path, sizeof text[0], "%s/%s", folder, name);
    return path;
}

static inline void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* All bytes and a zero behind them, to be freed with free. */
static inline char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*bytes + 1);
    assert_int_equal(fread(data, 1, *bytes, file), *bytes);
    data[*bytes] = '\0';
    fclose(file);
    return data;
}

/* Entries of a folder, hidden ones too. */
static inline int count_files(const char *path)
{
    DIR *open = opendir(path);
    int n = 0;
    assert_non_null(open);
    while (readdir(open))
        n++;
    closedir(open);
    return n - 2;
}

/* test_main in the folder. */
static inline int folder_main(const struct CMUnitTest *tests, size_t n)
{
    if (folder_make())
        return 1;
    int failed = test_main(tests, n);
    remove_tree(folder);
    return failed;
}

#endif
