/* doctor_route.c -- workarounds for faults: kernels compiled without the driver's optimizer or for
 * smaller work-groups, products by another kernel. Each is tried in a child process; the first that
 * helps is kept. */
#include "tool/doctor.h"
#include "base/os.h"
#include <stdlib.h>
#include <string.h>

enum { NAMES = 1500, SECONDS = 60 };

static const char *const kernel_ways[] = {"noopt", "group16", "group8"};
static const char *const product_ways[] = {"own", "portable"};

typedef struct question {
    const doctor_row *row;
    const char *device;
} question;

static void ask_kernels(FILE *to, const void *user)
{
    const question *q = user;
    char names[NAMES];
    doctor_kernels(q->row, q->device, names, sizeof names);
    fputs(names, to);
}

/* Returns the kernels of a row: from a driver's message, or as launched on the device, or as
 * launched on the cpu if the driver crashes too early. */
static char *kernels_of(const doctor_work *w, const doctor_report *r)
{
    const char *at = strstr(r->text, "kernel ");
    if (r->verdict == DOCTOR_BUILD && at) {
        at += strlen("kernel ");
        size_t length = strcspn(at, " ");
        char *name = calloc(1, length + 3);
        if (name)
            snprintf(name, length + 3, " %.*s ", (int)length, at);
        return name;
    }
    question q = {&w->rows[r->row], w->device};
    char *names = r->verdict == DOCTOR_WRONG ? doctor_ask(SECONDS, ask_kernels, &q) : NULL;
    q.device = "cpu";
    return names ? names : doctor_ask(SECONDS, ask_kernels, &q);
}

/* Adds a route for each kernel of the list; returns the number of kernels. */
static int add_ways(json_t *routes, const char *names, const char *type, const char *way,
                    bool products)
{
    int n = 0;
    for (const char *at = names + strspn(names, " "); *at; at += strspn(at, " ")) {
        char name[96], key[128];
        size_t length = strcspn(at, " "), end = strlen(type);
        snprintf(name, sizeof name, "%.*s", (int)(length < 90 ? length : 90), at);
        at += length;
        if ((strcmp(name, "gemm") == 0) != products)
            continue;
        size_t own = strlen(name);
        bool typed = own > end && strcmp(name + own - end, type) == 0 && name[own - end - 1] == '_';
        snprintf(key, sizeof key, "%s%s%s", name, typed ? "" : "_", typed ? "" : type);
        json_object_set_new(routes, key, json_string(way));
        n++;
    }
    return n;
}

/* Returns the suffix of kernels' names for a dtype. */
static const char *suffix_of(tern_dtype dtype)
{
    return dtype == TERN_F32   ? "f32"
           : dtype == TERN_F64 ? "f64"
           : dtype == TERN_F16 ? "f16"
                               : "bf16";
}

/* Whether the row is right with these routes. */
static bool helps(const doctor_work *w, int row, const char *folder, json_t *routes)
{
    char path[4200];
    doctor_report r;
    json_t *profile = json_pack("{s:i, s:O}", "schema", 1, "routes", routes);
    snprintf(path, sizeof path, "%s/trial-%ld.json", folder, (long)tern_os_getpid());
    bool written = profile && doctor_write(path, profile);
    json_decref(profile);
    if (!written)
        return false;
    doctor_run_one(w, row, path, &r);
    tern_os_unlink(path);
    return r.verdict == DOCTOR_OK;
}

static bool try_ways(const doctor_work *w, doctor_report *r, const char *folder, json_t *routes,
                     const char *names, const char *const *ways, int n, bool products)
{
    const char *type = suffix_of(w->rows[r->row].dtype);
    for (int i = 0; i < n; i++) {
        json_t *with = json_copy(routes);
        bool right =
            add_ways(with, names, type, ways[i], products) > 0 && helps(w, r->row, folder, with);
        if (right) {
            json_object_update(routes, with);
            snprintf(r->route, sizeof r->route, "%s", ways[i]);
        }
        json_decref(with);
        if (right)
            return true;
    }
    return false;
}

static bool find_route(const doctor_work *w, doctor_report *r, const char *folder, json_t *routes,
                       const char *names)
{
    if (json_object_size(routes) > 0 && helps(w, r->row, folder, routes)) {
        snprintf(r->route, sizeof r->route, "as above");
        return true;
    }
    bool found = names && (try_ways(w, r, folder, routes, names, product_ways, 2, true) ||
                           try_ways(w, r, folder, routes, names, kernel_ways, 3, false));
    return found;
}

/* Writes " a b " to r->kernels as "a, b". */
static void note_kernels(doctor_report *r, const char *names)
{
    size_t used = 0;
    for (const char *at = names ? names : ""; *at;) {
        size_t length = strcspn(at += strspn(at, " "), " ");
        if (length == 0 || used + length + 3 > sizeof r->kernels)
            break;
        used += (size_t)snprintf(r->kernels + used, sizeof r->kernels - used, "%s%.*s",
                                 used ? ", " : "", (int)length, at);
        at += length;
    }
}

void doctor_find_routes(const doctor_work *w, const char *folder, json_t *routes, json_t *refused)
{
    bool readable = strncmp(w->device, "opencl", 6) == 0; /* only OpenCL devices read routes
                                                             (src/device/opencl) */
    for (int i = 0; i < w->n; i++) {
        doctor_report *r = &w->reports[i];
        if (!doctor_is_fault(r->verdict))
            continue;
        if (w->looking)
            w->looking(w->user, r);
        char *names = kernels_of(w, r);
        note_kernels(r, names);
        bool found = readable && find_route(w, r, folder, routes, names);
        free(names);
        if (found)
            continue;
        json_array_append_new(
            refused,
            json_pack("{s:s, s:s, s:b}", "op", tern_named_op_name(tern_named_op_at(w->rows[i].op)),
                      "dtype", tern_dtype_name(w->rows[i].dtype), "large", (int)w->rows[i].large));
    }
}
