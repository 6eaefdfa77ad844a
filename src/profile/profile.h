/* profile.h -- the data of a profiler: its events, in the order in which they began. */
#ifndef TERN_PROFILE_PROFILE_H
#define TERN_PROFILE_PROFILE_H
#include "base/profile.h"
#include "base/os.h"
#include "device/place.h"

typedef struct tern_event {
    const char *name, *path, *shapes; /* owned by the profiler; shapes may be NULL */
    int64_t outer;                    /* 1 + index of the enclosing event; 0: none */
    int64_t begin, end;               /* nanoseconds since the profiler was created */
    int64_t bytes;     /* copied; of a memory event: allocated, or freed (negative) */
    int64_t allocated; /* bytes of live tensors after a memory event */
    double flops;
    tern_place *place; /* of a command */
    void *from, *to;   /* events of the backend around a command, freed once its times are read */
    int64_t device_begin, device_ns;
    int thread;
    uint8_t kind; /* a tern_range_kind, or TERN_EVENT_MEMORY */
    bool done;
} tern_event;
enum { TERN_EVENT_MEMORY = 16 };

/* The clock of a device: its first event, and the host's time of that. */
typedef struct tern_event_clock {
    tern_place *place;
    void *first;
    int64_t at, late; /* late: delay of the first event after `at`, at least */
} tern_event_clock;

enum { TERN_MOST_CLOCKS = 64 };

/* A block stores run << TERN_MAKER_BITS plus the number of its memory event in that run. */
enum { TERN_MAKER_BITS = 40 };

struct tern_profiler {
    tern_profiler_options options;
    tern_event *events;
    int64_t n, capacity, lost;
    int64_t run; /* number of the start; threads compare it with that of a range */
    char **texts;
    size_t n_texts, text_capacity; /* hash table */
    tern_event_clock clocks[TERN_MOST_CLOCKS];
    int n_clocks;
    int64_t zero; /* tern_os_now() when it was created */
};

/* Returns a copy of the text that is freed with the profiler, or "" if out of memory. The caller
 * holds the lock. */
const char *tern_profile_text(tern_profiler *p, const char *text);
/* Sets *rows to a row for each name (and path), in any order, which the caller frees. Returns their
 * number, or -1 if out of memory. */
int64_t tern_profile_rows(tern_profiler *p, bool by_module, tern_profiler_row **rows);
/* Returns the number of multiplications and additions of a call, counted separately, or 0 for an
 * operation that is not counted. */
struct tern_call;
double tern_profile_flops(const struct tern_call *call);

#endif
