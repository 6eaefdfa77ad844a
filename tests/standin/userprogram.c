/* userprogram.c -- see userprogram.h. */
#include "userprogram.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What CUDA C++ has and C++ has not. */
static const char before[] =
    "#include <cmath>\n#include <memory>\n#include <ucontext.h>\n#include <utility>\n#include "
    "<vector>\n"
    "namespace standin {\n"
    "struct size { unsigned x, y, z; };\n"
    "/* The items of a group take turns on one thread: each goes on until it meets the others. */\n"
    "struct item { ucontext_t at; std::unique_ptr<char[]> stack; bool over; };\n"
    "static std::vector<item> items;\n"
    "static ucontext_t group;\n"
    "static unsigned current;\n"
    "static void meet() { swapcontext(&items[current].at, &group); }\n"
    "}\n"
    "static thread_local standin::size threadIdx, blockIdx, blockDim, gridDim;\n"
    "#define __global__\n#define __device__\n#define __shared__ static\n#define __align__(n)\n"
    "#define __constant__\n#define __syncthreads() standin::meet()\n#define __threadfence_block()\n"
    "#define __threadfence()\n#define __cosf std::cos\n#define __sinf std::sin\n#define __tanf "
    "std::tan\n"
    "#define __expf std::exp\n#define __exp10f(x) std::pow(10.0f, x)\n#define __logf std::log\n"
    "#define __log2f std::log2\n#define __log10f std::log10\n#define rsqrtf(x) (1 / std::sqrt(x))\n"
    "#define __popcll __builtin_popcountll\n#define __clzll __builtin_clzll\n"
    "#define ATOMIC(NAME, VALUE) template <class T> static T NAME(T *p, T v) \\\n"
    "{ T old = __atomic_load_n(p, 0); T now; do now = VALUE; \\\n"
    "  while (!__atomic_compare_exchange_n(p, &old, now, false, 0, 0)); return old; }\n"
    "ATOMIC(atomicAdd, old + v) ATOMIC(atomicMin, v < old ? v : old) ATOMIC(atomicMax, old < v ? v "
    ": old)\n"
    "ATOMIC(atomicAnd, old & v) ATOMIC(atomicOr, old | v) ATOMIC(atomicXor, old ^ v) "
    "ATOMIC(atomicExch, v)\n"
    "template <class T> static T atomicCAS(T *p, T old, T v)\n"
    "{ __atomic_compare_exchange_n(p, &old, v, false, 0, 0); return old; }\n";

/* The kernel as a function of an array of pointers, over a grid. */
static const char after[] =
    "\nalignas(16) char tern_shared[48 << 10];\n"
    "template <class... A> struct entry_of {\n"
    "    static constexpr unsigned sizes[] = {unsigned(sizeof(A))..., 0};\n"
    "    template <std::size_t... I>\n"
    "    static void call(void (*f)(A...), void **args, std::index_sequence<I...>)\n"
    "    { f(*(A *)args[I]...); }\n"
    "    static void go(void (*f)(A...), void **args)\n"
    "    { call(f, args, std::index_sequence_for<A...>()); }\n"
    "};\n"
    "template <class... A> entry_of<A...> entry(void (*)(A...));\n"
    "using made = decltype(entry(STANDIN_KERNEL));\n"
    "namespace standin {\n"
    "static void **arguments;\n"
    "static void enter() { made::go(STANDIN_KERNEL, arguments); items[current].over = true; }\n"
    "static void begin(unsigned n, void **args)\n"
    "{\n"
    "    constexpr std::size_t bytes = 256 << 10;\n"
    "    arguments = args;\n"
    "    if (items.size() < n) items.resize(n);\n"
    "    for (unsigned t = 0; t < n; t++) {\n"
    "        item &one = items[t];\n"
    "        if (!one.stack) one.stack.reset(new char[bytes]);\n"
    "        getcontext(&one.at);\n"
    "        one.at.uc_stack.ss_sp = one.stack.get();\n"
    "        one.at.uc_stack.ss_size = bytes;\n"
    "        one.at.uc_link = &group;\n"
    "        one.over = false;\n"
    "        makecontext(&one.at, enter, 0);\n"
    "    }\n"
    "}\n"
    "}\n"
    "extern \"C\" const unsigned *standin_sizes() { return made::sizes; }\n"
    "extern \"C\" void standin_run(const unsigned g[3], const unsigned b[3], void **args)\n"
    "{\n"
    "    unsigned n = b[0] * b[1] * b[2];\n"
    "    for (unsigned block = 0; block < g[0] * g[1] * g[2]; block++) {\n"
    "        auto place = [&](unsigned t) {\n"
    "            gridDim = {g[0], g[1], g[2]}; blockDim = {b[0], b[1], b[2]};\n"
    "            blockIdx = {block % g[0], block / g[0] % g[1], block / g[0] / g[1]};\n"
    "            threadIdx = {t % b[0], t / b[0] % b[1], t / b[0] / b[1]};\n"
    "        };\n"
    "        if (!STANDIN_MEETS) {\n"
    "            for (unsigned t = 0; t < n; t++) { place(t); made::go(STANDIN_KERNEL, args); }\n"
    "            continue;\n"
    "        }\n"
    "        standin::begin(n, args);\n"
    "        for (unsigned going = n; going;)\n"
    "            for (unsigned t = 0; t < n; t++) {\n"
    "                standin::item &one = standin::items[t];\n"
    "                if (one.over) continue;\n"
    "                place(standin::current = t);\n"
    "                swapcontext(&standin::group, &one.at);\n"
    "                going -= one.over;\n"
    "            }\n"
    "    }\n"
    "}\n";

/* "extern __shared__" declares what `after` defines; other shared memory is a static variable. */
static void write_text(FILE *file, const char *text)
{
    static const char outer[] = "extern __shared__";
    const char *found = strstr(text, outer);
    if (!found) {
        fputs(text, file);
        return;
    }
    fwrite(text, 1, (size_t)(found - text), file);
    fputs("extern", file);
    fputs(found + sizeof outer - 1, file);
}

/* An image is this line with the bytes of the library in it, then the library. */
#define HEAD "standin-user %zu\n"

static char *read_image(const char *path, size_t *bytes)
{
    struct stat about;
    char head[48], *image = NULL;
    int handle = open(path, O_RDONLY | O_CLOEXEC);
    if (handle >= 0 && fstat(handle, &about) == 0 && about.st_size > 0) {
        size_t n = (size_t)about.st_size;
        size_t before_it = (size_t)snprintf(head, sizeof head, HEAD, n);
        *bytes = before_it + n;
        image = malloc(*bytes);
        if (image) {
            memcpy(image, head, before_it);
            if (read(handle, image + before_it, n) != (ssize_t)n) {
                free(image);
                image = NULL;
            }
        }
    }
    if (handle >= 0)
        close(handle);
    return image;
}

char *user_program_compile(const char *text, const char *kernel, size_t *bytes, char *log,
                           size_t log_bytes)
{
    char source[64], path[64], command[512], *image = NULL;
    const char *own = strstr(text, "#line 1");
    int meets = own && strstr(own, "barrier(");
    snprintf(source, sizeof source, "/tmp/tern-standin-XXXXXX.cpp");
    int handle = mkstemps(source, 4);
    FILE *file = handle >= 0 ? fdopen(handle, "w") : NULL;
    if (!file)
        return NULL;
    fputs(before, file);
    write_text(file, text);
    fprintf(file, "\n#define STANDIN_KERNEL %s\n#define STANDIN_MEETS %d\n", kernel, meets != 0);
    fputs(after, file);
    fclose(file);
    snprintf(path, sizeof path, "%.*s.so", (int)strlen(source) - 4, source);
    snprintf(command, sizeof command, "c++ -std=c++17 -O1 -shared -fPIC -w -pthread -o %s %s 2>&1",
             path, source);
    FILE *compiler = popen(command, "r");
    size_t n = compiler ? fread(log, 1, log_bytes - 1, compiler) : 0;
    log[n] = '\0';
    for (char scrap[256]; compiler && fread(scrap, 1, sizeof scrap, compiler) > 0;)
        ;
    if (compiler && pclose(compiler) == 0 && !(image = read_image(path, bytes)))
        snprintf(log, log_bytes, "%s cannot be read", path);
    unlink(path);
    unlink(source);
    return image;
}

struct user_program {
    void *library;
    user_kernel kernel;
};

user_program *user_program_load(const char *image)
{
    size_t bytes;
    char path[] = "/tmp/tern-standin-XXXXXX";
    const unsigned *(*sizes)(void);
    void *symbol[2];
    if (sscanf(image, HEAD, &bytes) != 1)
        return NULL;
    user_program *p = calloc(1, sizeof *p);
    int handle = p ? mkstemp(path) : -1;
    if (handle < 0) {
        free(p);
        return NULL;
    }
    if (write(handle, strchr(image, '\n') + 1, bytes) == (ssize_t)bytes)
        p->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    close(handle);
    unlink(path); /* the library stays */
    if (!p->library) {
        free(p);
        return NULL;
    }
    symbol[0] = dlsym(p->library, "standin_sizes");
    symbol[1] = dlsym(p->library, "standin_run");
    memcpy(&sizes, &symbol[0], sizeof sizes);
    memcpy(&p->kernel.run, &symbol[1], sizeof p->kernel.run);
    p->kernel.sizes = sizes();
    return p;
}

const user_kernel *user_program_find(user_program *program, const char *name)
{
    return dlsym(program->library, name) ? &program->kernel : NULL;
}

void user_program_unload(user_program *program)
{
    if (program)
        dlclose(program->library);
    free(program);
}
