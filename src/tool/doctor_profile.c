/* doctor_profile.c -- writes the profile, the file of a device driver's faults and their
 * workarounds. */
#include "tool/doctor.h"
#include "base/os.h"
#include "tool/bench.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the device ---------------------------------------------------------------------------- */

/* Returns the default device: the best one other than the cpu, which is the reference. NULL: there
 * is none. */
static const char *other_device(void)
{
    const char *best = tern_device_canonical("auto");
    if (best && strcmp(best, "cpu") != 0)
        return best;
    tern_clear_error();
    return tern_device_count("cuda") > 0     ? "cuda:0"
           : tern_device_count("opencl") > 0 ? "opencl:0"
                                             : NULL;
}

static void write_device(FILE *to, const void *user)
{
    tern_device_info d;
    json_t *j;
    const char *device = user ? user : other_device();
    if (!device)
        j = json_object();
    else if (tern_device_get_info(device, &d) != TERN_OK)
        j = json_pack("{s:s}", "error", tool_error());
    else
        j = json_pack(
            "{s:s s:s s:s s:s s:s s:s s:s s:i s:I s:I s:I s:b s:b s:b s:b s:i s:i s:s}", "device",
            d.device, "name", d.name, "vendor", d.vendor, "platform", d.platform, "driver",
            d.driver, "uuid", d.uuid, "type", tool_type_name(d.type), "compute_units",
            d.compute_units, "memory_total", (json_int_t)d.memory_total, "memory_free",
            (json_int_t)d.memory_free, "largest_allocation", (json_int_t)d.largest_allocation,
            "has_f64", (int)d.has_f64, "has_native_f16", (int)d.has_native_f16, "unified_memory",
            (int)d.unified_memory, "exact", (int)d.exact, "capability_major", d.capability_major,
            "capability_minor", d.capability_minor, "matrix_unit", d.matrix_unit);
    if (j)
        json_dumpf(j, to, 0);
    json_decref(j);
}

json_t *doctor_describe(const char *device, int seconds)
{
    char *text = doctor_ask(seconds, write_device, device);
    json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    const char *error = json_string_value(json_object_get(j, "error"));
    free(text);
    if (j && !error)
        return j;
    tool_fail(TOOL_WRONG, "%s: %s", tool_command_name(),
              error ? error : "the driver ended or hung while the device was opened");
    json_decref(j);
    return NULL;
}

/* ---- limits and speed ------------------------------------------------------------------------
 * Each limit is the largest value that worked, measured in a child process, so that a crash loses
 * only that limit. */

static void write_allocation(FILE *to, const void *user)
{
    const char *device = user;
    tern_device_info d;
    int64_t worked = 0;
    if (tern_device_get_info(device, &d) != TERN_OK)
        return;
    uint64_t most = d.memory_free / 4, top = UINT64_C(1) << 30;
    most = d.largest_allocation && d.largest_allocation < most ? d.largest_allocation : most;
    most = most < top ? most : top;
    for (uint64_t bytes = 1 << 20; bytes <= most; bytes *= 2)
        TERN_SCOPE {
            tern_tensor *x =
                tern_full(TERN_SHAPE((int64_t)bytes / 4), TERN_SCALAR(1), TERN_F32, device);
            tern_tensor *last = tern_slice(x, 0, (int64_t)bytes / 4 - 1, (int64_t)bytes / 4, 1);
            if (last && tern_item(tern_sum(last)) == 1 && tern_last_status() == TERN_OK)
                worked = (int64_t)bytes;
            tern_empty_cache(device);
        }
    fprintf(to, "{\"largest_allocation\": %" PRId64 "}", worked);
}

/* Work-items read what others of their group wrote to local memory. */
static const char reach[] =
    "__kernel void reach(__global int *out, __local int *kept, int n)\n"
    "{\n"
    "    int i = (int)get_local_id(0), group = (int)get_local_size(0), sum = 0;\n"
    "    for (int k = i; k < n; k += group) kept[k] = k;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    for (int k = i; k < n; k += group) sum += kept[n - 1 - k];\n"
    "    out[get_global_id(0)] = sum;\n"
    "}\n";

static bool reaches(tern_kernel *kernel, const char *device, int64_t group, int64_t n)
{
    bool right = false;
    TERN_SCOPE {
        tern_tensor *out = tern_zeros(TERN_SHAPE(group), TERN_I32, device);
        tern_kernel_launch(kernel, TERN_GRID_GROUP(group, group), TERN_ARG_TENSOR(out),
                           TERN_ARG_LOCAL((size_t)n * 4), TERN_ARG_INT((int32_t)n));
        right = tern_item_int(tern_sum(out)) == n * (n - 1) / 2 && tern_last_status() == TERN_OK;
    }
    tern_clear_error();
    return right;
}

static void write_group(FILE *to, const void *user)
{
    tern_kernel *kernel = tern_kernel_compile(user, reach, "reach");
    int64_t worked = 0;
    for (int64_t n = 1; kernel && n <= 4096 && reaches(kernel, user, n, n); n *= 2)
        worked = n;
    if (kernel)
        fprintf(to, "{\"work_group\": %" PRId64 "}", worked);
    tern_kernel_free(kernel);
}

static void write_local(FILE *to, const void *user)
{
    static const int kib[] = {1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 160, 192, 228, 256, 512, 1024};
    tern_kernel *kernel = tern_kernel_compile(user, reach, "reach");
    int64_t worked = 0;
    for (size_t i = 0; kernel && i < sizeof kib / sizeof *kib; i++) {
        if (!reaches(kernel, user, 32, 256 * kib[i]))
            break;
        worked = 1024 * kib[i];
    }
    if (kernel)
        fprintf(to, "{\"local_memory\": %" PRId64 "}", worked);
    tern_kernel_free(kernel);
}

static void write_speed(FILE *to, const void *user)
{
    bench_speed speed = bench_quickly(user);
    fprintf(to, "{\"copy_gbs\": %.3f, \"gemm_gflops\": %.3f}", speed.copy, speed.gemm);
}

static json_t *ask_object(void (*function)(FILE *, const void *), const char *device, int seconds)
{
    char *text = doctor_ask(seconds, function, device);
    json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return j ? j : json_object();
}

json_t *doctor_limits(const char *device, int seconds)
{
    static void (*const writers[])(FILE *, const void *) = {write_allocation, write_group,
                                                            write_local};
    json_t *limits = json_object();
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        json_t *one = ask_object(writers[i], device, seconds);
        json_object_update(limits, one);
        json_decref(one);
    }
    return limits;
}

json_t *doctor_speed(const char *device, int seconds)
{
    return ask_object(write_speed, device, seconds);
}

/* ---- the matrix unit -------------------------------------------------------------------------
 * A product on the matrix unit runs in a child process: a driver that crashes or hangs is "wrong",
 * too. */

typedef struct matrix_question {
    const char *device;
    tern_dtype dtype;
} matrix_question;

static void write_matrix(FILE *to, const void *user)
{
    const matrix_question *q = user;
    tern_device_info d = {0};
    tern_os_setenv("TERN_DOCTOR", "off", 1); /* an older profile must not affect the trial */
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(128, 128), q->dtype, q->device);
        tern_item(tern_sum(tern_mm(x, x)));
    }
    if (tern_device_get_info(q->device, &d) == TERN_OK)
        fprintf(to, "%d", q->dtype == TERN_F16 ? d.matrix_f16 : d.matrix_bf16);
}

static void write_unit(FILE *to, const void *user)
{
    tern_device_info d;
    if (tern_device_get_info(user, &d) == TERN_OK)
        fputs(d.matrix_unit, to);
}

void doctor_matrix(const char *device, int seconds, json_t *routes)
{
    static const char *const keys[] = {"matrix_f16", "matrix_bf16"};
    char *unit = doctor_ask(seconds, write_unit, device);
    for (int i = 0; unit && *unit && i < 2; i++) {
        const matrix_question q = {device, i ? TERN_BF16 : TERN_F16};
        char *text = doctor_ask(seconds, write_matrix, &q);
        const char *way = !text || *text == '-' ? "wrong" : *text == '1' ? "right" : NULL;
        free(text);
        if (!way)
            continue; /* TERN_MATRIX disables it */
        json_object_set_new(routes, keys[i], json_string(way));
        printf("matrix unit: %s, %s: %s\n", unit, tern_dtype_name(q.dtype), way);
    }
    free(unit);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* FNV-1a hash of platform, name, uuid, driver and tern's version, each with its terminating zero,
 * so that another driver has another file. The library computes the same key
 * (src/device/opencl/doctor.c). */
static uint64_t key_of(json_t *device)
{
    static const char *const fields[] = {"platform", "name", "uuid", "driver"};
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < 5; i++) {
        const char *text =
            i < 4 ? json_string_value(json_object_get(device, fields[i])) : TERN_VERSION_TEXT;
        size_t n = text ? strlen(text) + 1 : 0;
        for (size_t k = 0; k < n; k++)
            key = (key ^ (unsigned char)text[k]) * UINT64_C(0x100000001b3);
    }
    return key;
}

bool doctor_path(json_t *device, char *path, size_t bytes)
{
    char name[64];
    snprintf(name, sizeof name, "/tern/doctor/%016" PRIx64 ".json", key_of(device));
    return tern_os_folder(TERN_OS_CONFIG, name, path, bytes);
}

bool doctor_write(const char *path, json_t *profile)
{
    char beside[4300];
    tool_make_folders(path);
    snprintf(beside, sizeof beside, "%s.XXXXXX", path);
    int file = tern_os_mkstemp(beside); /* mkstemp creates the file with mode 0600 */
    FILE *f = file >= 0 ? tern_os_fdopen(file, "w") : NULL;
    bool good = f && json_dumpf(profile, f, JSON_INDENT(1)) == 0 && putc('\n', f) != EOF;
    good = f && fclose(f) == 0 && good && tern_os_rename(beside, path) == 0;
    if (file >= 0 && !good) {
        int code = errno;
        tern_os_unlink(beside);
        errno = code;
    }
    return good;
}
