/* test_ending.c -- the process may end at any time: programs that end by every way, at random moments of a cold and
 * of a warm first step, while their threads use a device. */
#include "execute.h"
#include "support.h"
#include "temporary.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the program that ends ----------------------------------------------------------------- */

enum { CODE = 7 };

static const char *device;
static int delay; /* microseconds; below 0: when the step is done */
static void (*end)(void);
static atomic_bool done;

/* All that a first training step does. A thread that the end of the process overtakes is no failure. */
static void *train(void *unused)
{
    TERN_SCOPE {
        tern_set_default_device(device);
        tern_module *model = tern_nn_sequential(tern_nn_linear(8, 16, NULL), tern_nn_relu(),
                                                tern_nn_linear(16, 4, NULL));
        tern_optimizer *optimizer = tern_optim_adam(model, 0.01, NULL);
        tern_tensor *x = tern_randn(TERN_SHAPE(32, 8), TERN_F32, NULL);
        tern_tensor *y = tern_zeros(TERN_SHAPE(32, 4), TERN_F32, NULL);
        tern_tensor *loss = tern_mse_loss(tern_nn_forward(model, x), y, NULL);
        tern_backward(loss);
        tern_optim_step(optimizer);
        if (!(tern_item(loss) > 0)) {
            fprintf(stderr, "%s\n", tern_last_error());
            _exit(99);
        }
        tern_optim_free(optimizer);
        tern_nn_free(model);
    }
    return unused;
}

static void *train_and_say(void *unused)
{
    train(NULL);
    atomic_store(&done, true);
    return unused;
}

/* What the shortest program does that failed. */
static void *make_and_free(void *unused)
{
    tern_module *model = tern_nn_linear(4, 2, &(tern_linear_options){.device = device});
    if (!model)
        _exit(99);
    tern_nn_free(model);
    return unused;
}

static void by_exit(void)
{
    exit(CODE);
}
static void by_quick_exit(void)
{
    quick_exit(CODE);
}
static void by__exit(void)
{
    _exit(CODE);
}
static void by_signal(void)
{
    raise(SIGKILL);
}
static void by_return(void)
{
}

static void wait_for_the_moment(void)
{
    struct timespec some = {delay / 1000000, delay % 1000000 * 1000}, little = {0, 1000000};
    if (delay >= 0)
        nanosleep(&some, NULL);
    while (delay < 0 && !atomic_load(&done))
        nanosleep(&little, NULL);
}

static void *end_then(void *unused)
{
    wait_for_the_moment();
    end();
    return unused;
}

static pthread_t start(void *(*run)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL))
        _exit(98);
    return thread;
}

/* The main thread ends it, one or two threads train. */
static void trained_by_a_thread(void)
{
    start(train_and_say);
    end_then(NULL);
}
static void trained_by_two_threads(void)
{
    start(train);
    start(train_and_say);
    end_then(NULL);
}
/* A thread that uses nothing of the library ends it. */
static void trained_by_main(void)
{
    pthread_t thread = start(end_then);
    train_and_say(NULL);
    pthread_join(thread, NULL);
}
static void trained_by_all(void)
{
    start(train);
    trained_by_main();
}
static void made_by_a_thread(void)
{
    pthread_join(start(make_and_free), NULL);
    end();
}
/* Nothing waits for what was launched. */
static void trained_and_left(void)
{
    pthread_join(start(train), NULL);
    start(make_and_free);
    end();
}

/* Memory and modules that a handler of the program's gives back, after the library's own. */
static tern_module *kept;
static void free_kept(void)
{
    tern_nn_free(kept);
}
static void freed_by_a_handler(void)
{
    atexit(free_kept);
    kept = tern_nn_linear(4, 2, &(tern_linear_options){.device = device});
    trained_by_a_thread();
}

static void end_on_compile(const tern_compile_progress *progress, void *user)
{
    (void)progress, (void)user;
    end();
}
static void ended_by_a_handler(void)
{
    tern_on_compile(end_on_compile, NULL);
    start(train_and_say);
    train_and_say(NULL);
    end();
}

static void *launch(void *unused)
{
    TERN_SCOPE {
        tern_set_default_device(device);
        tern_ones(TERN_SHAPE(4), TERN_F32, NULL);
    }
    return unused;
}

/* A handler of a program's compile that exits while another thread waits for what is compiled: that one is not waited for, which
 * would take a minute. */
static void end_before_another(const tern_compile_progress *progress, void *user)
{
    static atomic_bool again;
    (void)progress, (void)user;
    if (atomic_exchange(&again, true))
        return;
    start(launch);
    usleep(200000);
    end();
}
static void ended_before_another(void)
{
    alarm(45);
    tern_on_compile(end_before_another, NULL);
    train(NULL);
    end();
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {{"trained_by_a_thread", trained_by_a_thread},
                {"trained_by_two_threads", trained_by_two_threads},
                {"trained_by_main", trained_by_main},
                {"trained_by_all", trained_by_all},
                {"made_by_a_thread", made_by_a_thread},
                {"trained_and_left", trained_and_left},
                {"freed_by_a_handler", freed_by_a_handler},
                {"ended_by_a_handler", ended_by_a_handler},
                {"ended_before_another", ended_before_another}};
static const struct {
    const char *name;
    void (*end)(void);
} ways[] = {{"return", by_return},
            {"exit", by_exit},
            {"quick_exit", by_quick_exit},
            {"_exit", by__exit},
            {"signal", by_signal}};
enum { PROGRAMS = sizeof programs / sizeof *programs, WAYS = sizeof ways / sizeof *ways };

/* test_ending DEVICE PROGRAM WAY DELAY */
static int be_the_program(char **argv)
{
    device = argv[1];
    end = ways[atoi(argv[3])].end;
    delay = atoi(argv[4]);
    programs[atoi(argv[2])].run();
    return CODE;
}

/* ---- those that look how it ends ----------------------------------------------------------- */

static char self[4096], folder[TEMPORARY_BYTES], output[4096];
static int failures;

/* Run it with caches in FOLDER/name, which is theirs alone; how long it took, in microseconds. */
static int end_one(const char *on, int program, int way, int moment, const char *name)
{
    char cache[2 * TEMPORARY_BYTES], numbers[3][16], log[2 * TEMPORARY_BYTES];
    struct timespec from, to;
    int status;
    bool right;
    snprintf(cache, sizeof cache, "%s/%s", folder, name);
    snprintf(log, sizeof log, "%s/log", folder);
    snprintf(numbers[0], sizeof numbers[0], "%d", program);
    snprintf(numbers[1], sizeof numbers[1], "%d", way);
    snprintf(numbers[2], sizeof numbers[2], "%d", moment);
    fflush(NULL);
    clock_gettime(CLOCK_MONOTONIC, &from);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("XDG_CACHE_HOME", cache, 1);
        setenv("POCL_CACHE_DIR", strcat(strcpy(output, cache), "-pocl"), 1);
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* threads that still run hold memory */
        if (!freopen(log, "w", stderr))
            _exit(97);
        test_limit(60);
        execute(self, (char *[]){strdup(on), numbers[0], numbers[1], numbers[2], NULL});
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    clock_gettime(CLOCK_MONOTONIC, &to);
    right = way == WAYS - 1 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                            : WIFEXITED(status) && WEXITSTATUS(status) == CODE;
    if (!right) {
        FILE *f = fopen(log, "r");
        output[f ? fread(output, 1, sizeof output - 1, f) : 0] = '\0';
        print_error("%s, ended by %s after %d us with caches %s, ended with status %x: %s\n",
                    programs[program].name, ways[way].name, moment, name, (unsigned)status, output);
        failures++;
    }
    return (int)((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
}

static void forget(const char *name)
{
    char command[4 * TEMPORARY_BYTES];
    snprintf(command, sizeof command, "rm -rf '%s/%s' '%s/%s-pocl'", folder, name, folder, name);
    assert_int_equal(system(command), 0);
}

/* The shortest of all: three times of three with the driver's cache empty. */
static void a_thread_used_a_device_and_main_returns(void **state)
{
    (void)state;
    failures = 0;
    FOR_EACH_DEVICE(on)
    for (int program = 0; program < PROGRAMS; program++)
        if (programs[program].run == made_by_a_thread || test_thorough(on)) {
            end_one(on, program, 0, -1, "cold");
            forget("cold");
        }
    assert_int_equal(failures, 0);
}

static void nobody_waits_for_who_waits_for_a_compile(void **state)
{
    (void)state;
    failures = 0;
    FOR_EACH_DEVICE(on)
    for (int program = 0; program < PROGRAMS; program++)
        if (programs[program].run == ended_before_another) {
            if (strcmp(on, "cpu") == 0) {
                test_skipped("cpu compiles nothing that another thread would wait for");
                continue;
            }
            end_one(on, program, 1, -1, "cold");
            forget("cold");
        }
    assert_int_equal(failures, 0);
}

static uint64_t seed = 1;
static int random_below(int n)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* Every program by every way in turn, at moments of its first step and a little after. */
static void the_process_ends_at_any_moment(void **state)
{
    (void)state;
    failures = 0;
    FOR_EACH_DEVICE(on)
    for (int warm = 0; warm < 2; warm++) {
        int moments = getenv("TERN_TEST_ALL") ? 100 : 10;
        int whole = end_one(on, 0, 0, -1, "warm"); /* the first time cold, then warm */
        for (int i = 0; i < moments; i++) {
            int way = i % (WAYS + 3) < WAYS ? i % (WAYS + 3) : 0 + i % 2;
            int program = (i / (WAYS + 3) + i) % PROGRAMS;
            end_one(on, program, way, random_below(whole + whole / 8), warm ? "warm" : "cold");
            if (!warm)
                forget("cold");
        }
        if (warm)
            forget("warm");
    }
    assert_int_equal(failures, 0);
}

int main(int argc, char **argv)
{
    if (argc == 5)
        return be_the_program(argv);
    const char *from = getenv("TERN_TEST_SEED");
    seed = from ? (uint64_t)atoll(from) : 1;
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 ||
        !mkdtemp(temporary(folder, "tern-test-XXXXXX")))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_used_a_device_and_main_returns),
        cmocka_unit_test(nobody_waits_for_who_waits_for_a_compile),
        cmocka_unit_test(the_process_ends_at_any_moment),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(output, sizeof output, "rm -rf '%s'", folder);
    return system(output) ? 1 : failed;
}
