/* doctor_run.c -- children that a driver may kill or keep: the parent opens no device, gives each
 * child a row at a time, reads what it tells of it, and starts another for the rows behind one that
 * was lost. */
#include "tool/doctor.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_HANGS = 4, MOST_JOBS = 64, READ_BYTES = 1 << 16 };

/* ---- starting and ending --------------------------------------------------------------------- */

/* In the child: it ends with its parent, leaves no core, and what drivers print goes nowhere. */
static void become_child(const char *routes)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    int nowhere = open("/dev/null", O_RDWR);
    for (int i = 0; nowhere >= 0 && i < 3; i++)
        dup2(nowhere, i);
    if (routes && !*routes)
        unsetenv("TERN_DOCTOR");
    else
        setenv("TERN_DOCTOR", routes ? routes : "off", 1);
}

typedef struct child {
    pid_t pid;
    int socket; /* the parent's end, or in the child its own */
} child;

/* Who prints, takes a row or starts a child: no child is made of a thread that prints, or holds
 * another one's end. */
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

/* True in the child; c->pid < 0 where there is none. */
static bool start(child *c, const char *routes)
{
    int ends[2];
    *c = (child){.pid = -1, .socket = -1};
    pthread_mutex_lock(&one);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
        c->pid = fork();
        close(ends[c->pid == 0]);
        c->socket = ends[c->pid != 0];
    }
    pthread_mutex_unlock(&one);
    if (c->pid == 0)
        become_child(routes);
    return c->pid == 0;
}

/* What it ended by, told by waitpid; it is killed where it still runs. */
static int end(child *c)
{
    int status = 0;
    if (c->socket >= 0)
        close(c->socket);
    if (c->pid > 0) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, &status, 0);
    }
    return status;
}

/* Bytes within so many seconds: how many, 0 at the end, -1 where time ran out. */
static ssize_t receive(const child *c, int seconds, void *to, size_t bytes)
{
    struct pollfd wait = {.fd = c->socket, .events = POLLIN};
    double until = tool_now() + seconds;
    int ready;
    do {
        double left = until - tool_now();
        ready = left > 0 ? poll(&wait, 1, (int)(left * 1e3) + 1) : 0;
    } while (ready < 0);
    ssize_t n = ready == 0 ? -1 : recv(c->socket, to, bytes, 0);
    return ready != 0 && n < 0 ? 0 : n;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Those that are still to be given to a child. */
typedef struct queue {
    const doctor_work *work;
    int next, end_row;
    int hangs; /* one after the other, of all children */
} queue;

static int take(queue *q)
{
    pthread_mutex_lock(&one);
    int row = q->next < q->end_row ? q->next++ : -1;
    pthread_mutex_unlock(&one);
    return row;
}

static void print_report(queue *q, const doctor_report *r)
{
    const doctor_work *w = q->work;
    pthread_mutex_lock(&one);
    q->hangs = r->verdict == DOCTOR_HANG ? q->hangs + 1 : 0;
    if (q->hangs == MOST_HANGS)
        q->end_row = q->next;
    if (w->done)
        w->done(w->user, r);
    pthread_mutex_unlock(&one);
}

static void check_rows(const doctor_work *w, int parent)
{
    int row;
    while (recv(parent, &row, sizeof row, 0) == sizeof row) {
        doctor_report r = {.row = row};
        doctor_check(&w->rows[row], w->device, &r);
        if (send(parent, &r, sizeof r, MSG_NOSIGNAL) != sizeof r)
            break;
    }
    _exit(0); /* past what a driver does at exit */
}

static void say_lost(char *text, size_t bytes, bool hung, int status, int seconds)
{
    if (hung)
        snprintf(text, bytes, "not done within %d seconds", seconds);
    else if (WIFSIGNALED(status))
        snprintf(text, bytes, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, bytes, "the process ended with %d", WEXITSTATUS(status));
}

static void lose(doctor_report *r, bool hung, int status, int seconds)
{
    r->verdict = hung ? DOCTOR_HANG : DOCTOR_CRASH;
    say_lost(r->text, sizeof r->text, hung, status, seconds);
}

static void leave_out(doctor_report *r, int row, const char *why)
{
    *r = (doctor_report){.row = row, .verdict = DOCTOR_LEFT_OUT};
    snprintf(r->text, sizeof r->text, "%s", why);
}

/* Rows of the queue in one child, until one is lost or at fault, which is returned, or none is
 * left: -1. *n: how many were well. */
static int run_rows(queue *q, const char *routes, doctor_report *reports, int *n)
{
    const doctor_work *w = q->work;
    int row = take(q);
    child c;
    *n = 0;
    if (row < 0)
        return -1;
    if (start(&c, routes))
        check_rows(w, c.socket);
    if (c.pid < 0)
        leave_out(&reports[row], row, "no process could be started");
    while (c.pid > 0 && row >= 0) {
        doctor_report r;
        ssize_t got = send(c.socket, &row, sizeof row, MSG_NOSIGNAL) == sizeof row
                          ? receive(&c, w->seconds, &r, sizeof r)
                          : 0;
        reports[row] = got == sizeof r ? r : (doctor_report){.row = row};
        if (got != sizeof r) {
            lose(&reports[row], got < 0, end(&c), w->seconds);
            return row;
        }
        if (doctor_is_fault(r.verdict))
            break;
        print_report(q, &reports[row]);
        ++*n;
        row = take(q);
    }
    end(&c);
    return row;
}

void doctor_run_one(const doctor_work *w, int row, const char *routes, doctor_report *report)
{
    doctor_work alone = *w;
    alone.done = NULL;
    queue q = {.work = &alone, .next = row, .end_row = row + 1};
    doctor_report *reports = calloc((size_t)w->n, sizeof *reports);
    int n;
    *report = (doctor_report){.row = row, .verdict = DOCTOR_CRASH};
    if (reports) {
        run_rows(&q, routes, reports, &n);
        *report = reports[row];
    }
    free(reports);
}

/* A fault behind other rows may be theirs: it is tried again alone. */
static void confirm(const doctor_work *w, doctor_report *r)
{
    doctor_report again;
    doctor_run_one(w, r->row, w->routes, &again);
    /* A row that is done in time now was slow to compile before. */
    if (doctor_is_fault(again.verdict) || r->verdict == DOCTOR_HANG) {
        *r = again;
        return;
    }
    size_t used = strlen(r->text);
    snprintf(r->text + used, sizeof r->text - used, "%salone it is right", used ? "; " : "");
}

/* ---- several children at once ---------------------------------------------------------------- */

static void *run_share(void *user)
{
    queue *q = user;
    const doctor_work *w = q->work;
    int row, n;
    while ((row = run_rows(q, w->routes, w->reports, &n)) >= 0) {
        if (n > 0 && doctor_is_fault(w->reports[row].verdict))
            confirm(w, &w->reports[row]);
        print_report(q, &w->reports[row]);
    }
    return NULL;
}

void doctor_run(const doctor_work *w)
{
    queue q = {.work = w, .end_row = w->n};
    pthread_t threads[MOST_JOBS];
    int jobs = w->jobs < 1 ? 1 : w->jobs > MOST_JOBS ? MOST_JOBS : w->jobs, started = 1;
    while (started < jobs && pthread_create(&threads[started], NULL, run_share, &q) == 0)
        started++;
    run_share(&q);
    while (--started > 0)
        pthread_join(threads[started], NULL);
    for (int row = q.next; row < w->n; row++) {
        leave_out(&w->reports[row], row, "not tried: the device hung several times in a row");
        print_report(&q, &w->reports[row]);
    }
}

/* ---- a question ------------------------------------------------------------------------------ */

char *doctor_ask(int seconds, void (*function)(FILE *to, const void *user), const void *user)
{
    char why[200];
    return doctor_ask_why(seconds, function, user, why);
}

char *doctor_ask_why(int seconds, void (*function)(FILE *to, const void *user), const void *user,
                     char why[200])
{
    child c;
    if (start(&c, NULL)) {
        FILE *file = fdopen(c.socket, "w");
        if (file)
            function(file, user);
        if (file)
            fflush(file);
        _exit(0);
    }
    char *text = calloc(1, READ_BYTES);
    size_t used = 0;
    ssize_t n = c.pid < 0 ? -1 : 0;
    while (text && c.pid > 0 && used + 1 < READ_BYTES &&
           (n = receive(&c, seconds, text + used, READ_BYTES - 1 - used)) > 0)
        used += (size_t)n;
    int status = end(&c);
    if (n < 0 || used == 0) {
        say_lost(why, 200, n < 0, status, seconds);
        free(text);
        return NULL;
    }
    return text;
}
