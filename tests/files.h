/* files.h -- folders of a test's own, and files written into them byte by byte. */
#ifndef TERN_TESTS_FILES_H
#define TERN_TESTS_FILES_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nftw */
#endif
#include "support.h"
#include "temporary.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char test_folder[TEMPORARY_BYTES];

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
    static char text[8][2 * TEMPORARY_BYTES];
    static int next;
    if (!*test_folder) {
        assert_non_null(mkdtemp(temporary(test_folder, "tern-test-XXXXXX")));
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
/* The bytes, at most 65535 of them, packed by gzip, which stores them. */
static inline const char *test_gzip(const char *name, const void *bytes, size_t n)
{
    static unsigned char packed[1 << 17] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1};
    uint32_t crc = 0xffffffffu;
    assert_true(n < 1 << 16);
    packed[11] = (unsigned char)n, packed[12] = (unsigned char)(n >> 8);
    packed[13] = (unsigned char)~packed[11], packed[14] = (unsigned char)~packed[12];
    memcpy(packed + 15, bytes, n);
    for (size_t i = 0; i < n; i++) {
        crc ^= packed[15 + i];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    for (int i = 0; i < 4; i++) {
        packed[15 + n + (size_t)i] = (unsigned char)(~crc >> 8 * i);
        packed[19 + n + (size_t)i] = (unsigned char)(n >> 8 * i);
    }
    return test_file(name, packed, n + 23);
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
