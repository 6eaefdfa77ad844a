/* test_launch.c -- a launch whose arguments are not what the kernel's text says is refused, on
 * every device, in words that name the parameter; and nothing runs. */
#include "device/program_groups.h"
#include "device/recording.h"
#include "device/registry.h"
#include "device/signature.h"
#include "support.h"
#include "types_host.h"
#include "shapes.h"
#include "tensor/tensor.h"
#include <stdio.h>

/* (OUT, STO, ys)(ARG, tern_nd_index, w)(ARG, REAL, a) */
static const tern_kernel_ref fill = {"copy", "fill"};
/* (OUT, STO, ys)(IN, STO, xs)(IN, u8, kept)(ARG, i64, n)(ARG, REAL, scale) */
static const tern_kernel_ref kept_only = {"random", "kept_only"};

enum { N = 4 };
typedef struct fixture {
    tern_tensor *y, *x, *kept, *other; /* other: of int64 */
    tern_nd_index walk;
    tern_transposition turn;
} fixture;

static fixture make(const char *device)
{
    return (fixture){.y = tern_full(TERN_SHAPE(N), TERN_SCALAR(7), TERN_F32, device),
                     .x = TENSOR(device, TERN_F32, TERN_SHAPE(N), 1, 2, 3, 4),
                     .kept = TENSOR(device, TERN_BOOL, TERN_SHAPE(N), 1, 0, 1, 1),
                     .other = tern_zeros(TERN_SHAPE(N), TERN_I64, device),
                     .walk = {.rows = 1, .inner = N, .step = {1}, .form = TERN_ND_UNIT}};
}

static int fill_arguments(tern_arg *args, const fixture *f)
{
    args[0] = tern_arg_out(f->y);
    args[1] = TERN_ARG_STRUCT(tern_nd_index, &f->walk);
    args[2] = tern_arg_f32(3);
    return 3;
}

static int kept_arguments(tern_arg *args, const fixture *f)
{
    args[0] = tern_arg_out(f->y);
    args[1] = tern_arg_in(f->x);
    args[2] = tern_arg_in(f->kept);
    args[3] = tern_arg_i64(N);
    args[4] = tern_arg_f32(2);
    return 5;
}

/* ---- what goes wrong --------------------------------------------------------------------- */

static void leave_out_last(tern_arg *args, int *n, const fixture *f)
{
    (void)args;
    (void)f;
    --*n;
}
static void leave_out_first(tern_arg *args, int *n, const fixture *f)
{
    (void)f;
    memmove(args, args + 1, (size_t)-- * n * sizeof *args);
}
static void add_one(tern_arg *args, int *n, const fixture *f)
{
    (void)f;
    args[(*n)++] = tern_arg_i32(1);
}
static void swap_out_and_in(tern_arg *args, int *n, const fixture *f)
{
    (void)n;
    args[0] = tern_arg_in(f->x);
    args[1] = tern_arg_out(f->y);
}
static void out_for_in(tern_arg *args, int *n, const fixture *f)
{
    (void)n;
    args[1] = tern_arg_out(f->x);
}
static void i32_for_i64(tern_arg *args, int *n, const fixture *f)
{
    (void)n;
    (void)f;
    args[3] = tern_arg_i32(N);
}
static void i64_for_real(tern_arg *args, int *n, const fixture *f)
{
    (void)n;
    (void)f;
    args[4] = tern_arg_i64(2);
}
static void value_for_buffer(tern_arg *args, int *n, const fixture *f)
{
    (void)n;
    (void)f;
    args[2] = tern_arg_i64(0);
}
static void buffer_for_value(tern_arg *args, int *n, const fixture *f)
{
    (void)n;
    args[3] = tern_arg_unused(f->x);
}
static void other_elements(tern_arg *args, int *n, const fixture *f)
{
    (void)n;
    args[1] = tern_arg_in(f->other);
}
static void other_bytes(tern_arg *args, int *n, const fixture *f)
{
    (void)n;
    args[2] = tern_arg_in(f->x);
}
static void other_struct(tern_arg *args, int *n, const fixture *f)
{
    (void)n;
    args[1] = TERN_ARG_STRUCT(tern_transposition, &f->turn);
}
static void shorter_struct(tern_arg *args, int *n, const fixture *f)
{
    (void)n;
    (void)f;
    args[1].bytes -= 8;
}

static const struct {
    const tern_kernel_ref *kernel;
    void (*change)(tern_arg *args, int *n, const fixture *f);
    const char *parameter, *expected, *given;
} mistakes[] = {
    {&fill, leave_out_last, "3 (a)", "ARG f32", "nothing; 2 arguments"},
    {&fill, leave_out_first, "1 (ys)", "OUT f32", "ARG tern_nd_index of"},
    {&fill, add_one, "4 (one too many)", "nothing", "ARG i32; 4 arguments"},
    {&fill, other_struct, "2 (w)", "ARG tern_nd_index of", "ARG tern_transposition of"},
    {&fill, shorter_struct, "2 (w)", "ARG tern_nd_index of", "ARG tern_nd_index of"},
    {&kept_only, swap_out_and_in, "1 (ys)", "OUT f32", "IN f32"},
    {&kept_only, out_for_in, "2 (xs)", "IN f32", "OUT f32"},
    {&kept_only, i32_for_i64, "4 (n)", "ARG i64", "ARG i32"},
    {&kept_only, i64_for_real, "5 (scale)", "ARG f32", "ARG i64"},
    {&kept_only, value_for_buffer, "3 (kept)", "IN u8", "ARG i64"},
    {&kept_only, buffer_for_value, "4 (n)", "ARG i64", "an unused buffer of f32"},
    {&kept_only, other_elements, "2 (xs)", "IN f32", "IN i64"},
    {&kept_only, other_bytes, "3 (kept)", "IN u8", "IN f32"},
};

static tern_status launch(const fixture *f, const tern_kernel_ref *kernel, const tern_arg *args,
                          int n)
{
    return tern_launch(tern_tensor_place(f->y), kernel, TERN_F32, tern_items(N), args, n);
}

static void refuse(const char *device, const fixture *f, size_t i)
{
    tern_arg args[8];
    int n = (mistakes[i].kernel == &fill ? fill_arguments : kept_arguments)(args, f);
    char words[256];
    uint64_t before = launches(device);
    mistakes[i].change(args, &n, f);
    assert_int_equal(launch(f, mistakes[i].kernel, args, n), TERN_ERR_ARGUMENT);
    snprintf(words, sizeof words, "kernel %s for float32 (%s.cl) can't be launched: parameter ",
             mistakes[i].kernel->name, mistakes[i].kernel->file);
    assert_non_null(strstr(tern_last_error(), words));
    snprintf(words, sizeof words, "%s: expected %s", mistakes[i].parameter, mistakes[i].expected);
    assert_non_null(strstr(tern_last_error(), words));
    assert_error(TERN_ERR_ARGUMENT, mistakes[i].given);
    assert_int_equal(launches(device), before);
    assert_values(f->y, 7, 7, 7, 7);
}

static void refuse_all(const char *device)
{
    TERN_SCOPE {
        fixture f = make(device);
        for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
            refuse(device, &f, i);
    }
}

/* ---- tests ------------------------------------------------------------------------------- */

static void a_first_launch_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) refuse_all(device);
}

static void launches_that_fit_run(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        fixture f = make(device);
        tern_arg args[8];
        assert_ok(launch(&f, &fill, args, fill_arguments(args, &f)));
        assert_values(f.y, 3, 3, 3, 3);
        assert_ok(launch(&f, &kept_only, args, kept_arguments(args, &f)));
        assert_values(f.y, 2, 0, 6, 8);
    }
}

/* A kernel is known by then; another place in the code may launch it otherwise. */
static void a_later_launch_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) refuse_all(device);
}

static void in_and_out_may_be_the_same_tensor(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        fixture f = make(device);
        assert_ok(TERN_LAUNCH(tern_tensor_place(f.x), &kept_only, TERN_F32, tern_items(N),
                              tern_arg_out(f.x), tern_arg_in(f.x), tern_arg_in(f.kept),
                              tern_arg_i64(N), tern_arg_f32(2)));
        assert_values(f.x, 2, 0, 6, 8);
    }
}

/* What was written out as u8 lies in memory as bools do. */
static void bytes_are_bytes(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        fixture f = make(device);
        f.kept = tern_to_dtype(f.kept, TERN_U8);
        tern_arg args[8];
        assert_ok(launch(&f, &kept_only, args, kept_arguments(args, &f)));
        assert_values(f.y, 2, 0, 6, 8);
    }
}

static void rows_are_held_against_their_kind(void **state)
{
    static const tern_kernel_ref add = {"elementwise", "add"}, less = {"logic", "lt"};
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        fixture f = make(device);
        tern_place *place = tern_tensor_place(f.y);
        tern_arg walk = TERN_ARG_STRUCT(tern_nd_index, &f.walk);
        assert_int_equal(TERN_LAUNCH(place, &add, TERN_F32, tern_items(N), tern_arg_out(f.y),
                                     tern_arg_in(f.x), walk),
                         TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "parameter 3 (ys): expected IN f32, given ARG");
        assert_int_equal(TERN_LAUNCH(place, &less, TERN_F32, tern_items(N), tern_arg_out(f.y),
                                     tern_arg_in(f.x), tern_arg_in(f.x), walk),
                         TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "parameter 1 (zs): expected OUT u8, given OUT f32");
        assert_values(f.y, 7, 7, 7, 7);
    }
}

/* Whoever waits is told who launched, when the text of that name is another one and however many others there were. */
static void who_launched_is_told_after_the_name_is_gone(void **state)
{
    enum { NAMES = 1500 };
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *table = tern_zeros(TERN_SHAPE(2, 3), TERN_F32, device);
        tern_tensor *far = tern_full(TERN_SHAPE(1), TERN_SCALAR(5), TERN_I64, device);
        for (int i = 0; i < NAMES; i++) {
            char name[32], want[64];
            snprintf(name, sizeof name, "tern_launcher_%d", i);
            snprintf(want, sizeof want, "%s: index out of range", name);
            const char *outer = tern_name_enter(name);
            tern_fault_named(TERN_FAULT_EMBEDDING);
            if (i == 3 || i == NAMES - 1)
                tern_embedding(far, table, NULL);
            tern_name_leave(&outer);
            memset(name, 'x', 5);
            if (i == 3 || i == NAMES - 1) {
                tern_synchronize(device);
                assert_error(TERN_ERR_ARGUMENT, want);
            }
        }
    }
}

/* ---- program groups ---------------------------------------------------------------------- */

/* What is built ahead of its first launch is there to be launched. */
static void kernels_of_program_groups_exist(void **state)
{
    static void *kernels[256]; /* they stay until the process ends, as those of launches */
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = tern_place_find(device, "test");
        int n = 0;
        assert_ok(tern_registry_open(place));
        for (const tern_program_group_row *row = tern_program_groups; row->group; row++) {
            const bool known = tern_host_parameters(row->kernel, TERN_F32) != NULL;
            if (!known && !row->shares)
                fail_msg("no device has a %s of %s.cl", row->kernel, row->file);
            if (!tern_program_group_has(row, place->grouped) || (!known && !place->lazy))
                continue;
            assert_true(n < (int)(sizeof kernels / sizeof *kernels));
            if (place->backend->resolve(place, row->file, row->kernel, TERN_F32, &kernels[n]) !=
                TERN_OK)
                fail_msg("%s: %s of %s.cl: %s", device, row->kernel, row->file, tern_last_error());
            n += kernels[n] != NULL;
        }
        assert_true(n > 20);
    }
}

/* A loss is a sign of training, whichever kernel it has on a device. */
static void cross_entropy_opens_its_program_group(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(3, 5), -1, 1, 1),
                    *target = TENSOR(device, TERN_I64, TERN_SHAPE(3), 1, 0, 4);
        tern_graph *graph = tern_graph_new(device);
        int opens = 0;
        tern_requires_grad_(x, true);
        TERN_CAPTURE (graph)
            TERN_SCOPE
                tern_backward(tern_cross_entropy(x, target, NULL));
        assert_no_error();
        for (int64_t i = 0; i < graph->n_nodes; i++) {
            const tern_command *command = &graph->nodes[i]->command;
            if (command->kind != TERN_COMMAND_KERNEL)
                continue;
            const tern_kernel_ref *ref = command->what.launch.kernel->ref;
            const tern_program_group_row *row = tern_program_group_of(ref->file, ref->name);
            opens += strncmp(ref->name, "cross_entropy", 13) == 0 && row && row->opens &&
                     tern_program_group_has(row, graph->place->grouped);
        }
        assert_true(opens > 0);
        tern_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kernels_of_program_groups_exist),
        TEST(cross_entropy_opens_its_program_group),
        TEST(a_first_launch_that_does_not_fit_is_refused),
        TEST(launches_that_fit_run),
        TEST(a_later_launch_that_does_not_fit_is_refused),
        TEST(in_and_out_may_be_the_same_tensor),
        TEST(bytes_are_bytes),
        TEST(rows_are_held_against_their_kind),
        TEST(who_launched_is_told_after_the_name_is_gone),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
