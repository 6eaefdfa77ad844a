/* files.h -- folders of a test's own, and files written into them byte by byte. */
#ifndef TERN_TESTS_FILES_H
#define TERN_TESTS_FILES_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nftw */
#endif
#include "support.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char test_folder[64];

static inline int test_remove(const char *path, const struct stat *about, int kind, struct FTW *at)
{
    (void)about, (void)kind, (void)at;
    return remove(path);
}
static inline void test_folder_end(void)
{
    nftw(test_folder, test_remove, 8, FTW_DEPTH | FTW_PHYS);
}
/* Made when first asked for, gone when the program ends. Good until the eighth call after this one. */
static inline const char *test_path(const char *name)
{
    static char text[8][512];
    static int next;
    if (!*test_folder) {
        strcpy(test_folder, "/tmp/tern-test-XXXXXX");
        assert_non_null(mkdtemp(test_folder));
        atexit(test_folder_end);
    }
    char *path = text[next++ % 8];
    snprintf(path, sizeof text[0], "%s/%s", test_folder, name);
    return path;
}
static inline const char *test_file(const char *name, const void *bytes, size_t n)
{
    const char *path = test_path(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}
static inline const char *test_text(const char *name, const char *text)
{
    return test_file(name, text, strlen(text));
}
static inline void test_make_folder(const char *name)
{
    assert_int_equal(mkdir(test_path(name), 0755), 0);
}
/* A file of tests/images in memory, to be freed; *n bytes. */
static inline unsigned char *test_image(const char *name, size_t *n)
{
    char path[512];
    unsigned char *bytes = malloc(1 << 16);
    snprintf(path, sizeof path, TEST_FOLDER "/images/%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    *n = fread(bytes, 1, 1 << 16, f);
    fclose(f);
    return bytes;
}
static inline void test_copy_image(const char *image, const char *to)
{
    size_t n;
    unsigned char *bytes = test_image(image, &n);
    test_file(to, bytes, n);
    free(bytes);
}

#endif
