/* profile.h -- the inside of a profiler: what it saw, in the order in which it began. */
#ifndef TERN_PROFILE_PROFILE_H
#define TERN_PROFILE_PROFILE_H
#include "base/profile.h"
#include "base/os.h"
#include "device/place.h"

typedef struct tern_event {
    const char *name, *path, *shapes; /* texts of the profiler; shapes may be NULL */
    int64_t outer;                    /* the event around it, from 1 on; 0: none */
    int64_t begin, end;               /* nanoseconds since the profiler was made */
    int64_t bytes;     /* copied; of a memory event: taken, or given back (negative) */
    int64_t allocated; /* of a memory event: bytes of live tensors */
    double flops;
    tern_place *place; /* of work */
    void *from, *to;   /* of work, until its times are known */
    int64_t device_begin, device_ns;
    int thread;
    uint8_t kind; /* a tern_range_kind, or: */
    bool done;
} tern_event;
enum { TERN_EVENT_MEMORY = 16 };

/* A device that was worked on: its first event, and when that was. */
typedef struct tern_event_clock {
    tern_place *place;
    void *first;
    int64_t at, late; /* late: how much later than that it was, at least */
} tern_event_clock;

enum { TERN_MOST_CLOCKS = 64 };

/* The number of a memory event in a run, as blocks keep it. */
enum { TERN_MAKER_BITS = 40 };

struct tern_profiler {
    tern_profiler_options options;
    tern_event *events;
    int64_t n, capacity, lost;
    int64_t run; /* the number of the start, for threads to tell old ranges from new */
    char **texts;
    size_t n_texts, text_capacity; /* a table by hash */
    tern_event_clock clocks[TERN_MOST_CLOCKS];
    int n_clocks;
    int64_t zero; /* tern_os_now() */
};

/* A copy of the text that lives as long as the profiler; "" when memory is out. With the lock
 * held. */
const char *tern_profile_text(tern_profiler *p, const char *text);
/* A row for each name (and path), in any order: *rows is the caller's to free; how many, -1 when
 * memory is out. */
int64_t tern_profile_rows(tern_profiler *p, bool by_module, tern_profiler_row **rows);
/* The multiplications and additions of a call, counted apart; 0 where they are not counted. */
struct tern_call;
double tern_profile_flops(const struct tern_call *call);

#endif
