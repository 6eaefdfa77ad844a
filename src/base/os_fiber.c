/* os_fiber.c -- stacks that take turns on one thread: ucontext, fibers of Windows, or a few
 * instructions of our own. */
/* MAP_ANONYMOUS, and ucontext.h of macOS */
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

#else
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* A stack that waits: context_swap(from, to) keeps this one in from and goes on with that of to. */
#if defined __GLIBC__ || defined __APPLE__
#include <ucontext.h>
typedef ucontext_t context;
#define context_swap swapcontext

/* makecontext hands over ints. */
static void run_fiber(unsigned run_low, unsigned run_high, unsigned user_low, unsigned user_high)
{
    const uint64_t run = (uint64_t)run_high << 32 | run_low;
    ((void (*)(void *))(uintptr_t)run)((void *)(uintptr_t)((uint64_t)user_high << 32 | user_low));
}

static bool context_make(context *made, char *stack, void (*run)(void *user), void *user)
{
    const uint64_t function = (uintptr_t)run, argument = (uintptr_t)user;
    if (getcontext(made) != 0)
        return false;
    made->uc_stack.ss_sp = stack;
    made->uc_stack.ss_size = STACK;
    made->uc_link = NULL;
    makecontext(made, (void (*)(void))run_fiber, 4, (unsigned)function, (unsigned)(function >> 32),
                (unsigned)argument, (unsigned)(argument >> 32));
    return true;
}

#else /* musl and Android have no ucontext: what a function keeps for its caller, on its stack */
typedef char *context; /* the stack's pointer */
void tern_context_swap(context *from, const context *to) __attribute__((visibility("hidden")));
void tern_context_begin(void) __attribute__((visibility("hidden")));
#define context_swap tern_context_swap

#if defined __x86_64__
enum { KEPT = 7, USER = 4, RUN = 3, BEGIN = 6 }; /* words on a new stack, and which of them */
__asm__(".text\n"
        ".hidden tern_context_swap\n.globl tern_context_swap\n.type tern_context_swap, %function\n"
        "tern_context_swap:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov (%rsi), %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".hidden tern_context_begin\n.globl tern_context_begin\n"
        ".type tern_context_begin, %function\n"
        "tern_context_begin:\nmov %rbx, %rdi\ncall *%r12\nud2\n");
#elif defined __aarch64__
enum { KEPT = 20, USER = 0, RUN = 1, BEGIN = 11 };
__asm__(".text\n"
        ".hidden tern_context_swap\n.globl tern_context_swap\n.type tern_context_swap, %function\n"
        "tern_context_swap:\nsub sp, sp, #160\n"
        "stp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
        "mov x9, sp\nstr x9, [x0]\nldr x9, [x1]\nmov sp, x9\n"
        "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
        "ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\nret\n"
        ".hidden tern_context_begin\n.globl tern_context_begin\n"
        ".type tern_context_begin, %function\n"
        "tern_context_begin:\nmov x0, x19\nblr x20\nbrk #1\n");
#else
#error "os_fiber.c: write tern_context_swap and tern_context_begin for this processor"
#endif

static bool context_make(context *made, char *stack, void (*run)(void *user), void *user)
{
    uintptr_t *top = (uintptr_t *)(void *)(stack + STACK) - KEPT;
    for (int i = 0; i < KEPT; i++)
        top[i] = 0;
    top[USER] = (uintptr_t)user;
    top[RUN] = (uintptr_t)run;
    top[BEGIN] = (uintptr_t)tern_context_begin;
    *made = (char *)top;
    return true;
}
#endif

struct tern_fibers {
    char *stacks;
    size_t n, page;
    context outside, of[];
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
    return context_make(&fibers->of[i], stack, run, user);
}

void tern_fibers_resume(tern_fibers *fibers, size_t i)
{
    context_swap(&fibers->outside, &fibers->of[i]);
}

void tern_fibers_pause(tern_fibers *fibers, size_t i)
{
    context_swap(&fibers->of[i], &fibers->outside);
}
#endif
