/* check.c -- what holds after every call, whatever it was given. */
#include "fuzz.h"
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SUMMED = 4096, SECONDS = 4 };

_Noreturn void fuzz_fault(const char *what, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "FAULT: %s: ", what);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    abort();
}

/* ---- elements ----------------------------------------------------------------------------- */

static bool is_dense(const fuzz_snapshot *s)
{
    int64_t stride = 1;
    for (int d = s->shape.ndim - 1; d >= 0; stride *= s->shape.dims[d--])
        if (s->shape.dims[d] != 1 && s->stride.dims[d] != stride)
            return false;
    return true;
}

static uint64_t sum_bytes(const char *data, size_t n)
{
    uint64_t sum = n, word = 0;
    for (; n >= sizeof word; n -= sizeof word, data += sizeof word) {
        memcpy(&word, data, sizeof word);
        sum = (sum ^ word) * 1099511628211u;
        sum ^= sum >> 32;
    }
    for (; n > 0; n--)
        sum = (sum ^ (uint8_t)*data++) * 1099511628211u;
    return sum;
}

/* Go through the elements by their strides, as no operation of the library is trusted to. */
static uint64_t sum_elements(const char *data, const fuzz_snapshot *s, int64_t numel)
{
    size_t size = tern_dtype_size(s->dtype);
    uint64_t sum = 14695981039346656037u;
    if (is_dense(s))
        return sum_bytes(data, (size_t)numel * size);
    for (int64_t i = 0; i < numel; i++) {
        int64_t rest = i, offset = 0;
        for (int d = s->shape.ndim - 1; d >= 0; d--) {
            offset += rest % s->shape.dims[d] * s->stride.dims[d];
            rest /= s->shape.dims[d];
        }
        for (size_t b = 0; b < size; b++)
            sum = (sum ^ (uint8_t)data[offset * (int64_t)size + (int64_t)b]) * 1099511628211u;
    }
    return sum;
}

void fuzz_look(fuzz_snapshot *s, tern_tensor *x)
{
    memset(s, 0, sizeof *s);
    s->x = x;
    s->shape = s->stride = tern_shape_of(x);
    for (int d = 0; d < s->shape.ndim; d++)
        s->stride.dims[d] = tern_stride(x, d);
    s->dtype = tern_dtype_of(x);
    s->version = tern_version(x);
    int64_t numel = tern_numel(x);
    s->has_sum = numel > 0 && numel <= SUMMED && strcmp(tern_device(x), "cpu") == 0;
    if (s->has_sum)
        s->sum = sum_elements(tern_data(x), s, numel);
}

void fuzz_check_unchanged(const fuzz_snapshot *before, const char *op)
{
    fuzz_snapshot now;
    fuzz_look(&now, before->x);
    bool same = now.dtype == before->dtype && now.shape.ndim == before->shape.ndim;
    for (int d = 0; same && d < now.shape.ndim; d++)
        same = now.shape.dims[d] == before->shape.dims[d] &&
               now.stride.dims[d] == before->stride.dims[d];
    if (!same)
        fuzz_fault("an input has another shape or type", "%s", op);
    if (before->version >= 0 && now.version != before->version)
        fuzz_fault("an input has another version", "%s: %lld, and %lld", op,
                   (long long)before->version, (long long)now.version);
    if (now.has_sum && now.sum != before->sum)
        fuzz_fault("an input has other elements", "%s", op);
}

void fuzz_check_result(tern_tensor *x, const char *op)
{
    tern_shape shape = tern_shape_of(x);
    int64_t numel = 1;
    if (shape.ndim < 0 || shape.ndim > TERN_MAX_DIMS)
        fuzz_fault("a result of so many dims", "%s: %d", op, shape.ndim);
    bool empty = false;
    for (int d = 0; d < shape.ndim; d++) {
        if (shape.dims[d] < 0)
            fuzz_fault("a negative size", "%s: %lld", op, (long long)shape.dims[d]);
        empty = empty || shape.dims[d] == 0;
    }
    for (int d = 0; d < shape.ndim && !empty; d++)
        if (__builtin_mul_overflow(numel, shape.dims[d], &numel))
            fuzz_fault("more elements than are counted", "%s", op);
    if (tern_numel(x) != (empty ? 0 : numel))
        fuzz_fault("another number of elements", "%s: %lld", op, (long long)tern_numel(x));
    if (tern_dtype_size(tern_dtype_of(x)) == 0)
        fuzz_fault("a result of no type", "%s", op);
    fuzz_snapshot touch;
    fuzz_look(&touch, x);
}

/* ---- around a program --------------------------------------------------------------------- */

static int64_t live;
static uint64_t allocated_first; /* in the process */

/* One step for so long. */
static void on_time(int signal)
{
    static const char text[] = "FAULT: hang: no end in sight\n";
    static volatile uint64_t calls;
    static volatile int ticks;
    (void)signal;
    ticks = calls == fuzz_calls ? ticks + 1 : 0;
    calls = fuzz_calls;
    if (ticks >= 2 && write(2, text, sizeof text - 1) > 0)
        abort();
}

static void start_timers(int seconds)
{
    static pid_t process; /* a child has none of its parent's */
    struct itimerval used = {{seconds, 0}, {seconds, 0}},
                     real = {{seconds * 20, 0}, {seconds * 20, 0}};
    if (process == getpid())
        return;
    process = getpid();
    signal(SIGPROF, on_time);
    signal(SIGALRM, on_time);
    setitimer(ITIMER_PROF, &used, NULL);
    setitimer(ITIMER_REAL, &real, NULL);
}

static uint64_t allocated_now(void)
{
    tern_memory_stats stats;
    memset(&stats, 0, sizeof stats);
    tern_memory_get_stats("cpu", &stats);
    return stats.allocated;
}

static void reset_modes(void)
{
    tern_set_error_policy(TERN_ERRORS_RECORD, NULL, NULL);
    tern_set_grad_enabled(true);
    tern_use_deterministic(false);
    tern_autograd_set_detect_anomaly(false, NULL);
    tern_set_autocast_cache_enabled(true);
    tern_clear_autocast_cache();
    tern_set_default_device(NULL);
    tern_set_num_threads(1);
    tern_clear_error();
}

void fuzz_begin(void)
{
    reset_modes();
    tern_manual_seed(1);
    fuzz_next_slot = 0;
    fuzz_writes_inside = false;
    fuzz_fail_allocation = 0;
    live = tern_live_tensors();
    if (!allocated_first)
        allocated_first = allocated_now();
    start_timers(fuzz_other_device ? SECONDS * 30 : SECONDS); /* kernels are compiled there */
}

void fuzz_end(void)
{
    fuzz_leave();
    fuzz_drop_all();
    fuzz_clean();
    reset_modes();
    tern_scope_clear();
    if (tern_live_tensors() != live)
        fuzz_fault("tensors are left", "%lld", (long long)(tern_live_tensors() - live));
    /* A device keeps flags and tables of its own, made once. */
    if (allocated_now() > allocated_first + 1024)
        fuzz_fault("memory is left", "%lld bytes", (long long)(allocated_now() - allocated_first));
}
