/* nvrtc_check.c -- compiles kernel programs with NVRTC, without a GPU: nvrtc_check FOLDER FILE...
 *
 * The headers of FOLDER are there for #include. Exits 77 where NVRTC is not installed. */
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

static const char *const architectures[] = {"sm_75", "sm_90", "sm_120"};

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

static bool compile(const char *path, const char *text, const char *architecture)
{
    char option[64];
    snprintf(option, sizeof option, "--gpu-architecture=%s", architecture);
    const char *options[] = {option, "--fmad=false", "--disable-warnings"};
    program *p = NULL;
    if (nvrtc.CreateProgram(&p, text, path, headers, header_texts, header_names) != 0)
        return false;
    bool built = nvrtc.CompileProgram(p, 3, options) == 0;
    if (!built) {
        size_t bytes = 0;
        nvrtc.GetProgramLogSize(p, &bytes);
        char *log = calloc(1, bytes + 1);
        if (log && nvrtc.GetProgramLog(p, log) == 0)
            printf("FAIL %s for %s:\n%.2000s\n", path, architecture, log);
        free(log);
    }
    nvrtc.DestroyProgram(&p);
    return built;
}

int main(int argc, char **argv)
{
    int failed = 0, compiled = 0, major = 0, minor = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: nvrtc_check FOLDER FILE...\n");
        return 2;
    }
    if (!load()) {
        puts("SKIP: NVRTC is not installed: kernels are not compiled for NVIDIA's GPUs");
        return 77;
    }
    if (!read_headers(argv[1])) {
        fprintf(stderr, "nvrtc_check: no headers in %s\n", argv[1]);
        return 2;
    }
    nvrtc.Version(&major, &minor);
    for (int i = 2; i < argc; i++) {
        char *text = read_file(argv[i]);
        for (size_t a = 0; text && a < sizeof architectures / sizeof *architectures; a++) {
            failed += !compile(argv[i], text, architectures[a]);
            compiled++;
        }
        failed += !text;
        free(text);
    }
    printf("NVRTC %d.%d: %d programs, %d failed\n", major, minor, compiled, failed);
    return failed != 0;
}
