/* os_fiber.c -- coroutines on one thread: fibers on Windows, contexts elsewhere. */
/* for MAP_ANONYMOUS, and ucontext.h of macOS */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#define _XOPEN_SOURCE 700
#include "base/os_fiber.h"
#include "base/memory.h"

enum { STACK = 256 << 10 };

#if defined _WIN32
#include <windows.h>

struct tern_fibers {
    void *outside;
    size_t n;
    bool is_converted; /* tern_fibers_new converted the thread to a fiber */
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

#else
#include "base/os_context.h"
#include <sys/mman.h>
#include <unistd.h>

struct tern_fibers {
    char *stacks;
    size_t n, page;
    tern_context outside, of[];
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

bool tern_fibers_begin(tern_fibers *fibers, size_t i, void (*run)(void *user), void *user)
{
    char *stack = fibers->stacks + i * (STACK + fibers->page) + fibers->page;
    return tern_context_make(&fibers->of[i], stack, STACK, run, user);
}

void tern_fibers_resume(tern_fibers *fibers, size_t i)
{
    tern_context_swap(&fibers->outside, &fibers->of[i]);
}

void tern_fibers_pause(tern_fibers *fibers, size_t i)
{
    tern_context_swap(&fibers->of[i], &fibers->outside);
}
#endif
