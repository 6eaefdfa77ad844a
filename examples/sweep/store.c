/* store.c -- successive halving without rounds (ASHA, Li et al. 2020), out of files in a folder. */
#include "store.h"
#include "../portable.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(const store *s, int trial, int rung, const char *end, char *text,
                           size_t bytes)
{
    snprintf(text, bytes, "%s/%04d-%d.%s", s->folder, trial, rung, end);
    return text;
}

int store_epochs(int rung)
{
    int epochs = 4;
    while (rung-- > 0)
        epochs *= STORE_ETA;
    return epochs;
}

void store_read(store *s)
{
    char path[1024];
    for (int t = 0; t < s->trials; t++)
        for (int k = 0; k < s->rungs; k++) {
            store_result *r = &s->results[t][k];
            if (r->done)
                continue;
            r->claimed = access(path_of(s, t, k, "claim", path, sizeof path), F_OK) == 0;
            FILE *file =
                r->claimed ? fopen(path_of(s, t, k, "result", path, sizeof path), "r") : NULL;
            if (file) {
                r->done = fscanf(file, "%lf %lf %lf %d", &r->loss, &r->accuracy, &r->seconds,
                                 &r->worker) == 4;
                fclose(file);
            }
        }
}

bool store_begin(store *s)
{
    char path[1024];
    if (mkdir(s->folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "sweep: %s: %s\n", s->folder, strerror(errno));
        return false;
    }
    store_read(s);
    for (int t = 0; t < s->trials; t++)
        for (int k = 0; k < s->rungs; k++)
            if (s->results[t][k].claimed && !s->results[t][k].done)
                unlink(path_of(s, t, k, "claim", path, sizeof path));
    return true;
}

static bool claim(const store *s, int trial, int rung, store_job *job)
{
    char path[1024];
    int file = open(path_of(s, trial, rung, "claim", path, sizeof path), O_CREAT | O_EXCL, 0666);
    if (file < 0)
        return false;
    close(file);
    *job = (store_job){trial, rung};
    return true;
}

/* How many of the rung are better than the trial. */
static int better(const store *s, int trial, int rung, int *all)
{
    int n = 0;
    *all = 0;
    for (int t = 0; t < s->trials; t++) {
        const store_result *r = &s->results[t][rung];
        *all += r->done;
        n += r->done && (r->loss < s->results[trial][rung].loss ||
                         (r->loss == s->results[trial][rung].loss && t < trial));
    }
    return n;
}

int store_take(store *s, store_job *job)
{
    int all, under_way = 0;
    store_read(s);
    for (int k = s->rungs - 2; k >= 0; k--)
        for (int t = 0; t < s->trials; t++)
            if (s->results[t][k].done && !s->results[t][k + 1].claimed &&
                better(s, t, k, &all) < all / STORE_ETA && claim(s, t, k + 1, job))
                return 1;
    for (int t = 0; t < s->trials; t++)
        if (!s->results[t][0].claimed && claim(s, t, 0, job))
            return 1;
    store_read(s);
    for (int t = 0; t < s->trials; t++)
        for (int k = 0; k < s->rungs; k++)
            under_way += s->results[t][k].claimed && !s->results[t][k].done;
    return under_way ? 0 : -1;
}

bool store_write(const store *s, const store_job *job, const store_result *r)
{
    char path[1024], last[1024];
    FILE *file = fopen(path_of(s, job->trial, job->rung, "new", path, sizeof path), "w");
    if (!file)
        return false;
    fprintf(file, "%.9g %.9g %.3f %d\n", r->loss, r->accuracy, r->seconds, r->worker);
    return fclose(file) == 0 &&
           rename(path, path_of(s, job->trial, job->rung, "result", last, sizeof last)) == 0;
}
