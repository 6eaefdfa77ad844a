/* test_wrong_calls.c -- every public function, called with arguments of every kind, most of them wrong: the error names the
 * function that was called, and no function that it is made of. The calls are made from the headers (wrong_calls/calls.awk).
 * `test_wrong_calls FUNCTION [SEED]` calls one; with TERN_TEST_ALL there are many more calls of each. */
#include "wrong_calls/arguments.h"
#include <signal.h>
#include <stdlib.h>
#include <tern/dlpack.h>
#ifdef TERN_TEST_MODELS
#include <tern/models.h>
#endif
#include <tern/names.h>
#include <tern/report.h>
#include <unistd.h>

/* ---- around a call ----------------------------------------------------------------------------- */

static const char *now; /* the function that is called */
static bool failed, right;

/* Whether the recorded error names the function, whoever a module that runs has called, or the macro that calls tern_NAME_of or tern_NAME_typed. */
static bool names(const char *name)
{
    static const char *const endings[] = {"_of", "_typed"};
    tern_error_info info;
    size_t all = strlen(name), n = strcspn(tern_last_error(), ":");
    tern_get_error(&info);
    bool called = n == all;
    if (info.module)
        return n > 5 && strncmp(info.message, "tern_", 5) == 0;
    for (int i = 0; i < 2; i++)
        called = called || (n + strlen(endings[i]) == all && strcmp(name + n, endings[i]) == 0);
    return called && strncmp(info.message, name, n) == 0 && strlen(info.operation) == n - 5 &&
           strncmp(info.operation, name + 5, n - 5) == 0;
}

static void begin(source *s)
{
    (void)s;
    tern_clear_error();
}

/* The errors that kernels found are among them. */
static void end(source *s)
{
    tern_synchronize(device);
    failed = tern_last_status() != TERN_OK;
    right = !failed || names(now);
    if (!right)
        print_error("%s %llu (%.300s): %s\n", now, (unsigned long long)s->seed, s->text,
                    tern_last_error());
    tern_clear_error();
}

#include "calls.inc"
enum { N_CALLS = sizeof calls / sizeof *calls };

/* ---- who is left out --------------------------------------------------------------------------- */

/* Functions whose names begin, or end, so. */
static const struct {
    const char *name, *why;
} left_out[] = {
    {"tern_fail", "the message is its argument"},
    {"tern_scope_", "the test's own tensors stand in scopes"},
    {"tern_release", "the test's own tensors stand in scopes"},
    {"tern_keep", "the test's own tensors stand in scopes"},
    {"tern_escape", "the test's own tensors stand in scopes"},
    {"tern_set_memory_limit", "it would change what follows"},
    {"tern_set_per_process_memory_fraction", "it would change what follows"},
    {"tern_set_default_d", "it would change what follows"},
    {"tern_set_error_policy", "it would change what follows"},
    {"tern_set_device", "it would change what follows"},
    {"tern_compile_begin", "it would change what follows"},
    {"tern_graph_capture_", "it would change what follows"},
    {"tern_dist_init_process_group", "it would change what follows"},
    {"tern_from_data", "it reads as many bytes as its arguments say"},
    {"tern_from_blob", "it reads as many bytes as its arguments say"},
    {"tern_copy_to_host", "it writes as many bytes as its arguments say"},
    {"tern_print", "it would print"},
    {"tern_nn_print", "it would print"},
    {"tern_where_", "it is a part of a macro"},
    {"tern_skip_init_", "it is a part of a block"},
    {"_block_enter", "it is a part of a block"},
    {"_block_leave", "it is a part of a block"},
    {"_label_enter", "it is a part of a block"},
    {"_label_leave", "it is a part of a block"},
};

static bool is_left_out(const char *name)
{
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        size_t n = strlen(left_out[i].name), all = strlen(name);
        if (strncmp(name, left_out[i].name, n) == 0 ||
            (left_out[i].name[0] == '_' && all > n &&
             strcmp(name + all - n, left_out[i].name) == 0))
            return true;
    }
    return false;
}

/* ---- calls ------------------------------------------------------------------------------------- */

static source *current;

static void crashed(int signal)
{
    fprintf(stderr, "%s(%s): %s\n", now, current->text, strsignal(signal));
    _exit(1); /* what it has overwritten is not known */
}

static void clean(source *s)
{
    for (int i = 0; i < s->n_optimizers; i++)
        tern_optim_free(s->optimizers[i]);
    for (int i = 0; i < s->n_modules; i++)
        tern_nn_free(s->modules[i]);
    tern_set_grad_enabled(true);
    tern_set_debug(false);
    tern_autograd_set_detect_anomaly(false, NULL);
    tern_clear_error();
}

static int failures, wrong, called, skipped;

/* One call of the function; false after a misnamed error. */
static bool call(int i, uint64_t seed)
{
    static source s;
    memset(&s, 0, offsetof(source, text) + 1);
    memset(s.bytes, 0, sizeof s.bytes);
    s.seed = seed;
    s.state = seed * 0x2545f4914f6cdd1du + 1;
    now = calls[i].name, current = &s;
    TERN_SCOPE {
        TERN_SCOPE
            s.gone = tern_ones(TERN_SHAPE(2, 3), TERN_F32, device);
        calls[i].call(&s);
        failures += failed;
        clean(&s);
    }
    return right;
}

/* The function's calls, up to the first misnamed error. */
static void call_all(int i, uint64_t first, uint64_t last)
{
    for (uint64_t seed = first; seed < last; seed++)
        if (!call(i, seed)) {
            wrong++;
            return;
        }
}

/* Modules that are large as PyTorch has them by default: their numbers would take most of the test. */
static const char *const large[] = {"tern_nn_transformer"};

static uint64_t calls_of(const char *name, uint64_t most)
{
    for (size_t i = 0; i < sizeof large / sizeof *large && !getenv("TERN_TEST_ALL"); i++)
        if (strcmp(name, large[i]) == 0)
            return most / 10;
    return most;
}

static const char *only;
static uint64_t only_seed = UINT64_MAX;

static void every_error_names_the_function_that_was_called(void **state)
{
    (void)state;
    signal(SIGSEGV, crashed);
    signal(SIGFPE, crashed);
    uint64_t last = getenv("TERN_TEST_ALL") ? 400 : 60;
    FOR_EACH_DEVICE(each)
    {
        device = each;
        for (int i = 0; i < N_CALLS; i++) {
            bool asked = only ? strcmp(only, calls[i].name) == 0 : !is_left_out(calls[i].name);
            called += asked;
            skipped += !only && !asked;
            if (asked && only_seed != UINT64_MAX)
                call_all(i, only_seed, only_seed + 1);
            else if (asked)
                call_all(i, 0, calls_of(calls[i].name, last));
        }
    }
    signal(SIGSEGV, SIG_DFL);
    signal(SIGFPE, SIG_DFL);
    print_message("%d functions called, SKIP: %d left out; %d calls failed; functions whose errors "
                  "name another one: %d\n",
                  called, skipped, failures, wrong);
    assert_int_equal(wrong, 0);
    assert_true(called > 0 && (only || failures > called)); /* else there is little to name */
}

static const struct CMUnitTest tests[] = {TEST(every_error_names_the_function_that_was_called)};

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    only_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : UINT64_MAX;
    return test_main(tests, sizeof tests / sizeof *tests);
}
