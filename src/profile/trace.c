/* trace.c -- writes events as a Chrome trace, with the fields that readers of PyTorch's expect. */
#include "profile/profile.h"
#include "base/os.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Writes a JSON string, with control characters, quotes and backslashes escaped. */
static void put_text(FILE *file, const char *text)
{
    putc('"', file);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 32)
            fprintf(file, "\\u%04x", c);
        else
            putc(c, file);
    }
    putc('"', file);
}

static void put_time(FILE *file, const char *name, int64_t ns)
{
    fprintf(file, "\"%s\":%lld.%03d,", name, (long long)(ns / 1000), (int)(ns % 1000));
}

/* Returns the process id of a device in the trace, from 100 on. */
static int pid_of(const tern_place *const *places, int n, const tern_place *place)
{
    for (int i = 0; i < n; i++)
        if (places[i] == place)
            return 100 + i;
    return 100;
}

static void put_names(FILE *file, const tern_place *const *places, int n)
{
    fprintf(file,
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"host\"}}");
    for (int i = 0; i < n; i++) {
        fprintf(file, ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":",
                100 + i);
        put_text(file, places[i]->text);
        fprintf(file,
                "}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%d,\"args\":{\"sort_"
                "index\":%d}}",
                100 + i, 100 + i);
    }
}

static void put_host(FILE *file, const tern_event *e, int64_t number)
{
    static const char *const categories[] = {"cpu_op",     "cpu_op",       "user_annotation",
                                             "gpu_memcpy", "cuda_runtime", "cuda_runtime"};
    fprintf(file, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", categories[e->kind]);
    put_text(file, e->name);
    fprintf(file, ",\"pid\":1,\"tid\":%d,", e->thread);
    put_time(file, "ts", e->begin);
    put_time(file, "dur", e->end - e->begin);
    fprintf(file, "\"args\":{\"External id\":%lld", (long long)(e->outer ? e->outer : number));
    if (e->kind == TERN_RANGE_COMMAND)
        fprintf(file, ",\"correlation\":%lld", (long long)number);
    if (*e->path) {
        fprintf(file, ",\"module\":");
        put_text(file, e->path);
    }
    if (e->shapes) {
        fprintf(file, ",\"Input Dims\":");
        put_text(file, e->shapes);
    }
    if (e->kind == TERN_RANGE_COPY)
        fprintf(file, ",\"bytes\":%lld", (long long)e->bytes);
    fprintf(file, "}}");
}

/* Writes a kernel on its device, and the arrow from its launch. It begins no earlier than the
 * previous kernel ends. */
static void put_work(FILE *file, const tern_event *e, int64_t number, int pid, int64_t *free_at)
{
    int64_t begin = e->device_begin > *free_at ? e->device_begin : *free_at;
    int64_t end = e->device_begin + e->device_ns > begin ? e->device_begin + e->device_ns : begin;
    *free_at = end;
    fprintf(file, ",\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":");
    put_text(file, e->name);
    fprintf(file, ",\"pid\":%d,\"tid\":0,", pid);
    put_time(file, "ts", begin);
    put_time(file, "dur", end - begin);
    fprintf(file,
            "\"args\":{\"External id\":%lld,\"correlation\":%lld,\"stream\":0,\"device\":%d}}",
            (long long)(e->outer ? e->outer : number), (long long)number, pid - 100);
    fprintf(
        file,
        ",\n{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"launch\",\"id\":%lld,\"pid\":1,\"tid\":%d,",
        (long long)number, e->thread);
    fprintf(file, "\"ts\":%lld.%03d}", (long long)(e->begin / 1000), (int)(e->begin % 1000));
    fprintf(file,
            ",\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"launch\",\"id\":%lld,"
            "\"pid\":%d,\"tid\":0,",
            (long long)number, pid);
    fprintf(file, "\"ts\":%lld.%03d}", (long long)(begin / 1000), (int)(begin % 1000));
}

/* The bytes of a module's tensors on a device. */
typedef struct held {
    const char *device, *path;
    int64_t bytes;
} held;

typedef struct memory {
    held *all;
    int64_t n;
} memory;

/* Returns the entry of a module on a device, or NULL if out of memory. Memory allocated before the
 * profile has no module. */
static held *held_by(memory *m, const char *device, const char *path, int64_t before)
{
    for (int64_t i = 0; i < m->n; i++)
        if (m->all[i].device == device && m->all[i].path == path)
            return &m->all[i];
    held *grown = tern_grow(m->all, sizeof *grown * (size_t)(m->n + 1));
    if (!grown)
        return NULL;
    m->all = grown;
    grown[m->n] = (held){device, path, before};
    return &grown[m->n++];
}

static void put_counter(FILE *file, const char *name, int64_t at, int64_t bytes)
{
    fprintf(file, ",\n{\"ph\":\"C\",\"name\":");
    put_text(file, name);
    fprintf(file, ",\"pid\":1,");
    put_time(file, "ts", at);
    fprintf(file, "\"args\":{\"allocated\":%lld}}", (long long)bytes);
}

/* Writes the counters of a device and of the module that allocated the memory: "opencl:0
 * blocks.0.mlp". */
static void put_memory(FILE *file, const tern_event *e, memory *m)
{
    char name[512];
    put_counter(file, e->name, e->begin, e->allocated);
    held *before = held_by(m, e->name, "", e->allocated - e->bytes);
    held *of = before && *e->path ? held_by(m, e->name, e->path, 0) : before;
    if (!of)
        return;
    of->bytes += e->bytes;
    snprintf(name, sizeof name, "%s %s", e->name, *e->path ? e->path : "(no module)");
    put_counter(file, name, e->begin, of->bytes);
}

static void put_events(FILE *file, const tern_profiler *p)
{
    memory seen = {0};
    const tern_place *places[TERN_MOST_CLOCKS];
    int64_t free_at[TERN_MOST_CLOCKS] = {0};
    int n = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const tern_place *place = p->events[i].place;
        int k = 0;
        while (place && k < n && places[k] != place)
            k++;
        if (place && k == n && n < TERN_MOST_CLOCKS)
            places[n++] = place;
    }
    put_names(file, places, n);
    for (int64_t i = 0; i < p->n; i++) {
        const tern_event *e = &p->events[i];
        if (e->kind == TERN_EVENT_MEMORY) {
            put_memory(file, e, &seen);
            continue;
        }
        put_host(file, e, i + 1);
        if (e->kind == TERN_RANGE_COMMAND && e->place && e->done) {
            int pid = pid_of(places, n, e->place);
            put_work(file, e, i + 1, pid, &free_at[pid - 100]);
        }
    }
    tern_free(seen.all);
}

tern_status tern_profiler_write_trace(tern_profiler *p, const char *path)
{
    if (!p || !path)
        return tern_fail_argument_null("tern_profiler_write_trace", p ? "path" : "profiler");
    FILE *file = tern_os_fopen(path, "wb");
    if (!file)
        return tern_fail(TERN_ERR_IO, "tern_profiler_write_trace: %s: %s", path, strerror(errno));
    fprintf(file, "{\"displayTimeUnit\":\"ns\",\"schemaVersion\":1,\"traceEvents\":[\n");
    put_events(file, p);
    fprintf(file, "\n],\"lost\":%lld}\n", (long long)p->lost);
    bool good = !ferror(file);
    good = fclose(file) == 0 && good;
    return good
               ? TERN_OK
               : tern_fail(TERN_ERR_IO, "tern_profiler_write_trace: %s: %s", path, strerror(errno));
}
