/* os_context.h -- contexts: switching between stacks on one thread, for C and C++. The switch is a
 * few instructions. ucontext, which makes a system call for the signal mask at each switch, is used
 * for other processors, for systems whose symbols are named differently, and if code may run with a
 * shadow stack, which ucontext creates for each stack. */
#ifndef TERN_BASE_OS_CONTEXT_H
#define TERN_BASE_OS_CONTEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* tern_context_swap(from, to) saves the present context in from and continues that of to. */
#if defined __APPLE__ || !(defined __x86_64__ || defined __aarch64__) || defined __ILP32__ ||      \
    (defined __GLIBC__ && defined __CET__ && (__CET__ & 2)) || defined __ARM_FEATURE_GCS_DEFAULT
#if defined __linux__ && !defined __GLIBC__
#error "os_context.h: write tern_context_swap and tern_context_begin for this processor"
#endif
#include <ucontext.h>
typedef ucontext_t tern_context;
#define tern_context_swap swapcontext

/* makecontext passes arguments as ints. */
static void tern_context_run(unsigned run_low, unsigned run_high, unsigned user_low,
                             unsigned user_high)
{
    const uint64_t run = (uint64_t)run_high << 32 | run_low;
    ((void (*)(void *))(uintptr_t)run)((void *)(uintptr_t)((uint64_t)user_high << 32 | user_low));
}

/* Makes a context that calls run(user), which never returns, on a stack aligned to 16 bytes. */
static inline bool tern_context_make(tern_context *made, char *stack, size_t bytes,
                                     void (*run)(void *user), void *user)
{
    const uint64_t function = (uintptr_t)run, argument = (uintptr_t)user;
    if (getcontext(made) != 0)
        return false;
    made->uc_stack.ss_sp = stack;
    made->uc_stack.ss_size = bytes;
    made->uc_link = NULL;
    makecontext(made, (void (*)(void))tern_context_run, 4, (unsigned)function,
                (unsigned)(function >> 32), (unsigned)argument, (unsigned)(argument >> 32));
    return true;
}

#else /* a context is the registers that a function must preserve, saved on the stack */
typedef char *tern_context; /* the stack pointer */
#ifdef __cplusplus
extern "C" {
#endif
void tern_context_swap(tern_context *from, const tern_context *to)
    __attribute__((visibility("hidden")));
void tern_context_begin(void) __attribute__((visibility("hidden")));
#ifdef __cplusplus
}
#endif

/* Weak, because several files of a program may define them. */
#define TERN_CONTEXT_FUNCTION(NAME, TEXT)                                                          \
    __asm__(".text\n.hidden " NAME "\n.weak " NAME "\n"                                            \
            ".type " NAME ", %function\n" NAME ":\n" TEXT)
#if defined __x86_64__
/* The number of words on a new stack, and the indices of some of them. */
enum {
    TERN_CONTEXT_WORDS = 7,
    TERN_CONTEXT_USER = 4,
    TERN_CONTEXT_RUN = 3,
    TERN_CONTEXT_BEGIN = 6
};
TERN_CONTEXT_FUNCTION("tern_context_swap",
                      "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
                      "mov %rsp, (%rdi)\nmov (%rsi), %rsp\n"
                      "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
TERN_CONTEXT_FUNCTION("tern_context_begin", "mov %rbx, %rdi\ncall *%r12\nud2\n");
#else
enum {
    TERN_CONTEXT_WORDS = 20,
    TERN_CONTEXT_USER = 0,
    TERN_CONTEXT_RUN = 1,
    TERN_CONTEXT_BEGIN = 11
};
TERN_CONTEXT_FUNCTION("tern_context_swap", "sub sp, sp, #160\nstp x19, x20, [sp]\n"
                                           "stp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
                                           "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\n"
                                           "stp x29, x30, [sp, #80]\nstp d8, d9, [sp, #96]\n"
                                           "stp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"
                                           "stp d14, d15, [sp, #144]\n"
                                           "mov x9, sp\nstr x9, [x0]\nldr x9, [x1]\nmov sp, x9\n"
                                           "ldp x19, x20, [sp]\n"
                                           "ldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
                                           "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\n"
                                           "ldp x29, x30, [sp, #80]\nldp d8, d9, [sp, #96]\n"
                                           "ldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\n"
                                           "ldp d14, d15, [sp, #144]\n"
                                           "add sp, sp, #160\nret\n");
TERN_CONTEXT_FUNCTION("tern_context_begin", "mov x0, x19\nblr x20\nbrk #1\n");
#endif

static inline bool tern_context_make(tern_context *made, char *stack, size_t bytes,
                                     void (*run)(void *user), void *user)
{
    uintptr_t *top = (uintptr_t *)(void *)(stack + bytes) - TERN_CONTEXT_WORDS;
    for (int i = 0; i < TERN_CONTEXT_WORDS; i++)
        top[i] = 0;
    top[TERN_CONTEXT_USER] = (uintptr_t)user;
    top[TERN_CONTEXT_RUN] = (uintptr_t)run;
    top[TERN_CONTEXT_BEGIN] = (uintptr_t)tern_context_begin;
    *made = (char *)top;
    return true;
}
#endif
#endif
