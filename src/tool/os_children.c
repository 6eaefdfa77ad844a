/* os_children.c -- child processes of `tern doctor`, by fork and a socket pair. */
#define _GNU_SOURCE
#include "tool/os_children.h"
#include "base/os.h"
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32

bool tool_has_children(void)
{
    return false;
}

bool tool_child_start(tool_child *c, const char *routes)
{
    (void)routes;
    *c = (tool_child){.pid = -1, .socket = -1};
    return false;
}

int tool_child_end(tool_child *c)
{
    (void)c;
    return 0;
}

void tool_child_describe_end(int status, char *text, size_t bytes)
{
    snprintf(text, bytes, "the process ended with %d", status);
}

_Noreturn void tool_child_leave(void)
{
    _Exit(0);
}

bool tool_child_send(int socket, const void *data, size_t bytes)
{
    (void)socket;
    (void)data;
    (void)bytes;
    return false;
}

long tool_child_receive(int socket, int seconds, void *to, size_t bytes)
{
    (void)socket;
    (void)seconds;
    (void)to;
    (void)bytes;
    return 0;
}

#else
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#ifndef MSG_NOSIGNAL /* on macOS SO_NOSIGPIPE is set instead */
#define MSG_NOSIGNAL 0
#endif

bool tool_has_children(void)
{
    return true;
}

static void become_child(const char *routes)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    int nowhere = open("/dev/null", O_RDWR);
    for (int i = 0; nowhere >= 0 && i < 3; i++)
        dup2(nowhere, i);
    if (routes && !*routes)
        unsetenv("TERN_DOCTOR");
    else
        setenv("TERN_DOCTOR", routes ? routes : "off", 1);
}

/* Creates a socket pair that preserves message boundaries and that other children do not
 * inherit. */
static bool make_ends(int ends[2])
{
#ifdef __linux__
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0;
#else
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
        setsockopt(ends[i], SOL_SOCKET, SO_NOSIGPIPE, &(int){1}, sizeof(int));
#endif
    }
    return true;
#endif
}

bool tool_child_start(tool_child *c, const char *routes)
{
    int ends[2];
    *c = (tool_child){.pid = -1, .socket = -1};
    if (make_ends(ends)) {
        c->pid = fork();
        close(ends[c->pid == 0]);
        c->socket = ends[c->pid != 0];
    }
    if (c->pid == 0)
        become_child(routes);
    return c->pid == 0;
}

int tool_child_end(tool_child *c)
{
    int status = 0;
    if (c->socket >= 0)
        close(c->socket);
    if (c->pid > 0) {
        kill((pid_t)c->pid, SIGKILL);
        waitpid((pid_t)c->pid, &status, 0);
    }
    return status;
}

void tool_child_describe_end(int status, char *text, size_t bytes)
{
    if (WIFSIGNALED(status))
        snprintf(text, bytes, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, bytes, "the process ended with %d", WEXITSTATUS(status));
}

_Noreturn void tool_child_leave(void)
{
    _exit(0);
}

bool tool_child_send(int socket, const void *data, size_t bytes)
{
    return send(socket, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

long tool_child_receive(int socket, int seconds, void *to, size_t bytes)
{
    struct pollfd wait = {.fd = socket, .events = POLLIN};
    const int64_t until = tern_os_now() + seconds * INT64_C(1000000000);
    int ready = 1;
    do {
        const int64_t left = until - tern_os_now();
        if (seconds)
            ready = left > 0 ? poll(&wait, 1, (int)(left / 1000000) + 1) : 0;
    } while (ready < 0);
    const ssize_t n = ready == 0 ? -1 : recv(socket, to, bytes, 0);
    return ready != 0 && n < 0 ? 0 : n;
}
#endif
