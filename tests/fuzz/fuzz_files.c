/* fuzz_files.c -- readers of files on bytes of any kind: a file that is loaded or an error, nothing left.
 *
 *   fuzz_files [--seed S] [--first R] [--runs N | --seconds T] [--catch FOLDER]
 *   fuzz_files FILE|FOLDER...
 *
 * TERN_FUZZ_READER=plain|header|index|array|pickle|stream|gguf tries one kind alone.
 * The first byte of an input says what the rest is: a file as it is (plain, gguf), a header of safetensors or an
 * index beside it, an array or a pickle in an archive whose checksums are right, what stands behind the first three pickles of a
 * file from before 1.6. Inputs of a seed are the files of tests/hostile_safetensors.c, PyTorch's of tests/golden/torch and a few
 * that are right, with some bytes changed. */
#define _GNU_SOURCE
#include "../archive.h"
#include "../gguf_file.h"
#include "../hostile.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tern/tern.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { PLAIN, HEADER, INDEX, ARRAY, PICKLE, STREAM, GGUF, FORMS };
static const char *const forms[FORMS] = {"plain",  "header", "index", "array",
                                         "pickle", "stream", "gguf"};

/* Whether the form is the one that TERN_FUZZ_READER names, or there is no such name. */
static bool is_wanted(int form)
{
    const char *wanted = getenv("TERN_FUZZ_READER");
    return !wanted || strcmp(wanted, forms[form]) == 0;
}

/* ---- an input as a file ---------------------------------------------------------------------- */

static void stop(const char *what)
{
    fprintf(stderr, "fuzz_files: %s\n", what);
    abort();
}

/* A file in memory; its path is in path. */
static int file_of(const void *bytes, size_t size, char path[64])
{
    int fd = memfd_create("input.json", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        stop("no file in memory");
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static int archive_of(const char *name, const uint8_t *bytes, size_t size, char path[64])
{
    static const float numbers[6] = {1, 2, 3, 4, 5, 6};
    archive a = {0};
    archive_add(&a, (archive_member){.name = name, .data = bytes, .size = size});
    if (name[0] == 'a')
        archive_add(&a,
                    (archive_member){.name = "a/data/0", .data = numbers, .size = sizeof numbers});
    archive_end(&a, 0);
    int fd = file_of(a.bytes, a.size, path);
    free(a.bytes);
    return fd;
}

/* The header, its right length in front, and as many bytes behind it as the last says times four. */
static int header_of(const uint8_t *bytes, size_t size, char path[64])
{
    size_t data = size ? (size_t)bytes[size - 1] * 4 : 0, n = size ? size - 1 : 0;
    uint8_t *file = calloc(1, 8 + n + data);
    archive_number(file, n, 8);
    memcpy(file + 8, bytes, n);
    int fd = file_of(file, 8 + n + data, path);
    free(file);
    return fd;
}

/* The pickles that every stream begins with, and the input. */
static int stream_of(const uint8_t *bytes, size_t size, char path[64])
{
    static const char begin[] = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
                                "\x80\2M\xe9\3.\x80\2}X\x0d\0\0\0little_endian\x88s.";
    uint8_t *file = malloc(sizeof begin - 1 + size);
    memcpy(file, begin, sizeof begin - 1);
    if (size)
        memcpy(file + sizeof begin - 1, bytes, size);
    int fd = file_of(file, sizeof begin - 1 + size, path);
    free(file);
    return fd;
}

static int input_file(const uint8_t *bytes, size_t size, char path[64])
{
    int form = size ? bytes[0] % FORMS : PLAIN;
    bytes += size > 0;
    size -= size > 0;
    return form == HEADER   ? header_of(bytes, size, path)
           : form == ARRAY  ? archive_of("x.npy", bytes, size, path)
           : form == PICKLE ? archive_of("a/data.pkl", bytes, size, path)
           : form == STREAM ? stream_of(bytes, size, path)
                            : file_of(bytes, size, path);
}

/* ---- reading it ------------------------------------------------------------------------------ */

static void look(tern_file *file)
{
    for (int i = 0; i < tern_file_count(file); i++) {
        const char *name = tern_file_name_at(file, i);
        tern_shape shape = tern_file_shape(file, name);
        if (!tern_file_has(file, name) || !tern_file_dtype_name(file, name))
            stop("a name that is not there");
        if (shape.ndim && shape.dims[0])
            tern_file_get_slice(file, name, shape.dims[0] / 2, shape.dims[0], "cpu");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    int64_t live = tern_live_tensors();
    if (!is_wanted(size ? bytes[0] % FORMS : PLAIN))
        return 0;
    int fd = input_file(bytes, size, path);
    TERN_SCOPE {
        tern_state_dict *dict = tern_load(path, NULL);
        if (!dict && (tern_last_status() == TERN_OK || !*tern_last_error()))
            stop("neither a result nor an error");
        if (dict && tern_last_status() != TERN_OK)
            stop("a result and an error");
        tern_clear_error();
        tern_state_dict_free(dict);
        tern_file *file = tern_safe_open(path);
        if (file)
            look(file);
        tern_file_free(file);
        tern_clear_error();
    }
    close(fd);
    if (tern_live_tensors() != live)
        stop("a tensor is left");
    return 0;
}

#ifndef TERN_LIBFUZZER
/* ---- seeds ----------------------------------------------------------------------------------- */

typedef struct seed {
    uint8_t *bytes;
    size_t size;
} seed;
static seed seeds[256];
static int n_seeds;

static void add(int form, const void *bytes, size_t size)
{
    if (size > 100000 || n_seeds == 256 ||
        !is_wanted(form)) /* what is long is slow, and no other kind */
        return;
    seed s = {malloc(size + 1), size + 1};
    s.bytes[0] = (uint8_t)form;
    memcpy(s.bytes + 1, bytes, size);
    seeds[n_seeds++] = s;
}

#define ADD(FORM, TEXT) add(FORM, TEXT, sizeof(TEXT) - 1)

/* An archive as a whole, so that its headers and its directory are changed too. */
static void add_archive(const char *name, const char *bytes, size_t size)
{
    char path[64];
    uint8_t whole[2048];
    int fd = archive_of(name, (const uint8_t *)bytes, size, path);
    ssize_t n = pread(fd, whole, sizeof whole, 0);
    add(PLAIN, whole, n > 0 ? (size_t)n : 0);
    close(fd);
}

/* Files of PyTorch's own, whole; of streams also what stands behind the third pickle. */
static void add_golden(void)
{
    DIR *folder = opendir(TEST_FOLDER "/golden/torch");
    for (struct dirent *e; folder && (e = readdir(folder));) {
        char path[4096];
        static uint8_t bytes[1 << 14];
        if (!strstr(e->d_name, ".pt") || strstr(e->d_name, ".safetensors") ||
            strstr(e->d_name, "bomb"))
            continue;
        snprintf(path, sizeof path, "%s/golden/torch/%s", TEST_FOLDER, e->d_name);
        FILE *file = fopen(path, "rb");
        size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0;
        if (file)
            fclose(file);
        add(PLAIN, bytes, n);
        for (size_t i = 0, stops = 0; strstr(e->d_name, "stream") && i + 1 < n && stops < 3; i++) {
            stops += bytes[i] == '.' && bytes[i + 1] == 0x80;
            if (stops == 3)
                add(STREAM, bytes + i + 1, n - i - 1);
        }
    }
    if (folder)
        closedir(folder);
}

/* A GGUF of blocks, of numbers and of a type that is not decoded, with metadata of several kinds. */
static void add_gguf(void)
{
    static gguf_bytes b;
    gguf_head(&b, 3, 5);
    gguf_pair_text(&b, "general.architecture", "llama");
    gguf_pair(&b, "general.alignment", 4, 32, 4);
    gguf_pair(&b, "bool", 7, 1, 1);
    gguf_string(&b, "texts");
    gguf_number(&b, 9, 4);
    gguf_number(&b, 8, 4);
    gguf_number(&b, 2, 8);
    gguf_string(&b, "a");
    gguf_string(&b, "");
    gguf_string(&b, "numbers");
    gguf_number(&b, 9, 4);
    gguf_number(&b, 6, 4);
    gguf_number(&b, 1, 8);
    gguf_number(&b, 0x3f800000, 4);
    gguf_record(&b, "blk.0.q", 2, (uint64_t[]){256, 2}, 12, 0);
    gguf_record(&b, "f", 3, (uint64_t[]){2, 1, 2}, 0, 288);
    gguf_record(&b, "iq", 1, (uint64_t[]){256}, 16, 320);
    gguf_data(&b, 416);
    add(GGUF, b.bytes, b.n);
}

static void make_seeds(void)
{
    hostile_file file;
    add_golden();
    for (int i = 0; hostile_safetensors(i, &file); i++) {
        add(PLAIN, file.bytes, file.size);
        if (file.size > 8)
            add(HEADER, file.bytes + 8, file.size - 8);
        free(file.bytes);
    }
    ADD(HEADER, "{\"__metadata__\":{\"a\":\"\\u00e9\"},\"t\":{\"dtype\":\"F32\",\"shape\":[2,2],"
                "\"data_offsets\":[0,16]},\"u\":{\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":"
                "[16,20]}}\5");
    ADD(INDEX, "{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"b.safetensors\"}}");
    ADD(PLAIN,
        "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }12345678");
    ADD(ARRAY, "\x93NUMPY\1\0\x3d\0{'descr': '>i4', 'fortran_order': True, 'shape': (1, 2), }   "
               "\n12345678");
    static const char array[] = "\x93NUMPY\1\0\x3d\0{'descr': '<f4', 'fortran_order': False, "
                                "'shape': (1, 2), }  \n12345678";
    static const char pickle[] = "\x80\2}X\1\0\0\0xK\1s.";
    add_archive("x.npy", array, sizeof array - 1);
    add_archive("a/data.pkl", pickle, sizeof pickle - 1);
    add_gguf();
    ADD(PICKLE, "\x80\2}q\0X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n(("
                "X\7\0\0\0storagectorch\nFloatStorage\n"
                "X\1\0\0\0"
                "0X\3\0\0\0cpuK\6tQK\0K\2K\3\x86K\3K\1\x86\x89"
                "ccollections\nOrderedDict\n)RtRs.");
    ADD(PICKLE,
        "\x80\4\x95\x40\0\0\0\0\0\0\0}\x94(\x8c\1a\x8c\2os\x8c\6system\x93\x8c\1x\x85R\x8c\1b"
        "c__main__\nNet\n)\x81}\x8c\x0b_parameters}s\x8c\1xK\1sb\x8f(K\1\x90u.");
    ADD(PICKLE, "(dp0\nS'a'\nI12\nsVb\n(lp1\nL7L\naF0.5\na(i__main__\nOld\nas.");
    ADD(PICKLE, "\x80\2ccollections\nOrderedDict\n)Rq\1(X\1\0\0\0aK\7X\1\0\0\0b]("
                "G\x3f\xd0\0\0\0\0\0\0NJ\1\0\0\0"
                "\x88\x89\x8a\1\5M\1\1X\1\0\0\0ce}(K\1h\1u)U\1xu}X\x9\0\0\0_metadata"
                "h\1sb.");
}

/* ---- changes --------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

enum { CAPACITY = 1 << 18 };

/* One change of the bytes; the new size. */
static size_t change(uint8_t *bytes, size_t size, uint64_t *state)
{
    static const char *const words[] = {"0",
                                        "9223372036854775807",
                                        "-1",
                                        "{}",
                                        "[]",
                                        "\"",
                                        "\\u0000",
                                        ",",
                                        "1e9",
                                        "\xff\xff\xff\xff",
                                        "]]]]]]",
                                        "18446744073709551616",
                                        "(",
                                        "s",
                                        "\x85",
                                        "h",
                                        "R",
                                        "b",
                                        "\x81",
                                        "\x94",
                                        "cos\nsystem\n",
                                        "Q"};
    size_t at = size ? next_random(state) % size : 0, other = size ? next_random(state) % size : 0;
    size_t n = size - (at > other ? at : other);
    n = n ? next_random(state) % (n < 40 ? n : 40) : 0;
    const char *word = words[next_random(state) % (sizeof words / sizeof *words)];
    switch (next_random(state) % 6) {
    case 0:
        if (size)
            bytes[at] ^= (uint8_t)(1u << next_random(state) % 8);
        return size;
    case 1:
        if (size)
            bytes[at] = (uint8_t)next_random(state);
        return size;
    case 2: /* copy */
        memmove(bytes + at, bytes + other, n);
        return size;
    case 3: /* take out */
        memmove(bytes + at, bytes + at + n, size - at - n);
        return size - n;
    case 4: /* put in */
        n = strlen(word);
        if (size + n > CAPACITY)
            return size;
        memmove(bytes + at + n, bytes + at, size - at);
        memcpy(bytes + at, word, n);
        return size + n;
    default: /* cut off */
        return next_random(state) % 8 ? size : at;
    }
}

static size_t make_input(uint8_t *bytes, uint64_t seed_number, uint64_t run)
{
    uint64_t state = seed_number * 0x2545f4914f6cdd1du + run;
    const seed *s = &seeds[next_random(&state) % (uint64_t)n_seeds];
    size_t size = s->size;
    memcpy(bytes, s->bytes, size);
    for (uint64_t k = next_random(&state) % 6; k; k--)
        size = 1 + change(bytes + 1, size - 1, &state);
    return size;
}

/* ---- running --------------------------------------------------------------------------------- */

static void run_path(const char *path)
{
    struct stat facts;
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        DIR *folder = opendir(path);
        for (struct dirent *e; folder && (e = readdir(folder));) {
            char inside[4096];
            snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
            if (e->d_name[0] != '.')
                run_path(inside);
        }
        if (folder)
            closedir(folder);
        return;
    }
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(CAPACITY);
    size_t size = file ? fread(bytes, 1, CAPACITY, file) : 0;
    if (!file)
        stop(path);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
}

/* The input that is tried is there if it ends the process. */
static void keep(const char *folder, const uint8_t *bytes, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/last", folder);
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(bytes, 1, size, file);
        fclose(file);
    }
}

int main(int argc, char **argv)
{
    uint64_t number = 1, run = 0, runs = 20000;
    double seconds = 0;
    const char *folder = NULL;
    bool files = false;
    make_seeds();
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool taken = true;
        if (strcmp(argv[i], "--seed") == 0)
            number = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--first") == 0)
            run = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--runs") == 0)
            runs = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--catch") == 0)
            folder = value;
        else
            taken = false;
        i += taken;
        if (!taken) {
            run_path(argv[i]);
            files = true;
        }
    }
    if (files)
        return 0;
    if (folder)
        mkdir(folder, 0777);
    static uint8_t bytes[CAPACITY + 64];
    time_t end = time(NULL) + (time_t)seconds;
    uint64_t first = run;
    for (; seconds > 0 ? time(NULL) < end : run < first + runs; run++) {
        size_t size = make_input(bytes, number, run);
        if (folder)
            keep(folder, bytes, size);
        LLVMFuzzerTestOneInput(bytes, size);
    }
    printf("%llu programs of seed %llu\n", (unsigned long long)(run - first),
           (unsigned long long)number);
    return 0;
}
#endif
