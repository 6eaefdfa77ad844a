/* doctor.c -- ways around errors of a driver: the routes of the profile that `tern doctor` wrote
 * for this driver.
 *
 * The file's name is a hash of the names of device and driver: another driver has another file, or
 * none. Its "routes" have a kernel with its type, "softmax_f32", and a way: "noopt", without the
 * driver's optimizer, or "group16", in groups of at most 16; "gemm_f32" and the way of products;
 * "matrix_f16" and the result of a trial of the matrix unit. Unknown entries are ignored, as a
 * newer program may have written them. */
#include "base/env.h"
#include "base/os.h"
#include "base/warning.h"
#include "device/opencl/gemm.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

static bool path_of_profile(tern_place *place, char *path)
{
    const tern_device_info *d = tern_place_info(place);
    const char *parts[] = {d->platform, d->name, d->uuid, d->driver, TERN_VERSION_TEXT};
    const char *own = tern_env(TERN_ENV_DOCTOR);
    uint64_t key = TERN_HASH_SEED;
    char name[64];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        key = tern_hash(key, parts[i], strlen(parts[i]) + 1);
    if (own)
        return strcmp(own, "off") != 0 && snprintf(path, PATH_BYTES, "%s", own) < PATH_BYTES;
    snprintf(name, sizeof name, "/tern/doctor/%016" PRIx64 ".json", key);
    return tern_os_folder(TERN_OS_CONFIG, name, path, PATH_BYTES);
}

/* Opens the profile, or returns NULL if another user owns the file or could write to it. */
static FILE *open_profile(const char *path)
{
    struct tern_os_stat s;
    bool own;
    int file = tern_os_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (file < 0)
        return NULL;
    if (tern_os_fstat(file, &s) == 0 && S_ISREG(s.st_mode) && tern_os_is_private(&s, &own))
        return tern_os_fdopen(file, "r");
    tern_warn("doctor", "TERN_DOCTOR",
              "%s is not read: it is no regular file, belongs to another "
              "user, or others may write to it",
              path);
    tern_os_close(file);
    return NULL;
}

/* Reads a trial of the matrix unit, "matrix_f16": "right" or "wrong". Returns false for other
 * keys. */
static bool is_matrix(tern_cl_state *s, const char *key, const char *way)
{
    const bool right = strcmp(way, "right") == 0;
    const int type = strcmp(key, "matrix_bf16") == 0 ? 1 : strcmp(key, "matrix_f16") == 0 ? 0 : -1;
    if (type >= 0 && (right || strcmp(way, "wrong") == 0))
        atomic_store(&s->matrix_tried[type], right ? TERN_CL_RIGHT : TERN_CL_WRONG);
    return type >= 0;
}

static bool fill(tern_cl_doctor *d, const char *key, const char *way)
{
    static const char *const types[TERN_DTYPE_END] = {[TERN_F32] = "gemm_f32",
                                                      [TERN_F64] = "gemm_f64",
                                                      [TERN_F16] = "gemm_f16",
                                                      [TERN_BF16] = "gemm_bf16"};
    char *end;
    for (int t = 0; t < TERN_DTYPE_END; t++)
        if (types[t] && strcmp(types[t], key) == 0) {
            d->gemm[t] = strcmp(way, "own") == 0 ? 1 : strcmp(way, "portable") == 0 ? 2 : 0;
            return true;
        }
    bool noopt = strcmp(way, "noopt") == 0, group = strncmp(way, "group", 5) == 0;
    long size = group ? strtol(way + 5, &end, 10) : 0;
    if (!noopt && !(group && *end == '\0' && size > 0 && size <= 1024))
        return true;
    tern_cl_way_around *ways = tern_grow(d->ways, sizeof *ways * (size_t)(d->n + 1));
    if (!ways)
        return false;
    d->ways = ways;
    snprintf(ways[d->n].kernel, sizeof ways->kernel, "%s", key);
    ways[d->n++].group = (size_t)size;
    return true;
}

void tern_cl_doctor_read(tern_place *place)
{
    tern_cl_doctor *d = &tern_cl_state_of(place)->doctor;
    char path[PATH_BYTES];
    FILE *file = path_of_profile(place, path) ? open_profile(path) : NULL;
    if (!file)
        return;
    json_error_t error;
    json_t *profile = json_loadf(file, 0, &error), *way;
    const char *key;
    fclose(file);
    if (!profile)
        tern_warn("doctor", "TERN_DOCTOR", "%s is not read: line %d: %s", path, error.line,
                  error.text);
    json_object_foreach(json_object_get(profile, "routes"), key, way)
    {
        if (json_is_string(way) &&
            !is_matrix(tern_cl_state_of(place), key, json_string_value(way)) &&
            !fill(d, key, json_string_value(way)))
            break;
    }
    json_decref(profile);
}

const tern_cl_way_around *tern_cl_doctor_way(tern_place *place, const char *kernel)
{
    const tern_cl_doctor *d = &tern_cl_state_of(place)->doctor;
    for (int i = 0; i < d->n; i++)
        if (strcmp(d->ways[i].kernel, kernel) == 0)
            return &d->ways[i];
    return NULL;
}
