/* doctor.h -- the parts of `tern doctor`: generated calls, their comparison with the cpu, child
 * processes that a driver may crash, workarounds, the profile. */
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
    bool leaf[TERN_MAX_PARAMETERS];   /* the tensor requires a gradient */
    bool device[TERN_MAX_PARAMETERS]; /* the text is the name of the device */
    tern_tensor *list[TERN_MAX_PARAMETERS][DOCTOR_LIST];
    int64_t ints[TERN_MAX_PARAMETERS][4];
    double reals[TERN_MAX_PARAMETERS][4];
    char text[TERN_MAX_PARAMETERS][48], name[TERN_MAX_PARAMETERS][32];
} doctor_call;

/* One check: an operation of the names table, with inputs of a dtype, of few or of many
 * elements. */
typedef struct doctor_row {
    int op;
    tern_dtype dtype;
    bool large;
} doctor_row;

/* Generates a row's arguments from a seed, on the cpu, in the innermost scope. */
void doctor_make(doctor_call *call, const doctor_row *row, uint64_t seed);
/* Finds the first seed whose call succeeds on the cpu with mostly finite results; false if there is
 * none. */
bool doctor_find(const doctor_row *row, uint64_t *seed);

/* ---- a check (doctor_check.c) ---------------------------------------------------------------- */
#define DOCTOR_VERDICTS(X)                                                                         \
    X(OK, "ok")                                                                                    \
    X(WRONG, "wrong")                                                                              \
    X(CRASH, "crash")                                                                              \
    X(HANG, "hang")                                                                                \
    X(BUILD, "build")                                                                              \
    X(LEFT_OUT, "left out") /* no valid call was found, or the device lacks the dtype */
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

/* A child's report about a row, sent through a socket as one message. */
typedef struct doctor_report {
    int row, verdict; /* verdict -1: the row has begun */
    double ulp, ms;   /* ulp: largest error in units in the last place of the largest element (at
                       least 1) */
    int64_t at;
    uint64_t seed;
    char what[32]; /* for example "result 0" or "gradient 1" */
    char shapes[160], text[600];
    char route[32];    /* the workaround that helped; or "" */
    char kernels[200]; /* of a fault: names of the kernels that the row launches */
} doctor_report;

/* Runs the row on the cpu and on device. It has no error status, but a driver may crash or hang in
 * it. */
void doctor_check(const doctor_row *row, const char *device, doctor_report *report);
/* Writes the names of the kernels that a row launches on device to names, separated by spaces. */
void doctor_kernels(const doctor_row *row, const char *device, char *names, size_t bytes);

/* ---- child processes (doctor_run.c) ---------------------------------------------------------- */
typedef struct doctor_work {
    const char *device;
    const doctor_row *rows;
    doctor_report *reports;
    int n, seconds;     /* seconds: the time limit of each row */
    int jobs;           /* number of children at a time */
    const char *routes; /* profile whose routes are used; NULL: none, "": the device's own
                           profile */
    void (*done)(void *user, const doctor_report *report);
    void (*looking)(void *user, const doctor_report *report); /* called before a workaround for a
                                                                 fault is searched */
    void *user;
} doctor_work;

/* Checks all rows. If a row crashes its child or takes too long, only that row is lost. */
void doctor_run(const doctor_work *work);
/* Checks one row in a child of its own, with the routes of a file (or as in doctor_work). */
void doctor_run_one(const doctor_work *work, int row, const char *routes, doctor_report *report);
/* Returns what function writes to the file in a child process, which the caller frees; NULL if the
 * child crashes, hangs or writes nothing. */
char *doctor_ask(int seconds, void (*function)(FILE *to, const void *user), const void *user);
/* Does the same and writes to why which of these happened. */
char *doctor_ask_why(int seconds, void (*function)(FILE *to, const void *user), const void *user,
                     char why[200]);

/* ---- workarounds (doctor_route.c), the profile (doctor_profile.c) ---------------------------- */
/* Finds a workaround for each fault, records it in the report, and adds members to routes; faults
 * without one go to refused. */
void doctor_find_routes(const doctor_work *work, const char *folder, json_t *routes,
                        json_t *refused);

/* Returns the profile's device{}; for device NULL that of the best device other than the cpu, or an
 * empty object if there is none. NULL after an error, which is printed. */
json_t *doctor_describe(const char *device, int seconds);
/* If the device has a matrix unit, adds "matrix_f16" and "matrix_bf16", each "right" or "wrong", to
 * routes and prints them. */
void doctor_matrix(const char *device, int seconds, json_t *routes);
json_t *doctor_limits(const char *device, int seconds);
json_t *doctor_speed(const char *device, int seconds);
/* Writes the profile's path for a device{} to path: $XDG_CONFIG_HOME/tern/doctor/<key>.json.
 * Returns false if there is no such folder. */
bool doctor_path(json_t *device, char *path, size_t bytes);
/* Writes the profile to a temporary file beside path and renames it, with mode 0600; false with
 * errno. */
bool doctor_write(const char *path, json_t *profile);

#endif
