/* doctor.c -- tern doctor: compares each operation of the names table on a device with the cpu. */
#include "tool/doctor.h"
#include "base/os.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tern/report.h>

static const char *only, *path;
static int seconds = 60, jobs;
static bool all, quick, dry, verbose, forget, verify, where;

typedef struct visit {
    const doctor_row *rows;
    tern_report *progress;
    int n, done, counts[DOCTOR_VERDICT_COUNT];
} visit;

/* ---- rows ------------------------------------------------------------------------------------ */

/* Whether the name, or its part after the last dot, is in the list `only`, such as
 * "softmax,nn.functional.gelu". */
static bool is_wanted(const char *name)
{
    const char *last = strrchr(name, '.');
    last = last ? last + 1 : name;
    for (const char *w = only; w && *w; w += strcspn(w, ","), w += *w == ',') {
        size_t n = strcspn(w, ",");
        if ((strlen(name) == n && strncmp(name, w, n) == 0) ||
            (strlen(last) == n && strncmp(last, w, n) == 0))
            return true;
    }
    return !only;
}

static doctor_row *make_rows(int *n)
{
    static const struct {
        tern_dtype dtype;
        bool large;
        int least; /* run 0: always, 1: unless --quick, 2: with --all */
    } variants[] = {{TERN_F32, false, 0}, {TERN_F32, true, 1},   {TERN_F16, false, 2},
                    {TERN_F16, true, 2},  {TERN_BF16, false, 2}, {TERN_BF16, true, 2},
                    {TERN_F64, false, 2}, {TERN_F64, true, 2}};
    int level = all ? 2 : quick ? 0 : 1, ops = 0;
    while (tern_named_op_at(ops))
        ops++;
    doctor_row *rows = calloc((size_t)ops * 8 + 1, sizeof *rows);
    *n = 0;
    for (size_t v = 0; rows && v < sizeof variants / sizeof *variants; v++)
        for (int op = 0; op < ops && variants[v].least <= level; op++)
            if (is_wanted(tern_named_op_name(tern_named_op_at(op))))
                rows[(*n)++] = (doctor_row){op, variants[v].dtype, variants[v].large};
    return rows;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_fault(const doctor_row *row, const doctor_report *r)
{
    printf("%-6s %s, %s, %s", doctor_verdict_name(r->verdict),
           tern_named_op_name(tern_named_op_at(row->op)), tern_dtype_name(row->dtype),
           row->large ? "large" : "small");
    if (*r->shapes)
        printf(" %s", r->shapes);
    if (*r->what)
        printf(": %s", r->what);
    if (r->verdict == DOCTOR_WRONG && *r->what)
        printf(" at %lld", (long long)r->at);
    printf(": %s\n", r->text);
}

static void row_done(void *user, const doctor_report *r)
{
    visit *v = user;
    v->counts[r->verdict]++;
    if (doctor_is_fault(r->verdict) || (verbose && r->verdict == DOCTOR_LEFT_OUT)) {
        if (tern_os_isatty(STDOUT_FILENO))
            fputs("\r\033[K", stdout);
        print_fault(&v->rows[r->row], r);
        fflush(stdout);
    }
    tern_report_step(v->progress, ++v->done, 1);
}

static void print_counts(const visit *v)
{
    const char *between = ":";
    printf("%d checks", v->n);
    for (int i = 0; i < DOCTOR_VERDICT_COUNT; i++)
        if (v->counts[i]) {
            printf("%s %d %s", between, v->counts[i], doctor_verdict_name(i));
            between = ",";
        }
    putchar('\n');
}

static int faults_of(const visit *v)
{
    int n = 0;
    for (int i = 0; i < DOCTOR_VERDICT_COUNT; i++)
        n += doctor_is_fault(i) ? v->counts[i] : 0;
    return n;
}

/* Prints which workaround is searched: the search runs processes that may hang. */
static void looking(void *user, const doctor_report *r)
{
    const visit *v = user;
    if (tern_os_isatty(STDOUT_FILENO))
        printf("\r\033[Klooking for a way around %s",
               tern_named_op_name(tern_named_op_at(v->rows[r->row].op)));
    fflush(stdout);
}

static int print_routes(const doctor_work *w, json_t *refused)
{
    int left = (int)json_array_size(refused);
    if (tern_os_isatty(STDOUT_FILENO))
        fputs("\r\033[K", stdout);
    for (int i = 0; i < w->n; i++) {
        const doctor_report *r = &w->reports[i];
        if (!doctor_is_fault(r->verdict))
            continue;
        printf("%s: %s, %s, %s%s%s: %s\n", *r->route ? "way around" : "no way around",
               tern_named_op_name(tern_named_op_at(w->rows[i].op)),
               tern_dtype_name(w->rows[i].dtype), w->rows[i].large ? "large" : "small",
               *r->kernels ? ", of the kernels " : "", r->kernels,
               *r->route ? r->route : "none helped");
    }
    if (left)
        printf("%d checks have no other way: leave these operations out on this device\n", left);
    return left ? TOOL_WRONG : TOOL_FINE;
}

/* ---- the profile ----------------------------------------------------------------------------- */

static json_t *check_object(const doctor_work *w, int i)
{
    const doctor_row *row = &w->rows[i];
    const doctor_report *r = &w->reports[i];
    json_t *j = json_pack("{s:s s:{s:s s:s} s:s s:I s:s s:f s:f}", "op",
                          tern_named_op_name(tern_named_op_at(row->op)), "variant", "dtype",
                          tern_dtype_name(row->dtype), "form", row->large ? "large" : "small",
                          "verdict", doctor_verdict_name(r->verdict), "seed", (json_int_t)r->seed,
                          "shapes", r->shapes, "worst_ulp", r->ulp, "ms", r->ms);
    if (*r->what)
        json_object_set_new(j, "where", json_sprintf("%s at %lld", r->what, (long long)r->at));
    if (*r->text)
        json_object_set_new(j, "log", json_string(r->text));
    if (*r->kernels)
        json_object_set_new(j, "kernels", json_string(r->kernels));
    if (*r->route)
        json_object_set_new(j, "route", json_string(r->route));
    return j;
}

static json_t *profile_of(const doctor_work *w, json_t *device, json_t *routes, json_t *refused)
{
    char when[32], host[128] = "";
    time_t now = time(NULL);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    tern_os_gethostname(host, sizeof host - 1);
    json_t *checks = json_array();
    for (int i = 0; i < w->n; i++)
        json_array_append_new(checks, check_object(w, i));
    return json_pack("{s:i s:s s:O s:s s:s s:o s:O s:O s:o s:o}", "schema", 1, "tern",
                     TERN_VERSION_TEXT, "device", device, "when", when, "host", host, "checks",
                     checks, "routes", routes, "refused", refused, "limits",
                     doctor_limits(w->device, seconds), "speed", doctor_speed(w->device, seconds));
}

static int write_profile(const doctor_work *w, json_t *device, const char *to, json_t *routes,
                         json_t *refused)
{
    json_t *profile = profile_of(w, device, routes, refused);
    bool written = profile && doctor_write(to, profile);
    json_decref(profile);
    if (!written)
        return tool_fail(TOOL_WRONG, "doctor: %s: %s", to, strerror(errno));
    printf("profile: %s\n", to);
    return TOOL_FINE;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int examine(const char *name, json_t *device, const char *to)
{
    visit v = {0};
    doctor_row *rows = make_rows(&v.n);
    doctor_report *reports = calloc((size_t)v.n + 1, sizeof *reports);
    json_t *routes = json_object(), *refused = json_array();
    int code = TOOL_FINE;
    if (v.n == 0 || !rows || !reports)
        code = tool_fail(TOOL_USAGE, "doctor: --only %s: there is no such operation", only);
    if (code == TOOL_FINE) {
        char folder[4096];
        const char *slash = tern_os_last_slash(to);
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - to) : 1, slash ? to : ".");
        v.rows = rows;
        v.progress = tern_report_new(NULL, &(tern_report_options){.steps = v.n, .unit = "checks"});
        doctor_work w = {.device = name,
                         .rows = rows,
                         .reports = reports,
                         .n = v.n,
                         .seconds = seconds,
                         .jobs = jobs > 0 ? jobs : tern_get_num_threads(),
                         .routes = !verify ? NULL
                                   : path  ? path
                                           : "",
                         .done = row_done,
                         .looking = looking,
                         .user = &v};
        doctor_run(&w);
        tern_report_close(v.progress);
        print_counts(&v);
        if (verify) {
            code = faults_of(&v) ? TOOL_WRONG : TOOL_FINE;
        } else {
            doctor_find_routes(&w, folder, routes, refused);
            code = print_routes(&w, refused);
            if (!only || path)
                doctor_matrix(name, seconds, routes);
        }
        if (!dry && !verify && only && !path)
            puts("no profile is written for a part of the operations (--profile FILE does)");
        else if (!dry && !verify && write_profile(&w, device, to, routes, refused) != TOOL_FINE)
            code = TOOL_WRONG;
    }
    json_decref(routes);
    json_decref(refused);
    free(rows);
    free(reports);
    return code;
}

static int run(const char *const *words, int n)
{
    char own[4096] = "tern-doctor.json";
    int code = TOOL_FINE;
    if (seconds < 1)
        return tool_fail(TOOL_USAGE, "doctor: --seconds is at least 1");
    json_t *device = doctor_describe(n ? words[0] : NULL, seconds);
    if (!device)
        return TOOL_WRONG;
    const char *name = json_string_value(json_object_get(device, "device"));
    if (!name) {
        json_decref(device);
        puts("there is no device but the cpu, which others are compared with: nothing to compare. "
             "`tern devices` says why");
        return TOOL_FINE;
    }
    if (!path && !doctor_path(device, own, sizeof own))
        code = tool_fail(TOOL_WRONG, "doctor: neither XDG_CONFIG_HOME nor HOME is set");
    if (code == TOOL_FINE && where) {
        puts(path ? path : own);
        json_decref(device);
        return TOOL_FINE;
    }
    printf("%s: %s (%s, driver %s)\n", name, json_string_value(json_object_get(device, "name")),
           json_string_value(json_object_get(device, "platform")),
           json_string_value(json_object_get(device, "driver")));
    if (code == TOOL_FINE && forget) {
        if (tern_os_unlink(path ? path : own) != 0 && errno != ENOENT)
            code = tool_fail(TOOL_WRONG, "doctor: %s: %s", path ? path : own, strerror(errno));
    } else if (code == TOOL_FINE) {
        code = examine(name, device, path ? path : own);
    }
    json_decref(device);
    return code;
}

static const tool_option options[] = {
    {"--quick", NULL, "check float32 with few elements alone", .flag = &quick},
    {"--all", NULL, "also check float16, bfloat16 and float64, with few and with many elements",
     .flag = &all},
    {"--only", "NAMES", "check these operations alone: \"softmax,nn.functional.gelu\"",
     .text = &only},
    {"--jobs", "N", "run N checks at once; by default as many as there are processors",
     .number = &jobs},
    {"--seconds", "N", "let a check take N seconds; by default 60", .number = &seconds},
    {"--profile", "FILE", "write the profile to FILE", .text = &path},
    {"--dry-run", NULL, "write no profile", .flag = &dry},
    {"--verify", NULL, "use the profile, check that it helps, and write nothing", .flag = &verify},
    {"--where", NULL, "print the path of the profile, also if there is none yet", .flag = &where},
    {"--forget", NULL, "remove the profile instead of writing it", .flag = &forget},
    {"--verbose", NULL, "also name the checks that were left out", .flag = &verbose},
    {0}};

const tool_command tool_doctor = {
    .name = "doctor",
    .arguments = "[DEVICE]",
    .summary = "Check that a device computes what the cpu computes",
    .more = "Each operation that has a name runs forward and backward on DEVICE (by default the "
            "best device that\n"
            "is not the cpu) and on the cpu. Each check is a process of its own, so a driver that "
            "crashes or\n"
            "hangs loses that check alone.\n"
            "Where a check fails on an OpenCL device, other ways to compute are tried. Those that "
            "help are\n"
            "written to the profile, a JSON file in $XDG_CONFIG_HOME/tern/doctor or "
            "~/.config/tern/doctor, and\n"
            "programs use them from then on. Each driver has a profile of its own.\n"
            "The status is 1 where a check fails and nothing helps.\n",
    .part = TOOL_MACHINE,
    .example = "tern doctor opencl:0",
    .device = true,
    .most = 1,
    .options = options,
    .run = run,
};
