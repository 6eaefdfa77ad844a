/* quit.c -- a process under wine ends with its own exit status although LLVM is loaded into it.
 * wine ends the threads of a process by SIGQUIT, which its own handler takes. PoCL, which wine's
 * OpenCL.dll opens, brings LLVM, and that puts a handler of its own in place of wine's: it raises
 * the signal again, and the whole process dies of it if a thread was waiting when exit was called.
 * LD_PRELOAD names this library, so the first handler of SIGQUIT stays. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

typedef int set_action(int signal, const struct sigaction *action, struct sigaction *old);

int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    static atomic_bool is_taken;
    set_action *next = (set_action *)dlsym(RTLD_NEXT, "sigaction");
    if (signal == SIGQUIT && action && atomic_exchange(&is_taken, 1))
        action = NULL;
    return next(signal, action, old);
}
