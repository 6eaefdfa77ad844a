/* nvrtc_check.c -- compiles a kernel program with NVRTC, without a GPU.
 *
 *   nvrtc_check                                        prints which NVRTC there is; 77 without one
 *   nvrtc_check FOLDER ARCHITECTURE FILE [--optimize]  the headers of FOLDER are there for #include
 *
 * Without --optimize the code is made as quickly as this NVRTC can; with it as the library has it,
 * and what the assembler says of each kernel (ptxas -v) is printed, and how many bytes a thread of it loads before it
 * uses the first of them: "loads: NAME BYTES", the most that there are anywhere. */
#include <ctype.h>
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
    X(GetPTXSize, (program * p, size_t * bytes))                                                   \
    X(GetPTX, (program * p, char *text))                                                           \
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

/* ---- loads in flight: PTX, a line an instruction, in the order in which they are issued ---- */

enum { MOST_LOADED = 256, NAME_BYTES = 32 };
typedef struct flight {
    char loaded[MOST_LOADED][NAME_BYTES]; /* registers that were loaded and not used yet */
    int n, bytes, most;
} flight;

static void land_all(flight *f)
{
    f->most = f->bytes > f->most ? f->bytes : f->most;
    f->n = f->bytes = 0;
}

/* The next register's name at or after text; NULL: there is none. */
static const char *next_register(const char *text, char name[NAME_BYTES])
{
    const char *at = strchr(text, '%');
    int n = 0;
    if (!at)
        return NULL;
    while (n < NAME_BYTES - 1 && at[n] && (n == 0 || isalnum((unsigned char)at[n])))
        n++;
    memcpy(name, at, (size_t)n);
    name[n] = '\0';
    return at + n;
}

static bool uses_loaded(const flight *f, const char *operands)
{
    char name[NAME_BYTES];
    while ((operands = next_register(operands, name)))
        for (int i = 0; i < f->n; i++)
            if (strcmp(f->loaded[i], name) == 0)
                return true;
    return false;
}

/* ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16]; */
static void load_line(flight *f, const char *line)
{
    const char *from = strchr(line, '['), *type = strpbrk(line, " \t{");
    if (!from || uses_loaded(f, from))
        land_all(f);
    while (type && type > line && isdigit((unsigned char)type[-1]))
        type--;
    int bits = type ? atoi(type) : 0;
    char name[NAME_BYTES];
    for (const char *at = line; (at = next_register(at, name)) && at < from;)
        if (f->n < MOST_LOADED) {
            memcpy(f->loaded[f->n++], name, NAME_BYTES);
            f->bytes += bits / 8;
        }
}

static void print_loads(char *ptx)
{
    flight f = {.n = 0};
    char name[256] = "";
    for (char *line = strtok(ptx, "\n"); line; line = strtok(NULL, "\n")) {
        while (isspace((unsigned char)*line))
            line++;
        const char *entry = strstr(line, ".entry ");
        if (entry) {
            sscanf(entry, ".entry %255[A-Za-z0-9_]", name);
            f.most = 0;
        } else if (strncmp(line, "ld.global", 9) == 0) {
            load_line(&f, line);
        } else if (*line == '$' || *line == '@' || *line == '}' || strncmp(line, "bra", 3) == 0 ||
                   strncmp(line, "bar", 3) == 0 || (*line != '.' && uses_loaded(&f, line))) {
            land_all(&f);
        }
        if (*line == '}' && *name) {
            printf("loads: %s %d\n", name, f.most);
            *name = '\0';
        }
    }
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
    if (code == 0 && optimize && nvrtc.GetPTXSize(p, &bytes) == 0) {
        char *ptx = calloc(1, bytes + 1);
        if (ptx && nvrtc.GetPTX(p, ptx) == 0)
            print_loads(ptx);
        free(ptx);
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
