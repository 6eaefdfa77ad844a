/* doctor.h -- the parts of `tern doctor`: calls that are made up, their comparison with the cpu's,
 * children that a driver may kill, ways around, the profile. */
#ifndef TERN_TOOL_DOCTOR_H
#define TERN_TOOL_DOCTOR_H
#include "tool/tool.h"
#include <jansson.h>
#include <tern/names.h>

/* ---- a call (doctor_call.c) ------------------------------------------------------------------ */
enum { DOCTOR_LIST = 3, DOCTOR_OUTS = 64 };

typedef struct doctor_call {
    const tern_named_op *op;
    int n;
    tern_value value[TERN_MAX_PARAMETERS];
    bool leaf[TERN_MAX_PARAMETERS];   /* its gradient is asked for */
    bool device[TERN_MAX_PARAMETERS]; /* a text: the device's name */
    tern_tensor *list[TERN_MAX_PARAMETERS][DOCTOR_LIST];
    int64_t ints[TERN_MAX_PARAMETERS][4];
    double reals[TERN_MAX_PARAMETERS][4];
    char text[TERN_MAX_PARAMETERS][48], name[TERN_MAX_PARAMETERS][32];
} doctor_call;

/* What is checked: an operation of the names table, with inputs of a type, of few or of many
 * elements. */
typedef struct doctor_row {
    int op;
    tern_dtype dtype;
    bool large;
} doctor_row;

/* The arguments of a row by a seed, on the cpu, owned by the scope. */
void doctor_make(doctor_call *call, const doctor_row *row, uint64_t seed);
/* The first seed whose call the cpu takes, with results that are mostly finite; false where there
 * is none. */
bool doctor_find(const doctor_row *row, uint64_t *seed);

/* ---- a check (doctor_check.c) ---------------------------------------------------------------- */
#define DOCTOR_VERDICTS(X)                                                                         \
    X(OK, "ok")                                                                                    \
    X(WRONG, "wrong")                                                                              \
    X(CRASH, "crash")                                                                              \
    X(HANG, "hang")                                                                                \
    X(BUILD, "build")                                                                              \
    X(LEFT_OUT, "left out") /* no call of it was found, or the device has no such type */
typedef enum doctor_verdict {
#define X(NAME, TEXT) DOCTOR_##NAME,
    DOCTOR_VERDICTS(X) DOCTOR_VERDICT_COUNT
#undef X
} doctor_verdict;
const char *doctor_verdict_name(int verdict);
static inline bool doctor_is_fault(int verdict)
{
    return verdict != DOCTOR_OK && verdict != DOCTOR_LEFT_OUT;
}

/* What a child reports of a row; it goes through a pipe in one piece. */
typedef struct doctor_report {
    int row, verdict; /* verdict -1: the row has begun */
    double ulp, ms; /* ulp: the worst error, in units of the last place of the largest element (1 at
               least) */
    int64_t at;
    uint64_t seed;
    char what[32]; /* "result 0", "gradient 1" */
    char shapes[160], text[600];
    char route[32];    /* what helped; "" */
    char kernels[200]; /* of a fault: those that it launches */
} doctor_report;

/* Runs the row on the cpu and on device; never fails, but may not come back. */
void doctor_check(const doctor_row *row, const char *device, doctor_report *report);
/* The kernels that a row launches on device, "softmax_rows sum" into names. */
void doctor_kernels(const doctor_row *row, const char *device, char *names, size_t bytes);

/* ---- children (doctor_run.c) ----------------------------------------------------------------- */
typedef struct doctor_work {
    const char *device;
    const doctor_row *rows;
    doctor_report *reports;
    int n, seconds;     /* of each row */
    int jobs;           /* children at once */
    const char *routes; /* a profile whose ways are taken; NULL: none, "": the device's own */
    void (*done)(void *user, const doctor_report *report);
    void (*looking)(void *user, const doctor_report *report); /* for a way around */
    void *user;
} doctor_work;

/* Checks all rows. A child that a row kills, or that takes too long, loses that row alone. */
void doctor_run(const doctor_work *work);
/* One row in a child of its own, with the routes of a file (or as above). */
void doctor_run_one(const doctor_work *work, int row, const char *routes, doctor_report *report);
/* What function writes to the file in a child of its own; NULL where that dies, hangs or writes
 * nothing. */
char *doctor_ask(int seconds, void (*function)(FILE *to, const void *user), const void *user);
/* The same, and which of these it was. */
char *doctor_ask_why(int seconds, void (*function)(FILE *to, const void *user), const void *user,
                     char why[200]);

/* ---- ways around (doctor_route.c), the profile (doctor_profile.c) ---------------------------- */
/* Finds what helps each fault, and notes it in the report; new members of routes. */
void doctor_find_routes(const doctor_work *work, const char *folder, json_t *routes,
                        json_t *refused);

/* device{} as the profile has it; of NULL that of the best device but the cpu, with nothing in it
 * where there is none. NULL after an error that was printed. */
json_t *doctor_describe(const char *device, int seconds);
/* Adds "matrix_f16" and "matrix_bf16" to routes, "right" or "wrong", where the device has a matrix
 * unit, and prints them. */
void doctor_matrix(const char *device, int seconds, json_t *routes);
json_t *doctor_limits(const char *device, int seconds);
json_t *doctor_speed(const char *device, int seconds);
/* The profile's path for a device{}: $XDG_CONFIG_HOME/tern/doctor/<key>.json. False: there is no
 * such folder. */
bool doctor_path(json_t *device, char *path, size_t bytes);
/* Writes it beside the path and moves it there, with mode 0600; false with errno. */
bool doctor_write(const char *path, json_t *profile);

#endif
