/* catch.c -- see catch.h. A fault is told from others by what the report says and the first
 * function of the library in it. */
#include "catch.h"
#include "fuzz.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_KINDS = 400, BATCH = 1500 };

typedef struct kind {
    char text[240];
    uint64_t count, first;
} kind;
static kind kinds[MOST_KINDS];
static int kind_count;

/* Shared with the children. */
typedef struct progress {
    volatile uint64_t run; /* the one that began last */
    volatile uint64_t calls, good_calls;
} progress;

/* ---- reports ------------------------------------------------------------------------------ */

/* What follows the last slash of a path, up to a blank. */
static void add_place(char *text, size_t size, const char *line)
{
    const char *in = strstr(line, " in "), *end = strpbrk(line, "\n");
    const char *slash = line;
    for (const char *c = line; c < end; c++)
        slash = *c == '/' ? c + 1 : slash;
    size_t length = strlen(text);
    if (in && in < end)
        snprintf(text + length, size - length, " | %.*s %.*s", (int)strcspn(in + 4, " \n"), in + 4,
                 (int)(end - slash), slash);
}

/* Numbers are another matter each time: one # for each. */
static void hide_numbers(char *text)
{
    char *to = text;
    for (const char *c = text; *c; c++)
        if (*c < '0' || *c > '9')
            *to++ = *c;
        else if (to == text || to[-1] != '#')
            *to++ = '#';
    *to = '\0';
}

/* The kind of fault in a report. */
static void read_report(const char *report, char *text, size_t size)
{
    static const char *const marks[] = {
        "FAULT: ", "runtime error: ", "ERROR: AddressSanitizer: ", "ERROR: LeakSanitizer: "};
    snprintf(text, size, "a process ended");
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *at = strstr(report, marks[i]);
        if (!at)
            continue;
        at += i == 0 ? 0 : strlen(marks[i]);
        size_t length = strcspn(at, i == 2 ? " \n" : "\n");
        snprintf(text, size, "%.*s", (int)(length < 120 ? length : 120), at);
        hide_numbers(text);
        if (i == 0 && !strstr(text, "hang"))
            return;
        break;
    }
    const char *end;
    for (const char *line = report; (end = strchr(line, '\n')); line = end + 1) {
        const char *source = strstr(line, "/src/"), *test = strstr(line, "/tests/fuzz/");
        source = source ? source : test;
        if (strncmp(line, "    #", 5) == 0 && source && source < end) {
            add_place(text, size, line);
            return;
        }
    }
}

static char *read_all(FILE *file)
{
    rewind(file);
    char *text = calloc(1, 1 << 18);
    if (text && fread(text, 1, (1 << 18) - 1, file) == 0)
        text[0] = '\0';
    return text;
}

/* ---- children ----------------------------------------------------------------------------- */

/* Run programs from first on, up to end, in a child whose stderr goes to a file; true if all went
 * well. */
static bool run_child(const fuzz_plan *plan, uint64_t first, uint64_t end, progress *shared,
                      FILE *report, bool verbose)
{
    uint64_t calls = shared->calls, good_calls = shared->good_calls;
    fflush(NULL);
    if (ftruncate(fileno(report), 0) != 0)
        return false;
    rewind(report);
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(report), 2);
        fuzz_log = verbose ? stderr : NULL;
        for (uint64_t run = first; run < end; run++) {
            shared->run = run;
            fuzz_run_seeded(plan->seed, run);
            shared->calls = calls + fuzz_calls;
            shared->good_calls = good_calls + fuzz_good_calls;
        }
        shared->run = end;
        exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void save(const fuzz_plan *plan, uint64_t run, int number, progress *shared)
{
    char path[1024];
    progress before = *shared;
    mkdir(plan->folder, 0777);
    snprintf(path, sizeof path, "%s/%03d-%llu-%llu.txt", plan->folder, number,
             (unsigned long long)plan->seed, (unsigned long long)run);
    FILE *file = fopen(path, "w+");
    if (!file)
        return;
    run_child(plan, run, run + 1, shared, file, true);
    fclose(file);
    *shared = before;
    printf("     --seed %llu --first %llu --runs 1, or the file %s\n",
           (unsigned long long)plan->seed, (unsigned long long)run, path);
    fflush(stdout);
}

static void count_fault(const fuzz_plan *plan, uint64_t run, char *report, progress *shared)
{
    char text[sizeof kinds[0].text];
    read_report(report, text, sizeof text);
    for (int i = 0; i < kind_count; i++)
        if (strcmp(kinds[i].text, text) == 0) {
            kinds[i].count++;
            return;
        }
    if (kind_count == MOST_KINDS)
        return;
    kind *new = &kinds[kind_count++];
    snprintf(new->text, sizeof new->text, "%s", text);
    new->count = 1;
    new->first = run;
    printf("new: %llu: %s\n", (unsigned long long)run, text);
    fflush(stdout);
    save(plan, run, kind_count, shared);
}

static int more_first(const void *a, const void *b)
{
    const kind *x = a, *y = b;
    return (x->count < y->count) - (x->count > y->count);
}

int fuzz_catch(const fuzz_plan *plan)
{
    progress *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FILE *report = tmpfile();
    time_t start = time(NULL);
    uint64_t run = plan->first, end = plan->first + plan->runs, faults = 0;
    while (shared != MAP_FAILED && report && run < end) {
        if (plan->seconds && time(NULL) - start >= (time_t)plan->seconds)
            break;
        uint64_t last = run + BATCH < end ? run + BATCH : end;
        if (run_child(plan, run, last, shared, report, false)) {
            run = last;
            continue;
        }
        char *text = read_all(report);
        faults++;
        run = shared->run;
        if (text)
            count_fault(plan, run, text, shared);
        run += run < last;
        free(text);
    }
    qsort(kinds, (size_t)kind_count, sizeof *kinds, more_first);
    for (int i = 0; i < kind_count; i++)
        printf("%6llu  %llu: %s\n", (unsigned long long)kinds[i].count,
               (unsigned long long)kinds[i].first, kinds[i].text);
    fuzz_print_counts(plan, run - plan->first, shared->calls, shared->good_calls);
    printf("%llu faults of %d kinds\n", (unsigned long long)faults, kind_count);
    return faults != 0;
}
