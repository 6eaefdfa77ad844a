/* tune.c -- tern tune: finds the fastest kernels for a few classes of products on an OpenCL
 * device. */
#include "tool/tune.h"
#include "base/os.h"
#include "tool/doctor.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LOST = 3, LARGEST = 1 << 14 };
static const double least_gain = 1.03; /* smaller gains are within the noise */

static const char *only, *path, *given;
static int seconds = 30, size;
static bool quick, anew, verbose;

/* ---- candidates ------------------------------------------------------------------------------ */

typedef struct candidate {
    bool quick;
    const char *name;
} candidate;
static const candidate ways[] = {
    {true, ""},
    {true, "own"},
    {true, "clblast"},
#define X(QUICK, DOWN, ACROSS, M, N, K, V)                                                         \
    {QUICK, "tiles:" #DOWN "x" #ACROSS "x" #M "x" #N "x" #K "x" #V},
#include "tool/tune_tiles.def"
#undef X
};
static const candidate half_ways[] = {
    {true, ""},
#define X(QUICK, ROWS, COLUMNS, DEPTH) {QUICK, "matrix:" #ROWS "x" #COLUMNS "x" #DEPTH},
#include "tool/tune_matrix.def"
#undef X
};
enum { WAYS = sizeof ways / sizeof *ways, HALF_WAYS = sizeof half_ways / sizeof *half_ways };

/* Writes the candidate i to way; candidate 0 is "", the library's untuned choice. Returns false
 * after the last. */
static bool way_at(const tune_class *c, int i, char way[64])
{
    const bool half = tune_is_half(c);
    const int n = half ? HALF_WAYS : WAYS;
    way[0] = '\0';
    if (!given) {
        int k = 0;
        while (k < n && (!((half ? half_ways : ways)[k].quick || !quick) || i-- > 0))
            k++;
        return k < n && snprintf(way, 64, "%s", (half ? half_ways : ways)[k].name) >= 0;
    }
    const char *at = given;
    for (int k = 1; k < i && *at; k++) {
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return i == 0 || (*at && snprintf(way, 64, "%.*s", (int)strcspn(at, ","), at) > 0);
}

static void make_classes(tune_class *classes, int64_t of)
{
    const tune_class rows[] = {
#define X(NAME, LAYOUT, M, N, K, COUNT, SIZES) {#NAME, LAYOUT, SIZES, M, N, K, COUNT},
#include "tool/tune_classes.def"
#undef X
    };
    memcpy(classes, rows, sizeof rows);
    for (int i = 0; i < TUNE_CLASSES; i++) {
        int64_t *dims[] = {&classes[i].m, &classes[i].n, &classes[i].k};
        for (int d = 0; d < 3; d++)
            *dims[d] = (*dims[d] * of + 63) / 64;
    }
}

/* Whether a class is in the list `only`, such as "large,batched". */
static bool is_wanted(const char *name)
{
    for (const char *w = only; w && *w; w += strcspn(w, ","), w += *w == ',')
        if (strlen(name) == strcspn(w, ",") && strncmp(name, w, strlen(name)) == 0)
            return true;
    return !only;
}

/* ---- a class --------------------------------------------------------------------------------- */

/* Writes the route's words to text, for example "tiles tile=8x8x4x4x8x4" or "gemm". */
static const char *route_of(const tune_class *c, const char *way, char text[96])
{
    const char *tile = strchr(way, ':');
    if (tile)
        snprintf(text, 96, "%.*s tile=%.60s", (int)(tile - way), way, tile + 1);
    else
        snprintf(text, 96, "%.60s",
                 strcmp(way, "clblast") != 0 ? way
                 : c->count > 1              ? "batched"
                                             : "gemm");
    return text;
}

static void print_trial(const tune_trial *t, int done, int all)
{
    bool terminal = tern_os_isatty(STDOUT_FILENO);
    const char *way = *t->way ? t->way : "untuned";
    if (terminal)
        fputs("\r\033[K", stdout);
    if (t->seconds <= 0 && (verbose || t->lost || strstr(t->why, "wrong")))
        printf("  %-8s  passed over %s: %s\n", t->of.name, way, t->why);
    else if (verbose)
        printf("  %-8s  %-26s  %10.4g GFLOP/s\n", t->of.name, way,
               tune_flops(&t->of) / t->seconds * 1e-9);
    if (terminal && done < all)
        printf("  %-8s  %d of %d", t->of.name, done, all);
    fflush(stdout);
}

/* Returns the lines of a class: the measurement, and the route if it is faster than no route. NULL
 * if nothing was measured. */
static char *lines_of(const tune_class *c, const tune_trial *untuned, const tune_trial *best,
                      int late)
{
    char route[96];
    tern_os_text text;
    double flops = tune_flops(c) * 1e-9;
    FILE *to = best->seconds > 0 ? tern_os_text_begin(&text) : NULL;
    if (!to)
        return NULL;
    bool gains = !(untuned->seconds > 0) || untuned->seconds > least_gain * best->seconds;
    fprintf(to, "# %s: %.4g GFLOP/s untuned, %.4g %s\n", c->name,
            untuned->seconds > 0 ? flops / untuned->seconds : 0,
            gains ? flops / best->seconds : flops / untuned->seconds,
            gains ? best->way : "is the best");
    if (late)
        fprintf(to, "# of the ways %d took too long to be measured\n", late);
    if (gains)
        fprintf(to, "route %s %s\n", route_of(c, best->way, route), c->sizes);
    return tern_os_text_end(&text);
}

static char *tune_one(const char *device, const tune_class *c)
{
    tune_trial untuned = {0}, best = {0};
    int lost = 0, all = 0, late = 0, others = 0;
    while (way_at(c, all, best.way))
        all++;
    for (int i = 0; i < all && lost < MOST_LOST; i++) {
        tune_trial t = {.device = device, .of = *c, .limit = seconds, .quick = quick};
        way_at(c, i, t.way);
        tune_try(&t);
        print_trial(&t, i + 1, all);
        lost = t.lost ? lost + 1 : 0;
        late += t.late;
        others += i > 0 && t.seconds > 0;
        if (t.seconds > 0 && (best.seconds <= 0 || t.seconds < best.seconds))
            best = t;
        if (i == 0)
            untuned = t;
    }
    if (lost == MOST_LOST)
        printf("  %-8s  the others are not tried: %d were lost in a row\n", c->name, MOST_LOST);
    /* A candidate that exceeded the time limit may be the fastest on an idle machine. */
    if (untuned.late || (late && !others)) {
        printf("  %-8s  nothing is written: %d of %d ways were not measured within %d seconds%s\n",
               c->name, late, all, seconds,
               tool_others() > 0.15 ? ", and other programs have the processors" : "");
        return NULL;
    }
    return lines_of(c, &untuned, &best, late);
}

static void print_result(const tune_class *c, const char *result, bool kept)
{
    const char *found = result ? strstr(result, ": ") + 2 : "nothing could be measured";
    printf("%-8s  %s  %5lld x %lld x %lld%s  %.*s%s\n", c->name, c->layout, (long long)c->m,
           (long long)c->n, (long long)c->k, c->count > 1 ? " batched" : "",
           (int)strcspn(found, "\n"), found, kept ? " (kept)" : "");
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Copies the part of a name that a line of the file can hold: without comments or repeated
 * blanks. */
static void cut_name(char to[256], const char *name)
{
    snprintf(to, 256, "%s", name ? name : "");
    to[strcspn(to, "#\n\t")] = '\0';
    char *blanks = strstr(to, "  ");
    if (blanks)
        *blanks = '\0';
    for (size_t n = strlen(to); n && to[n - 1] == ' '; n--)
        to[n - 1] = '\0';
}

static int tune_all(const char *device, const tune_key *key, tune_file *file, bool has_unit)
{
    tune_class classes[TUNE_CLASSES];
    bool kept[TUNE_CLASSES] = {false};
    int code = TOOL_FINE;
    bool written = false;
    make_classes(classes, key->size);
    if (!tune_file_read(file, key, classes, anew))
        return tool_fail(TOOL_WRONG, "tune: %s: %s", file->path, strerror(errno));
    for (int i = 0; i < TUNE_CLASSES; i++) {
        if (!is_wanted(classes[i].name) || (tune_is_half(&classes[i]) && !has_unit))
            continue;
        kept[i] = file->result[i] != NULL;
        if (!kept[i])
            file->result[i] = tune_one(device, &classes[i]);
        if (!file->result[i])
            code = TOOL_WRONG;
        else if (!kept[i] && !(written = tune_file_write(file, key)))
            return tool_fail(TOOL_WRONG, "tune: %s: %s", file->path, strerror(errno));
    }
    for (int i = 0; i < TUNE_CLASSES; i++)
        if (is_wanted(classes[i].name) && (has_unit || !tune_is_half(&classes[i])))
            print_result(&classes[i], file->result[i], kept[i]);
    if (written)
        printf("written to %s\n", file->path);
    else
        puts("nothing was measured that is not written: no file is changed");
    return code;
}

static int check_options(int64_t rows)
{
    tune_class classes[TUNE_CLASSES];
    int wanted = 0;
    make_classes(classes, rows);
    for (int i = 0; i < TUNE_CLASSES; i++)
        wanted += is_wanted(classes[i].name);
    if (!wanted)
        return tool_fail(TOOL_USAGE, "tune: --only %s: there is no such class", only);
    if (seconds < 1 || rows < 8 || rows > LARGEST)
        return tool_fail(TOOL_USAGE, "tune: --seconds is at least 1, --size 8 to %d", LARGEST);
    return TOOL_FINE;
}

static int run(const char *const *words, int n)
{
    tune_key key = {.quick = quick, .size = size ? size : quick ? 1024 : 2048};
    tune_file file = {0};
    int code = check_options(key.size);
    if (code != TOOL_FINE)
        return code;
    if (path)
        snprintf(file.path, sizeof file.path, "%s", path);
    else if (!tune_file_path(file.path, sizeof file.path))
        return tool_fail(TOOL_WRONG, "tune: neither XDG_CONFIG_HOME nor HOME is set");
    tern_os_setenv("TERN_OPENCL_TUNING", "off", 1); /* the device must open whatever the tuning
                                                       file holds */
    json_t *device = doctor_describe(n ? words[0] : "opencl:0", seconds);
    if (!device)
        return TOOL_WRONG;
    const char *name = json_string_value(json_object_get(device, "device"));
    cut_name(key.name, json_string_value(json_object_get(device, "name")));
    const char *unit = json_string_value(json_object_get(device, "matrix_unit"));
    const char *forced = tool_env("TERN_MATRIX"); /* "plain" works on any device */
    const bool has_unit = (unit && *unit) || (forced && strcmp(forced, "plain") == 0);
    cut_name(key.driver, json_string_value(json_object_get(device, "driver")));
    if (strncmp(name, "opencl", 6) != 0 || !*key.name || !*key.driver)
        code = tool_fail(TOOL_WRONG, "tune: %s is tuned by its own libraries; opencl:N is expected",
                         name);
    printf("%s: %s (driver %s)\n", name, key.name, key.driver);
    fflush(stdout);
    if (code == TOOL_FINE)
        tool_warn_of_others("and what takes longer for that may look slower");
    if (code == TOOL_FINE)
        code = tune_all(name, &key, &file, has_unit);
    tune_file_free(&file);
    json_decref(device);
    return code;
}

static const tool_option options[] = {
    {"--quick", NULL, "try fewer ways, on smaller products", .flag = &quick},
    {"--only", "CLASSES", "tune these classes alone: \"large,batched\"", .text = &only},
    {"--try", "WAYS", "try these ways alone: \"clblast,own,tiles:8x8x4x4x16x4\"", .text = &given},
    {"--size", "N", "give the largest products N rows; by default 2048, with --quick 1024",
     .number = &size},
    {"--seconds", "N", "let a trial take N seconds; by default 30", .number = &seconds},
    {"--file", "FILE", "write to FILE, not to the file that programs read", .text = &path},
    {"--anew", NULL, "also measure the classes that the file has already", .flag = &anew},
    {"--verbose", NULL, "print a line for each trial", .flag = &verbose},
    {0}};

const tool_command tool_tune = {
    .name = "tune",
    .arguments = "[DEVICE]",
    .summary = "Find the fastest matrix products for an OpenCL device",
    .more =
        "Products of several classes (small, thin, flat, batched, large, linear, gradient; on a "
        "device with a\n"
        "matrix unit also half, half-linear, half-gradient and half-batched) are computed on "
        "DEVICE\n"
        "(\"opencl:0\" by default) by CLBlast and by tern's own kernels in many forms. Each trial "
        "is a process\n"
        "of its own with a time limit, so a driver that crashes or hangs loses that trial alone. "
        "The\n"
        "fastest way whose results are right is written to the file that programs read, for this "
        "device,\n"
        "driver and version of tern: $TERN_OPENCL_TUNING, $XDG_CONFIG_HOME/tern/opencl.tuning or\n"
        "~/.config/tern/opencl.tuning. Entries of other devices stay. The file is written after "
        "each class,\n"
        "so a run that was stopped continues where it was. Tuning takes minutes, and wants an idle "
        "machine.\n"
        "If the trials of a class take too long, nothing is written for that class, and the status "
        "is 1.\n",
    .part = TOOL_MACHINE,
    .example = "tern tune opencl:0",
    .device = true,
    .most = 1,
    .options = options,
    .run = run,
};
