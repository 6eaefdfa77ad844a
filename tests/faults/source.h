/* source.h -- what a test lets fail: host memory, or an entry point of a driver of the tests' own. */
#ifndef TERN_TESTS_FAULT_SOURCE_H
#define TERN_TESTS_FAULT_SOURCE_H
#include "base/memory.h"
#include "faults/points.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A source of failures: host memory, or an entry point of a driver. */
typedef struct source {
    const char *point; /* NULL: host memory */
    unsigned long long n;
    bool on;    /* from the n-th on */
    bool fatal; /* with a code after which the device is lost */
} source;

/* The functions of faults/points.h in the driver's library. */
static struct {
    int (*points)(void);
    const char *(*name)(int i);
    unsigned long long (*calls)(int i);
    void (*arm)(const char *name, unsigned long long n, bool on, int code);
} driver;

static inline bool load_driver(void)
{
    const char *path = getenv("TERN_FAULT_DRIVER");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!library)
        return false;
    *(void **)&driver.points = dlsym(library, "fault_points");
    *(void **)&driver.name = dlsym(library, "fault_name");
    *(void **)&driver.calls = dlsym(library, "fault_calls");
    *(void **)&driver.arm = dlsym(library, "fault_arm");
    return driver.points && driver.name && driver.calls && driver.arm;
}

/* "There is no memory", in the words of each library, and something else. */
static inline int code_for(const char *point, unsigned long long n, bool fatal)
{
    bool memory = n % 2;
    if (strncmp(point, "cl", 2) == 0)
        return fatal ? -36 : memory ? -4 : -59;
    if (strncmp(point, "cudnn", 5) == 0)
        return memory ? 4003 : 5000;
    if (strncmp(point, "cublas", 6) == 0)
        return memory ? 3 : 13;
    return fatal ? 719 : memory ? 2 : 1;
}

static inline void arm(const source *s)
{
    if (s->point)
        driver.arm(s->point, s->n, s->on, code_for(s->point, s->n, s->fatal));
    else if (s->on)
        tern_memory_fail_from(s->n);
    else
        tern_memory_fail_at(s->n);
}

/* How many calls there were. */
static inline unsigned long long disarm(const source *s)
{
    unsigned long long calls = 0;
    if (!s->point)
        return tern_memory_fail_at(0);
    for (int i = 0; i < driver.points(); i++)
        if (strcmp(driver.name(i), s->point) == 0)
            calls = driver.calls(i);
    driver.arm(NULL, 0, false, 0);
    return calls;
}

static inline const char *text_of(const source *s)
{
    static char text[128];
    snprintf(text, sizeof text, "call %llu%s of %s", s->n,
             s->fatal ? ", fatal,"
             : s->on  ? " and those after it"
                      : "",
             s->point ? s->point : "malloc");
    return text;
}

/* Of `calls` calls those that fail in turn, at most `most` without TERN_TEST_ALL. */
static inline unsigned long long stride(unsigned long long calls, unsigned long long most)
{
    return getenv("TERN_TEST_ALL") || calls <= most ? 1 : (calls + most - 1) / most;
}

#endif
