/* doctor_run.c -- children that a driver may kill or keep: the parent opens no device, reads what they tell from a pipe,
 * and starts another behind the row that was lost. */
#include "tool/doctor.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
    int from;
} child;

/* True in the child, which writes to *to; c->pid < 0 where there is none. */
static bool start(child *c, const char *routes, int *to)
{
    int ends[2];
    *c = (child){.pid = -1, .from = -1};
    if (pipe(ends) != 0)
        return false;
    c->pid = fork();
    if (c->pid == 0) {
        close(ends[0]);
        *to = ends[1];
        become_child(routes);
        return true;
    }
    close(ends[1]);
    c->from = ends[0];
    return false;
}

/* What it ended by, told by waitpid; it is killed where it still runs. */
static int end(child *c)
{
    int status = 0;
    if (c->from >= 0)
        close(c->from);
    if (c->pid > 0) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, &status, 0);
    }
    return status;
}

/* Bytes within so many seconds: how many, 0 at the end, -1 where time ran out. */
static ssize_t receive(const child *c, int seconds, void *to, size_t bytes)
{
    struct pollfd wait = {.fd = c->from, .events = POLLIN};
    double until = tool_now() + seconds;
    int ready;
    do {
        double left = until - tool_now();
        ready = left > 0 ? poll(&wait, 1, (int)(left * 1e3) + 1) : 0;
    } while (ready < 0);
    return ready == 0 ? -1 : read(c->from, to, bytes);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void check_rows(const doctor_work *w, int first, int end_row, int to)
{
    for (int row = first; row < end_row; row++) {
        doctor_report r = {.row = row, .verdict = -1};
        if (write(to, &r, sizeof r) != sizeof r)
            break;
        doctor_check(&w->rows[row], w->device, &r);
        if (write(to, &r, sizeof r) != sizeof r)
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

static void tell(const doctor_work *w, const doctor_report *r);

/* Rows from first on in one child, until one is at fault or all are done; returns the row behind. */
static int run_rows(const doctor_work *w, int first, int end_row, const char *routes,
                    doctor_report *reports)
{
    child c;
    int to, row = first;
    if (start(&c, routes, &to))
        check_rows(w, first, end_row, to);
    bool hung = false, begun = false, fault = c.pid < 0;
    while (row < end_row && !fault) {
        doctor_report r;
        ssize_t n = receive(&c, w->seconds, &r, sizeof r);
        hung = n < 0;
        if (n != sizeof r)
            break;
        begun = r.verdict < 0;
        if (begun)
            continue;
        reports[row] = r;
        fault = doctor_is_fault(r.verdict);
        if (!fault)
            tell(w, &reports[row]);
        row++;
    }
    int status = end(&c);
    if (row < end_row && !fault) {
        reports[row] = (doctor_report){.row = row};
        lose(&reports[row], hung, status, w->seconds);
        row++;
    }
    return row;
}

void doctor_run_one(const doctor_work *w, int row, const char *routes, doctor_report *report)
{
    doctor_work alone = *w;
    alone.done = NULL;
    doctor_report *reports = calloc((size_t)w->n, sizeof *reports);
    *report = (doctor_report){.row = row, .verdict = DOCTOR_CRASH};
    if (reports) {
        run_rows(&alone, row, row + 1, routes, reports);
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

/* ---- several children at once ------------------------------------------------------------------ */

static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

static void tell(const doctor_work *w, const doctor_report *r)
{
    pthread_mutex_lock(&telling);
    if (w->done)
        w->done(w->user, r);
    pthread_mutex_unlock(&telling);
}

static void leave_out(doctor_report *r, int row, const char *why)
{
    *r = (doctor_report){.row = row, .verdict = DOCTOR_LEFT_OUT};
    snprintf(r->text, sizeof r->text, "%s", why);
}

typedef struct share {
    const doctor_work *work;
    int first, end_row;
    pthread_t thread;
    bool runs;
} share;

static void *run_share(void *user)
{
    const share *s = user;
    const doctor_work *w = s->work;
    int hangs = 0;
    for (int first = s->first; first < s->end_row;) {
        int behind = run_rows(w, first, s->end_row, w->routes, w->reports);
        doctor_report *last = &w->reports[behind > first ? behind - 1 : first];
        if (behind == first)
            leave_out(last, behind++, "no process could be started");
        bool fault = doctor_is_fault(last->verdict);
        if (fault && last->row > first)
            confirm(w, last);
        if (fault)
            tell(w, last);
        fault = doctor_is_fault(last->verdict);
        hangs = !fault || last->verdict != DOCTOR_HANG ? 0 : hangs + 1;
        for (first = behind; hangs == MOST_HANGS && first < s->end_row; first++)
            leave_out(&w->reports[first], first,
                      "not tried: the device hung several times in a row");
    }
    return NULL;
}

void doctor_run(const doctor_work *w)
{
    share shares[MOST_JOBS];
    int jobs = w->jobs < 1 ? 1 : w->jobs > MOST_JOBS ? MOST_JOBS : w->jobs;
    for (int i = 0; i < jobs; i++) {
        shares[i] = (share){.work = w,
                            .first = (int)((int64_t)w->n * i / jobs),
                            .end_row = (int)((int64_t)w->n * (i + 1) / jobs)};
        shares[i].runs =
            i > 0 && pthread_create(&shares[i].thread, NULL, run_share, &shares[i]) == 0;
    }
    for (int i = 0; i < jobs; i++)
        if (shares[i].runs)
            pthread_join(shares[i].thread, NULL);
        else
            run_share(&shares[i]);
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
    int to;
    if (start(&c, NULL, &to)) {
        FILE *file = fdopen(to, "w");
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
