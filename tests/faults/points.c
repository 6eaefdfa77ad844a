/* points.c -- entry points, counted under a lock. */
#include "faults/points.h"
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const char *name;
    unsigned long long calls;
} points[MOST_FAULT_POINTS];
static int count;
static struct {
    char name[64];
    unsigned long long n;
    bool on;
    int code;
} armed;

static int find(const char *name)
{
    int i = 0;
    while (i < count && points[i].name != name && strcmp(points[i].name, name) != 0)
        i++;
    if (i == count && count < MOST_FAULT_POINTS)
        points[count++].name = name;
    return i < count ? i : count - 1;
}

int fault_point(const char *name)
{
    pthread_mutex_lock(&lock);
    unsigned long long call = ++points[find(name)].calls;
    bool fails = armed.code && strcmp(armed.name, name) == 0 &&
                 (armed.on ? call >= armed.n : call == armed.n);
    int code = fails ? armed.code : 0;
    pthread_mutex_unlock(&lock);
    return code;
}

int fault_points(void)
{
    pthread_mutex_lock(&lock);
    int n = count;
    pthread_mutex_unlock(&lock);
    return n;
}

const char *fault_name(int i)
{
    return points[i].name;
}

unsigned long long fault_calls(int i)
{
    pthread_mutex_lock(&lock);
    unsigned long long calls = points[i].calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

void fault_arm(const char *name, unsigned long long n, bool on, int code)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        points[i].calls = 0;
    memset(&armed, 0, sizeof armed);
    if (name) {
        strncpy(armed.name, name, sizeof armed.name - 1);
        armed.n = n;
        armed.on = on;
        armed.code = code;
    }
    pthread_mutex_unlock(&lock);
}
