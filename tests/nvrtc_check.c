/* nvrtc_check.c -- compiles a kernel program with NVRTC, without a GPU.
 *
 *   nvrtc_check                                        prints which NVRTC there is; 77 without one
 *   nvrtc_check FOLDER ARCHITECTURE FILE [--optimize]  the headers of FOLDER are there for #include
 *
 * Without --optimize the code is made as quickly as this NVRTC can; with it as the library has it,
 * and what the assembler says of each kernel (ptxas -v) is printed. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program program;

/* NVRTC's functions: https://docs.nvidia.com/cuda/nvrtc. Results are 0 for success. */
#define FUNCTIONS(X)                                                                               \
    X(Version, (int *major, int *minor))                                                           \
    X(CreateProgram, (program * *made, const char *text, const char *name, int headers,            \
                      const char *const *texts, const char *const *names))                         \
    X(CompileProgram, (program * p, int n, const char *const *options))                            \
    X(GetProgramLogSize, (program * p, size_t * bytes))                                            \
    X(GetProgramLog, (program * p, char *log))                                                     \
    X(DestroyProgram, (program * *p))
static struct {
#define X(NAME, PARAMETERS) int(*NAME) PARAMETERS;
    FUNCTIONS(X)
#undef X
} nvrtc;

enum { MAX_HEADERS = 128 };
static const char *header_texts[MAX_HEADERS], *header_names[MAX_HEADERS];
static int headers;

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    char *text = calloc(1, (size_t)bytes + 1);
    if (text && fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

static bool read_headers(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return false;
    for (struct dirent *entry; (entry = readdir(dir)) && headers < MAX_HEADERS;) {
        char path[1024];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        header_texts[headers] = read_file(path);
        header_names[headers] = strdup(entry->d_name);
        if (header_texts[headers] && header_names[headers])
            headers++;
    }
    closedir(dir);
    return headers > 0;
}

static bool load(void)
{
    static const char *const names[] = {"libnvrtc.so",
                                        "libnvrtc.so.13",
                                        "libnvrtc.so.12",
                                        "/usr/local/cuda/lib64/libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so.13",
                                        "/usr/local/cuda/lib64/libnvrtc.so.12"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (!library)
        return false;
    bool all = true;
    void *symbol;
#define X(NAME, PARAMETERS)                                                                        \
    symbol = dlsym(library, "nvrtc" #NAME);                                                        \
    memcpy(&nvrtc.NAME, &symbol, sizeof symbol);                                                   \
    all = all && symbol;
    FUNCTIONS(X)
#undef X
    return all;
}

enum { INVALID_OPTION = 5 };

/* NVRTC's result, with its log printed where the program does not compile. */
static int compile(const char *path, const char *text, const char *architecture, bool optimize)
{
    char option[64];
    snprintf(option, sizeof option, "--gpu-architecture=%s", architecture);
    const char *options[] = {option, "--fmad=false", "--disable-warnings",
                             optimize ? "--ptxas-options=-v" : "--Ofast-compile=max"};
    program *p = NULL;
    int code = nvrtc.CreateProgram(&p, text, path, headers, header_texts, header_names);
    if (code != 0)
        return code;
    code = nvrtc.CompileProgram(p, 4, options);
    if (code == INVALID_OPTION && !optimize) { /* an older NVRTC */
        nvrtc.DestroyProgram(&p);
        return compile(path, text, architecture, true);
    }
    size_t bytes = 0;
    if ((code != 0 || optimize) && nvrtc.GetProgramLogSize(p, &bytes) == 0) {
        char *log = calloc(1, bytes + 1);
        if (log && nvrtc.GetProgramLog(p, log) == 0)
            printf("%.*s\n", code != 0 ? 4000 : (int)bytes, log);
        free(log);
    }
    nvrtc.DestroyProgram(&p);
    return code;
}

int main(int argc, char **argv)
{
    int major = 0, minor = 0;
    bool optimize = argc == 5 && strcmp(argv[4], "--optimize") == 0;
    if (argc != 1 && argc != 4 && !optimize) {
        fprintf(stderr, "usage: nvrtc_check [FOLDER ARCHITECTURE FILE [--optimize]]\n");
        return 2;
    }
    if (!load()) {
        puts("SKIP: NVRTC is not installed: kernels are not compiled for NVIDIA's GPUs");
        return 77;
    }
    nvrtc.Version(&major, &minor);
    if (argc == 1) {
        printf("NVRTC %d.%d\n", major, minor);
        return 0;
    }
    char *text = read_file(argv[3]);
    if (!text || !read_headers(argv[1])) {
        fprintf(stderr, "nvrtc_check: no file %s, or no headers in %s\n", argv[3], argv[1]);
        return 2;
    }
    int code = compile(argv[3], text, argv[2], optimize);
    if (code != 0)
        printf("FAIL %s for %s (NVRTC's error %d)\n", argv[3], argv[2], code);
    free(text);
    return code != 0;
}
