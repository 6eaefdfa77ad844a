/* doctor_run.c -- runs checks in child processes, which a driver may crash or hang. The parent
 * opens no device; it sends each child one row at a time, reads the report, and starts a new child
 * after a row is lost. */
#include "tool/doctor.h"
#include "base/os.h"
#include "base/os.h"
#include "tool/os_children.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_HANGS = 4, MOST_JOBS = 64, READ_BYTES = 1 << 16 };

/* Held while a thread prints, takes a row or starts a child: a fork must not happen while another
 * thread prints, and a child must not inherit another child's socket. */
static tern_mutex one = TERN_MUTEX_INIT;

static bool start(tool_child *c, const char *routes)
{
    tern_mutex_lock(&one);
    const bool is_child = tool_child_start(c, routes);
    tern_mutex_unlock(&one);
    return is_child;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The rows that no child has taken yet. */
typedef struct queue {
    const doctor_work *work;
    int next, end_row;
    int hangs; /* consecutive hangs, counted over all children */
} queue;

static int take(queue *q)
{
    tern_mutex_lock(&one);
    int row = q->next < q->end_row ? q->next++ : -1;
    tern_mutex_unlock(&one);
    return row;
}

static void print_report(queue *q, const doctor_report *r)
{
    const doctor_work *w = q->work;
    tern_mutex_lock(&one);
    q->hangs = r->verdict == DOCTOR_HANG ? q->hangs + 1 : 0;
    if (q->hangs == MOST_HANGS)
        q->end_row = q->next;
    if (w->done)
        w->done(w->user, r);
    tern_mutex_unlock(&one);
}

static void check_rows(const doctor_work *w, int parent)
{
    int row;
    while (tool_child_receive(parent, 0, &row, sizeof row) == sizeof row) {
        doctor_report r = {.row = row};
        doctor_check(&w->rows[row], w->device, &r);
        if (!tool_child_send(parent, &r, sizeof r))
            break;
    }
    tool_child_leave();
}

static void say_lost(char *text, size_t bytes, bool hung, int status, int seconds)
{
    if (hung)
        snprintf(text, bytes, "not done within %d seconds", seconds);
    else
        tool_child_describe_end(status, text, bytes);
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

/* run_rows without children: a driver that crashes ends the program. */
static int run_here(queue *q, int row, doctor_report *reports, int *n)
{
    for (; row >= 0; ++*n, row = take(q)) {
        reports[row] = (doctor_report){.row = row};
        doctor_check(&q->work->rows[row], q->work->device, &reports[row]);
        if (doctor_is_fault(reports[row].verdict))
            return row;
        print_report(q, &reports[row]);
    }
    return -1;
}

/* Checks rows of the queue in one child until a row is lost or faulty, and returns that row, or -1
 * if no row is left. *n: the number of rows without fault. */
static int run_rows(queue *q, const char *routes, doctor_report *reports, int *n)
{
    const doctor_work *w = q->work;
    int row = take(q);
    tool_child c;
    *n = 0;
    if (row < 0)
        return -1;
    if (!tool_has_children())
        return run_here(q, row, reports, n);
    if (start(&c, routes))
        check_rows(w, c.socket);
    if (c.pid < 0)
        leave_out(&reports[row], row, "no process could be started");
    while (c.pid > 0 && row >= 0) {
        doctor_report r;
        const long got = tool_child_send(c.socket, &row, sizeof row)
                             ? tool_child_receive(c.socket, w->seconds, &r, sizeof r)
                             : 0;
        reports[row] = got == sizeof r ? r : (doctor_report){.row = row};
        if (got != sizeof r) {
            lose(&reports[row], got < 0, tool_child_end(&c), w->seconds);
            return row;
        }
        if (doctor_is_fault(r.verdict))
            break;
        print_report(q, &reports[row]);
        ++*n;
        row = take(q);
    }
    tool_child_end(&c);
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

/* Checks a faulty row again in a child of its own, because rows before it may have caused the
 * fault. */
static void confirm(const doctor_work *w, doctor_report *r)
{
    doctor_report again;
    doctor_run_one(w, r->row, w->routes, &again);
    /* A row that now finishes in time was slow because of compilation before. */
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
    tern_os_thread threads[MOST_JOBS];
    int jobs = w->jobs < 1 ? 1 : w->jobs > MOST_JOBS ? MOST_JOBS : w->jobs, started = 1;
    while (started < jobs && tern_os_thread_start(&threads[started], run_share, &q))
        started++;
    run_share(&q);
    while (--started > 0)
        tern_os_thread_join(threads[started]);
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
    tool_child c;
    if (!tool_has_children()) {
        tern_os_text text;
        FILE *file = tern_os_text_begin(&text);
        if (file)
            function(file, user);
        return tern_os_text_end(&text);
    }
    if (start(&c, NULL)) {
        FILE *file = tern_os_fdopen(c.socket, "w");
        if (file)
            function(file, user);
        if (file)
            fflush(file);
        tool_child_leave();
    }
    char *text = calloc(1, READ_BYTES);
    size_t used = 0;
    long n = c.pid < 0 ? -1 : 0;
    while (text && c.pid > 0 && used + 1 < READ_BYTES &&
           (n = tool_child_receive(c.socket, seconds, text + used, READ_BYTES - 1 - used)) > 0)
        used += (size_t)n;
    int status = tool_child_end(&c);
    if (n < 0 || used == 0) {
        say_lost(why, 200, n < 0, status, seconds);
        free(text);
        return NULL;
    }
    return text;
}
