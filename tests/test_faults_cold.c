/* test_faults_cold.c -- while a process opens a device and builds its first kernels an allocation
 * fails, or a call of the driver. Each failure has a process of its own.
 *
 * What must hold then: an error, or the numbers that there are without a failure; nothing is left
 * behind; a second try gives those numbers, unless no device was found: that is final, and the notes
 * say why. A device that was lost stays so. The process ends as it should. */
#include "support.h"
#include "faults/models.h"
#include "faults/source.h"
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What children tell their parent. */
static struct {
    unsigned long long memory_calls, calls[MOST_FAULT_POINTS];
    char name[MOST_FAULT_POINTS][64];
    int points;
    double loss;
    char wrong[512]; /* what does not hold; "" for nothing */
} * told;

static bool wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(told->wrong, sizeof told->wrong, format, args);
    va_end(args);
    return false;
}

static tern_status train(const char *device, double *loss)
{
    test_training t;
    tern_status status = test_training_start(&t, &test_models[1], device);
    if (status == TERN_OK)
        status = test_training_begin(&t);
    if (status == TERN_OK)
        status = test_training_step(&t, loss);
    test_training_end(&t);
    return status;
}

static bool is_right(double loss)
{
    return fabs(loss - told->loss) <= 1e-5;
}

static void count(const char *device)
{
    source s = {.n = 1ull << 40};
    tern_memory_fail_at(s.n);
    if (driver.arm)
        driver.arm(NULL, 0, false, 0);
    if (train(device, &told->loss) != TERN_OK)
        wrong("without a failure: %s", tern_last_error());
    told->memory_calls = tern_memory_fail_at(0);
    told->points = driver.points ? driver.points() : 0;
    for (int i = 0; i < told->points; i++) {
        snprintf(told->name[i], sizeof told->name[i], "%s", driver.name(i));
        told->calls[i] = driver.calls(i);
    }
}

static bool second_try(const char *device, const source *s)
{
    char kind[16];
    double loss = NAN;
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(device, ":"), device);
    if (train(device, &loss) == TERN_OK)
        return is_right(loss) || wrong("the second try gives a loss of %g", loss);
    if (s->fatal && tern_last_status() == TERN_ERR_DEVICE_LOST)
        return true;
    if (tern_device_count(kind) == 0 && *tern_device_notes(kind))
        return true;
    return wrong("the second try: %s", tern_last_error());
}

static bool first_try(const char *device, const source *s)
{
    double loss = NAN;
    arm(s);
    tern_status status = train(device, &loss);
    disarm(s);
    if (status != TERN_OK && !*tern_last_error())
        return wrong("there is no message");
    if (status == TERN_OK && !is_right(loss))
        return wrong("no error, and a loss of %g instead of %g", loss, told->loss);
    tern_clear_error();
    if (tern_live_tensors() != 0)
        return wrong("%lld tensors are left behind", (long long)tern_live_tensors());
    return second_try(device, s);
}

static void in_child(const char *device, const source *s)
{
    int status = -1;
    told->wrong[0] = '\0';
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int i = SIGSEGV; i; i = i == SIGSEGV ? SIGABRT : i == SIGABRT ? SIGFPE : 0)
            signal(i, SIG_DFL); /* cmocka's would go on in here */
        test_limit(100);
        if (s)
            first_try(device, s);
        else
            count(device);
        exit(0); /* with the handlers of what was opened */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0 || told->wrong[0])
        fail_msg("%s on %s: status %d: %s", s ? text_of(s) : "nothing fails", device, status,
                 told->wrong);
}

static int sweep(const char *device, const char *point, unsigned long long calls,
                 unsigned long long most)
{
    int tried = 0;
    for (int way = 0; way < (point ? 3 : 2); way++) {
        source s = {.point = point, .n = 1, .on = way == 1, .fatal = way == 2};
        for (; s.n <= calls; s.n += stride(calls, most)) {
            in_child(device, &s);
            tried++;
        }
    }
    return tried;
}

static void a_device_may_fail_while_it_is_opened(void **unused)
{
    (void)unused;
    FOR_EACH_DEVICE(device)
    {
        int tried = 0;
        in_child(device, NULL);
        for (int i = 0; i < told->points; i++)
            if (strcmp(told->name[i], "kernel") != 0)
                tried += sweep(device, told->name[i], told->calls[i], 1);
        tried += sweep(device, NULL, told->memory_calls, 10);
        print_message("%d failures on %s\n", tried, device);
    }
}

int main(void)
{
    if (!load_driver() && strcmp(test_device(0), "cpu") != 0) {
        puts("SKIP: TERN_FAULT_DRIVER names no driver that can fail");
        return 77;
    }
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 1;
    /* This process itself uses no device: its children could not. */
    const struct CMUnitTest tests[] = {TEST(a_device_may_fail_while_it_is_opened)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
