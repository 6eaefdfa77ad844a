/* test_opencl_limits.c -- what the opencl backend makes of drivers that want memory to begin
 * elsewhere, or do not compile a kernel that it wrote. Each is a child that runs this program again, before the shim's driver. */
#include "rerun.h"
#include <math.h>
#include <tern/graph.h>

/* Large blocks, which are parts of others, and a recording whose values are: with what the cpu
 * computes. */
static int parts(void)
{
    enum { N = 450001, ROWS = 7 };
    static float at[2][2 * N];
    for (int d = 0; d < 2; d++) {
        const char *device = d ? "opencl:0" : "cpu";
        tern_graph *graph = tern_graph_new(device);
        TERN_SCOPE {
            tern_tensor *x = tern_to(tern_linspace(-3, 5, N, TERN_F32, "cpu"), device), *y = NULL;
            tern_tensor *m =
                tern_reshape(tern_narrow(x, 0, 0, ROWS * ROWS), TERN_SHAPE(ROWS, ROWS));
            TERN_CAPTURE (graph) {
                TERN_SCOPE {
                    tern_tensor *p = tern_matmul(m, m);
                    for (int i = 0; i < 3; i++)
                        p = tern_matmul(tern_add(p, m), m);
                    y = tern_escape(tern_add(tern_mul_scalar(x, TERN_SCALAR(2)), tern_mean(p)));
                }
            }
            tern_tensor *z = tern_add(tern_mul(x, x), x);
            tern_graph_replay(graph);
            tern_copy_to_host(y, at[d], N * sizeof(float));
            tern_copy_to_host(z, at[d] + N, N * sizeof(float));
        }
        tern_graph_free(graph);
    }
    double most = 0;
    for (int i = 0; i < 2 * N; i++) {
        const double off = fabs((double)at[0][i] - (double)at[1][i]);
        most = off > most ? off : most;
    }
    printf("close %d %s", most < 1e-2, tern_last_error());
    return 0;
}

static void note_warning(const char *kind, const char *text, void *user)
{
    (void)user;
    printf("[%s: %.200s]", kind, text);
}

/* A recording of elementwise operations that could be one kernel, replayed. */
static int chain(void)
{
    float values[4] = {0};
    tern_on_warning(note_warning, NULL);
    for (int k = 1; k <= 2; k++) {
        tern_graph *graph = tern_graph_new("opencl:0");
        TERN_SCOPE {
            tern_tensor *x = tern_full(TERN_SHAPE(4), TERN_SCALAR(3), TERN_F32, "opencl:0"),
                        *y = NULL;
            TERN_CAPTURE (graph) {
                TERN_SCOPE {
                    y = tern_escape(tern_square(tern_neg(tern_add(x, x))));
                    if (k == 2)
                        y = tern_escape(tern_abs(y));
                }
            }
            tern_graph_replay(graph);
            tern_copy_to_host(y, values, sizeof values);
            printf("launches %d value %g %s;", (int)tern_graph_size(graph), (double)values[3],
                   tern_last_error());
        }
        tern_graph_free(graph);
    }
    return 0;
}

/* Prints the text's lines of chains. */
static void print_chains(const tern_graph *graph)
{
    char *text = tern_graph_text(graph);
    for (char *line = text ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n"))
        if (strstr(line, "  fused: "))
            printf("%.*s; ", (int)strcspn(line, ",") - 2, line + 2);
        else if (strstr(line, "fused: "))
            printf("%s; ", line + strspn(line, " "));
    tern_free_text(text);
}

/* Elementwise operations behind a batch norm, and before its gradient: what became of them, and how
 * far the results are from those without fusion. */
static int slot(void)
{
    float values[2][3 * 4 * 25 * 2];
    tern_on_warning(note_warning, NULL);
    for (int apart = 0; apart < 2; apart++) {
        tern_graph *graph =
            tern_graph_new_with("opencl:0", &(tern_graph_options){.no_fusion = apart});
        TERN_SCOPE {
            const tern_shape shape = TERN_SHAPE(3, 4, 5, 5);
            tern_tensor *x = test_uniform("opencl:0", TERN_F32, shape, -2, 2, 1),
                        *other = test_uniform("opencl:0", TERN_F32, shape, -2, 2, 2), *z = NULL,
                        *dx = NULL;
            tern_requires_grad_(x, true);
            TERN_CAPTURE (graph) {
                TERN_SCOPE {
                    tern_tensor *y = tern_batch_norm(x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5);
                    z = tern_tanh(tern_mul(y, other));
                    tern_escape(tern_sum(z)); /* forward is another chain */
                    const tern_autograd_grad_options options = {.gradients = &other};
                    tern_autograd_grad(&z, 1, &x, 1, &dx, &options);
                    z = tern_escape(z);
                    dx = tern_escape(dx);
                }
            }
            if (!apart)
                print_chains(graph);
            tern_graph_replay(graph);
            tern_copy_to_host(z, values[apart], sizeof values[0] / 2);
            tern_copy_to_host(dx, values[apart] + 3 * 4 * 25, sizeof values[0] / 2);
        }
        tern_graph_free(graph);
    }
    printf("same %d %s", memcmp(values[0], values[1], sizeof values[0]) == 0, tern_last_error());
    return 0;
}

static const scenario scenarios[] = {{"parts", parts}, {"chain", chain}, {"slot", slot}};

static bool no_device(void)
{
    return !tern_device_is_available("opencl:0");
}

static const char *with_limits(const char *name, const char *limits)
{
    return RUN(name, "TERN_OPENCL_FORM=cpu", "OCL_ICD_VENDORS=" TEST_SHIM_VENDORS, limits, NULL);
}

static const char *with_threads(const char *name, const char *limits, const char *threads)
{
    return RUN(name, "TERN_OPENCL_FORM=cpu", "OCL_ICD_VENDORS=" TEST_SHIM_VENDORS, limits, threads,
               "TERN_CACHE_DIR=/dev/null/none", NULL);
}

static void memory_begins_where_the_device_wants_it(void **state)
{
    (void)state;
    if (no_device())
        skip();
    assert_string_equal(with_limits("parts", "TERN_SHIM_LIMITS=base_align=128"), "close 1 ");
    assert_string_equal(with_limits("parts", "TERN_SHIM_LIMITS=base_align=1024"), "close 1 ");
    assert_string_equal(with_limits("parts", "TERN_SHIM_LIMITS=base_align=16384"), "close 1 ");
}

static void commands_stay_apart_where_their_chain_does_not_compile(void **state)
{
    (void)state;
    if (no_device())
        skip();
    assert_string_equal(with_limits("chain", "TERN_SHIM_LIMITS=no_name"),
                        "launches 1 value 36 ;launches 1 value 36 ;");
    const char *output = with_limits("chain", "TERN_SHIM_LIMITS=no_chain"),
               *warning = strstr(output, "[slow: ");
    assert_non_null(warning);
    assert_null(strstr(warning + 1, "["));
    assert_non_null(strstr(output, "launches 3 value 36 ;launches 4 value 36 ;"));
}

/* Then the rows are a chain of their own, whose text compiles. */
static void rows_are_a_chain_where_the_norm_with_them_does_not_compile(void **state)
{
    (void)state;
    static const char *const threads[] = {"TERN_COMPILE_THREADS=0", "TERN_COMPILE_THREADS=1"};
    if (no_device())
        skip();
    for (int i = 0; i < 2; i++) {
        const char *output = with_threads("slot", "TERN_SHIM_LIMITS=no_slot", threads[i]);
        assert_non_null(strstr(output, "]fused: tanh_gradient+mul (float32); fused: mul+tanh "
                                       "(float32); not fused: 2 elementwise commands: "));
        assert_non_null(strstr(output, "; same 1 "));
    }
}

static void a_kernel_of_smaller_groups_is_told(void **state)
{
    (void)state;
    if (no_device())
        skip();
    const char *output = RUN("slot", "TERN_OPENCL_FORM=gpu", "OCL_ICD_VENDORS=" TEST_SHIM_VENDORS,
                             "TERN_SHIM_LIMITS=chain_items=16", "TERN_COMPILE_THREADS=0",
                             "TERN_CACHE_DIR=/dev/null/none", NULL);
    assert_non_null(strstr(
        output,
        "fused: tanh_gradient+mul (float32); fused: mul+tanh (float32); not fused: 2 elementwise "
        "commands: opencl:0: batch_norm with them has work-groups of 16, and alone "));
    assert_non_null(strstr(output, "; same 1 "));
}

int main(int argc, char **argv)
{
    int code = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (code >= 0)
        return code;
    const struct CMUnitTest tests[] = {
        TEST(memory_begins_where_the_device_wants_it),
        TEST(commands_stay_apart_where_their_chain_does_not_compile),
        TEST(rows_are_a_chain_where_the_norm_with_them_does_not_compile),
        TEST(a_kernel_of_smaller_groups_is_told),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return failed;
}
