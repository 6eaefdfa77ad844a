/* test_user_kernels.c -- programs in OpenCL C (tests/kernels) as a user of any device writes them: the same numbers
 * everywhere. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "environment.h"
#include "support.h"
#include "temporary.h"
#include "user_compiles.h"
#ifdef __linux__
#include <link.h>
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Arguments: "f" a float32 tensor of numbers between -1 and 1, "F" one of zeros, "i" int32 of 0 to 99, "I" of
 * zeros, "h" float16 of zeros, "u" uint8 of 0 to 99, "U" of zeros, each followed by how many elements; "n" an int,
 * "x" a float, "l" bytes of local memory. `sums` are those of the results (F I h U) in this order, weighted (see
 * digest), as PoCL computes them, and `share` is how much of one may be wrong. */
typedef struct program {
    const char *file, *kernel, *arguments;
    int64_t items[2], group[2];
    double sums[3], share;
} program;

static const program programs[] = {
#define P(...) {__VA_ARGS__},
#include "user_kernels.def"
#undef P
};
enum { PROGRAMS = sizeof programs / sizeof *programs, MOST = 8 };

/* ---- running one ------------------------------------------------------------------------- */

static char *read_text(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/kernels/%s.cl", TEST_FOLDER, name);
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 14);
    assert_non_null(f);
    assert_true(text && fread(text, 1, (1 << 14) - 1, f) > 0);
    fclose(f);
    return text;
}

/* Numbers that every device gets alike. */
static tern_tensor *input(const char *device, char kind, int64_t n)
{
    float *x = malloc(sizeof *x * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        x[i] =
            kind == 'f' ? (float)((i * 37 + 11) % 129 - 64) / 64.0f : (float)((i * 53 + 7) % 100);
    tern_dtype dtype = kind == 'f' ? TERN_F32 : kind == 'i' ? TERN_I32 : TERN_U8;
    tern_tensor *y = tern_to_dtype(tern_from_data(x, TERN_SHAPE(n), TERN_F32, device), dtype);
    free(x);
    return y;
}

typedef struct arguments {
    tern_kernel_arg list[MOST];
    tern_tensor *results[3];
    int n, n_results;
} arguments;

static void make_arguments(arguments *a, const char *text, const char *device)
{
    *a = (arguments){.n = 0};
    for (const char *p = text; *p;) {
        char kind = *p, *end;
        double value = strtod(p + 1, &end);
        p = end + strspn(end, " ");
        tern_kernel_arg arg;
        if (kind == 'n')
            arg = TERN_ARG_INT((int)value);
        else if (kind == 'x')
            arg = TERN_ARG_FLOAT((float)value);
        else if (kind == 'l')
            arg = TERN_ARG_LOCAL((size_t)value);
        else if (strchr("fiu", kind))
            arg = TERN_ARG_TENSOR(input(device, kind, (int64_t)value));
        else {
            tern_dtype dtype = kind == 'F'   ? TERN_F32
                               : kind == 'I' ? TERN_I32
                               : kind == 'U' ? TERN_U8
                                             : TERN_F16;
            tern_tensor *x = tern_zeros(TERN_SHAPE((int64_t)value), dtype, device);
            a->results[a->n_results++] = x;
            arg = TERN_ARG_TENSOR(x);
        }
        a->list[a->n++] = arg;
    }
}

/* A sum in which every place counts. */
static double digest(const tern_tensor *x)
{
    double *values = test_read(x), sum = 0;
    for (int64_t i = 0; i < tern_numel(x); i++)
        sum += values[i] * (1 + (double)(i % 13) / 13);
    free(values);
    return sum;
}

static void run_program(const char *device, const program *p)
{
    arguments a;
    char *text = read_text(p->file);
    tern_kernel *kernel = tern_kernel_compile(device, text, p->kernel);
    if (!kernel)
        fail_msg("%s: %s", p->file, tern_last_error());
    tern_kernel_grid grid = {{p->items[0], p->items[1], 1}, {p->group[0], p->group[1], 0}};
    make_arguments(&a, p->arguments, device);
    if (tern_kernel_launch_args(kernel, grid, a.list, a.n) != TERN_OK)
        fail_msg("%s: %s", p->file, tern_last_error());
    for (int i = 0; i < a.n_results; i++) {
        double sum = digest(a.results[i]), wanted = p->sums[i];
        if (getenv("TERN_TEST_PRINT"))
            print_message("%s %d: %.9g\n", p->file, i, sum);
        else if (!(fabs(sum - wanted) <= 1e-4 + p->share * fabs(wanted)))
            fail_msg("%s on %s: result %d sums up to %.9g, not %.9g", p->file, device, i, sum,
                     wanted);
    }
    tern_kernel_free(kernel);
    free(text);
}

static void the_programs_give_the_same_numbers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; compiles(device) && i < PROGRAMS; i++)
        TERN_SCOPE
            run_program(device, &programs[i]);
}

/* ---- what is refused --------------------------------------------------------------------- */

static void a_required_group_is_held_to(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        char *text = compiles(device) ? read_text("tiles") : NULL;
        if (!text)
            continue;
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(16, 16), TERN_F32, device),
                        *y = tern_zeros_like(x);
            tern_kernel *k = tern_kernel_compile(device, text, "tiles");
            tern_kernel_grid wrong = {{16, 16, 1}, {4, 4, 1}};
            assert_int_equal(tern_kernel_launch(k, wrong, TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(x),
                                                TERN_ARG_TENSOR(y), TERN_ARG_INT(16)),
                             TERN_ERR_ARGUMENT);
            assert_error(TERN_ERR_ARGUMENT, "requires groups of 8x8x1, not 4x4x1");
            assert_ok(tern_kernel_launch(k, TERN_GRID_2D(16, 16), TERN_ARG_TENSOR(x),
                                         TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(y), TERN_ARG_INT(16)));
            assert_true(tern_item(tern_sum(y)) == 16 * 16 * 16);
            tern_kernel_free(k);
        }
        free(text);
    }
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        char *text = compiles(device) ? read_text("reduce") : NULL;
        if (!text)
            continue;
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(64), TERN_F32, device);
            tern_kernel *k = tern_kernel_compile(device, text, "reduce");
            assert_int_equal(tern_kernel_launch(k, TERN_GRID(64), TERN_ARG_TENSOR(x)),
                             TERN_ERR_ARGUMENT);
            assert_error(TERN_ERR_ARGUMENT, "takes 4 arguments, 1 were given");
            assert_int_equal(tern_kernel_launch(k, TERN_GRID(64), TERN_ARG_TENSOR(x),
                                                TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(x),
                                                TERN_ARG_INT(64)),
                             TERN_ERR_ARGUMENT);
            tern_clear_error();
            assert_int_equal(tern_kernel_launch(k, TERN_GRID_GROUP(1 << 20, 1 << 20),
                                                TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(x),
                                                TERN_ARG_LOCAL(256), TERN_ARG_INT(64)),
                             TERN_ERR_ARGUMENT);
            assert_error(TERN_ERR_ARGUMENT, "too large");
            tern_kernel_free(k);
            assert_null(tern_kernel_compile(device, text, "no_such_kernel"));
            assert_error(TERN_ERR_ARGUMENT, "no kernel called \"no_such_kernel\"");
            assert_null(tern_kernel_compile(
                device, "__kernel void f(int n)\n{ no_such_thing(n); }\n", "f"));
            assert_error(TERN_ERR_ARGUMENT, "no_such_thing");
        }
        free(text);
    }
}

static void a_kernel_that_is_freed_is_known_to_be_gone(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_kernel *k = compiles(device)
                             ? tern_kernel_compile(device, "__kernel void f(int n) { }", "f")
                             : NULL;
        if (!k)
            continue;
        tern_kernel_free(k);
        assert_int_equal(tern_kernel_launch(k, TERN_GRID(1), TERN_ARG_INT(1)), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "tern_kernel_launch: the kernel kernel is gone: f");
        tern_kernel_free(k);
        assert_error(TERN_ERR_STATE, "tern_kernel_free: the kernel kernel is gone: f");
    }
}

/* ---- names --------------------------------------------------------------------------------- */

/* Names that OpenCL C leaves to programs, and that mean something in C++, to its compilers or in the library's text. */
static const char *const names[] = {
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "bitand",
    "bitor",
    "catch",
    "char16_t",
    "char32_t",
    "class",
    "compl",
    "constexpr",
    "const_cast",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "friend",
    "linux",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "protected",
    "public",
    "reinterpret_cast",
    "static_assert",
    "static_cast",
    "template",
    "this",
    "throw",
    "thread_local",
    "try",
    "typeid",
    "typename",
    "typeof",
    "unix",
    "using",
    "virtual",
    "wchar_t",
    "xor",
    "xor_eq",
    "g",
    "i",
    "x",
    "y",
    "z",
    "N",
    "T",
    "V",
    "CALL",
    "item",
    "group",
    "groups",
    "words",
    "shared",
    "meet",
    "dims",
    "run",
    "visibility",
    "bits",
    "value",
    "type",
    "number",
    "part",
    "rest",
    "pad",
    "std",
    "concept",
    "requires",
    "co_await",
    "consteval",
    "constinit",
    "char8_t",
    "final",
    "override",
    "import",
    "module",
    "tid",
    "index",
    "of",
};
enum { NAMES = sizeof names / sizeof *names };

/* What is written once for each name, with it for %s, before the kernel and in it: q[0] becomes how many there are. */
static const struct {
    const char *kind, *outside, *inside;
    bool any_end; /* nothing of a stand-in's own may follow it */
} positions[] = {
    {"variable", "", "{ float %s = q[0]; %s += 1.0f; q[0] = %s; }\n", true},
    {"function", "float %s(float v) { return v + 1.0f; }\n", "q[0] = %s(q[0]);\n", true},
    {"member", "struct s_%s { float %s; };\n", "{ struct s_%s v; v.%s = 1.0f; q[0] += v.%s; }\n",
     true},
    {"parameter", "float f_%s(float %s) { return %s + 1.0f; }\n", "q[0] = f_%s(q[0]);\n", true},
    {"macro", "#define %s 1.0f\n", "q[0] += %s;\n", false},
};

static char *source_of_names(size_t position)
{
    const size_t most = 1 << 15;
    char *text = malloc(most);
    size_t n = 0;
    for (int i = 0; i < NAMES; i++)
        n += (size_t)snprintf(text + n, most - n, positions[position].outside, names[i], names[i],
                              names[i]);
    n += (size_t)snprintf(text + n, most - n, "__kernel void count(__global float *q)\n{\n");
    for (int i = 0; i < NAMES; i++)
        n += (size_t)snprintf(text + n, most - n, positions[position].inside, names[i], names[i],
                              names[i]);
    n += (size_t)snprintf(text + n, most - n, "}\n");
    assert_true(n < most);
    return text;
}

/* Launches the kernel called name, which adds to the first of its tensor's elements. */
static void expect_count(const char *device, const char *kind, const char *text, const char *name,
                         double wanted)
{
    TERN_SCOPE {
        tern_tensor *q = tern_zeros(TERN_SHAPE(1), TERN_F32, device);
        tern_kernel *k = tern_kernel_compile(device, text, name);
        if (!k || tern_kernel_launch(k, TERN_GRID(1), TERN_ARG_TENSOR(q)) != TERN_OK)
            fail_msg("%s on %s, %s: %s", kind, device, name, tern_last_error());
        if (tern_item(q) != wanted)
            fail_msg("%s on %s, %s: %g, not %g", kind, device, name, tern_item(q), wanted);
        tern_kernel_free(k);
    }
}

static void names_of_other_languages_are_a_programs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; compiles(device) && i < sizeof positions / sizeof *positions; i++) {
        if (!positions[i].any_end && strncmp(device, "cuda", 4) == 0)
            continue;
        char *text = source_of_names(i);
        expect_count(device, positions[i].kind, text, "count", NAMES);
        free(text);
    }
}

static void a_kernel_may_have_any_name(void **state)
{
    static const char *const some[] = {"g", "i", "x", "y", "z", "new", "this", "group", "words"};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; compiles(device) && i < sizeof some / sizeof *some; i++) {
        char text[128];
        snprintf(text, sizeof text, "__kernel void %s(__global float *q) { q[0] += 1.0f; }\n",
                 some[i]);
        expect_count(device, "kernel", text, some[i], 1);
    }
}

/* ---- the cpu without a compiler ---------------------------------------------------------- */

static void without_a_compiler_the_cpu_asks_opencl(void **state)
{
    (void)state;
    bool there = false;
    tern_device_info info;
    for (int i = 0; i < tern_device_count("opencl") && !there; i++) {
        char name[32];
        snprintf(name, sizeof name, "opencl:%d", i);
        there = tern_device_get_info(name, &info) == TERN_OK && info.type == TERN_DEVICE_CPU;
    }
    if (strcmp(test_device(0), "cpu") != 0)
        skip();
    char *own = getenv("TERN_CXX") ? strdup(getenv("TERN_CXX")) : NULL;
    set_variable("TERN_CXX", "off");
    if (there) {
        TERN_SCOPE
            run_program("cpu", &programs[0]);
    } else {
        assert_null(tern_kernel_compile("cpu", "__kernel void f(int n) { }", "f"));
        assert_error(TERN_ERR_UNSUPPORTED, "a C++ compiler does");
    }
    set_variable("TERN_CXX", own);
    free(own);
}

static void compiled_kernels_of_the_cpu_are_kept(void **state)
{
    (void)state;
    char folder[TEMPORARY_BYTES], command[2 * TEMPORARY_BYTES];
    tern_memory_stats before, after;
    if (strcmp(test_device(0), "cpu") != 0 || !compiles("cpu"))
        skip();
    assert_non_null(mkdtemp(temporary(folder, "tern-kernels-XXXXXX")));
    set_variable("TERN_CACHE_DIR", folder);
    assert_ok(tern_memory_get_stats("cpu", &before));
    for (int i = 0; i < 2; i++)
        TERN_SCOPE
            run_program("cpu", &programs[0]);
    assert_ok(tern_memory_get_stats("cpu", &after));
    assert_int_equal(after.programs_built - before.programs_built, 1);
    assert_int_equal(after.programs_loaded - before.programs_loaded, 1);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
    set_variable("TERN_CACHE_DIR", NULL);
}

#ifdef __linux__
/* LeakSanitizer ends a program that has a thread-local block at 16 bytes behind a page's start. Whether the
 * allocator puts one there is chance; with the alignment that kernels' libraries ask for it can't. */
static int count_kernels(struct dl_phdr_info *info, size_t bytes, void *aligned)
{
    (void)bytes;
    for (int i = 0; strstr(info->dlpi_name, "/kernel.so") && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            assert_true(info->dlpi_phdr[i].p_align >= 32);
            ++*(int *)aligned;
        }
    return 0;
}

static void thread_local_blocks_of_kernels_are_aligned(void **state)
{
    int aligned = 0;
    (void)state;
    if (strcmp(test_device(0), "cpu") != 0 || !compiles("cpu"))
        skip();
    for (int i = 0; i < PROGRAMS; i++) {
        char *text = read_text(programs[i].file);
        tern_kernel *k = tern_kernel_compile("cpu", text, programs[i].kernel);
        assert_non_null(k);
        dl_iterate_phdr(count_kernels, &aligned);
        tern_kernel_free(k);
        free(text);
    }
    assert_true(aligned > 0);
}
#else
static void thread_local_blocks_of_kernels_are_aligned(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_programs_give_the_same_numbers),
        TEST(a_required_group_is_held_to),
        TEST(wrong_arguments_are_refused),
        TEST(a_kernel_that_is_freed_is_known_to_be_gone),
        TEST(names_of_other_languages_are_a_programs),
        TEST(a_kernel_may_have_any_name),
        TEST(without_a_compiler_the_cpu_asks_opencl),
        TEST(compiled_kernels_of_the_cpu_are_kept),
        TEST(thread_local_blocks_of_kernels_are_aligned),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
