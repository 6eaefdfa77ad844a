/* os_fiber.c -- stacks that take turns on one thread: ucontext, or fibers of Windows. */
#define _GNU_SOURCE   /* MAP_ANONYMOUS */
#define _XOPEN_SOURCE 700
#include "base/os_fiber.h"
#include "base/memory.h"

enum { STACK = 256 << 10 };

#if defined _WIN32
#include <windows.h>

struct tern_fibers {
    void *outside;
    size_t n;
    bool is_converted; /* the thread was made a fiber here */
    struct fiber {
        void *fiber;
        void (*run)(void *user);
        void *user;
    } of[];
};

tern_fibers *tern_fibers_new(size_t n)
{
    tern_fibers *f = tern_alloc(sizeof *f + n * sizeof *f->of);
    if (!f)
        return NULL;
    f->n = n;
    f->outside = IsThreadAFiber() ? GetCurrentFiber() : ConvertThreadToFiber(NULL);
    f->is_converted = f->outside != NULL;
    return f;
}

static void end_fiber(struct fiber *f)
{
    if (f->fiber)
        DeleteFiber(f->fiber);
    f->fiber = NULL;
}

void tern_fibers_free(tern_fibers *fibers)
{
    for (size_t i = 0; fibers && i < fibers->n; i++)
        end_fiber(&fibers->of[i]);
    tern_free(fibers);
}

static void CALLBACK run_fiber(void *user)
{
    struct fiber *f = user;
    f->run(f->user);
}

bool tern_fibers_begin(tern_fibers *fibers, size_t i, void (*run)(void *user), void *user)
{
    struct fiber *f = &fibers->of[i];
    end_fiber(f);
    f->run = run;
    f->user = user;
    f->fiber = CreateFiberEx(STACK, STACK, 0, run_fiber, f);
    return f->fiber != NULL;
}

void tern_fibers_resume(tern_fibers *fibers, size_t i)
{
    SwitchToFiber(fibers->of[i].fiber);
}

void tern_fibers_pause(tern_fibers *fibers, size_t i)
{
    (void)i;
    SwitchToFiber(fibers->outside);
}

#elif defined __GLIBC__ || defined __APPLE__
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct tern_fibers {
    char *stacks;
    size_t n, page;
    ucontext_t outside, of[];
};

tern_fibers *tern_fibers_new(size_t n)
{
    tern_fibers *f = tern_alloc(sizeof *f + n * sizeof *f->of);
    if (!f)
        return NULL;
    f->n = n;
    f->page = (size_t)sysconf(_SC_PAGESIZE);
    f->stacks = mmap(NULL, n * (STACK + f->page), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->stacks == MAP_FAILED) {
        tern_free(f);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        mprotect(f->stacks + i * (STACK + f->page), f->page, PROT_NONE);
    return f;
}

void tern_fibers_free(tern_fibers *fibers)
{
    if (fibers)
        munmap(fibers->stacks, fibers->n * (STACK + fibers->page));
    tern_free(fibers);
}

/* makecontext hands over ints. */
static void run_fiber(unsigned run_low, unsigned run_high, unsigned user_low, unsigned user_high)
{
    const uint64_t run = (uint64_t)run_high << 32 | run_low;
    ((void (*)(void *))(uintptr_t)run)((void *)(uintptr_t)((uint64_t)user_high << 32 | user_low));
}

bool tern_fibers_begin(tern_fibers *fibers, size_t i, void (*run)(void *user), void *user)
{
    const uint64_t function = (uintptr_t)run, argument = (uintptr_t)user;
    ucontext_t *context = &fibers->of[i];
    if (getcontext(context) != 0)
        return false;
    context->uc_stack.ss_sp = fibers->stacks + i * (STACK + fibers->page) + fibers->page;
    context->uc_stack.ss_size = STACK;
    context->uc_link = NULL;
    makecontext(context, (void (*)(void))run_fiber, 4, (unsigned)function,
                (unsigned)(function >> 32), (unsigned)argument, (unsigned)(argument >> 32));
    return true;
}

void tern_fibers_resume(tern_fibers *fibers, size_t i)
{
    swapcontext(&fibers->outside, &fibers->of[i]);
}

void tern_fibers_pause(tern_fibers *fibers, size_t i)
{
    swapcontext(&fibers->of[i], &fibers->outside);
}

#else /* musl and Android have no ucontext */

tern_fibers *tern_fibers_new(size_t n)
{
    (void)n;
    return NULL;
}

void tern_fibers_free(tern_fibers *fibers)
{
    (void)fibers;
}

bool tern_fibers_begin(tern_fibers *fibers, size_t i, void (*run)(void *user), void *user)
{
    (void)fibers;
    (void)i;
    (void)run;
    (void)user;
    return false;
}

void tern_fibers_resume(tern_fibers *fibers, size_t i)
{
    (void)fibers;
    (void)i;
}

void tern_fibers_pause(tern_fibers *fibers, size_t i)
{
    (void)fibers;
    (void)i;
}
#endif
