/* tuning.c -- reads a tuning file, and sets CLBlast's parameters and the routes by its lines. */
#include "base/env.h"
#include "base/os.h"
#include "device/opencl/gemm.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4096, WORDS = 64, PATH_BYTES = 4096 };

typedef struct reader {
    tern_place *place;
    tern_cl_tuning *tuning;
    const char *path;
    int line;
    bool skip; /* the lines are for another device */
    char *word[WORDS];
    int n;
} reader;

#define REFUSE(R, FORMAT, ...)                                                                     \
    tern_fail(TERN_ERR_ARGUMENT, "%s: %s:%d: " FORMAT, tern_place_info((R)->place)->device,        \
              (R)->path, (R)->line, __VA_ARGS__)

/* ---- words ------------------------------------------------------------------------------- */

static void split(reader *r, char *line)
{
    line[strcspn(line, "#")] = '\0';
    r->n = 0;
    for (char *rest, *word = tern_os_strtok_r(line, " \t\r\n", &rest); word && r->n < WORDS;
         word = tern_os_strtok_r(NULL, " \t\r\n", &rest))
        r->word[r->n++] = word;
}

/* Reads digits and moves *text behind them. Returns false if there are none, or too many. */
static bool number(const char **text, int64_t *value)
{
    const char *from = *text;
    *value = 0;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        if (*value > INT32_MAX)
            return false;
        *value = *value * 10 + (**text - '0');
    }
    return *text > from;
}

/* Reads "A", "A..B", "A..", "..B" or "..", at least 1. Returns false for any other text. */
static bool range(const char *text, int64_t *least, int64_t *most)
{
    bool begins = number(&text, least);
    if (begins && *text == '\0') {
        *most = *least;
        return *least > 0;
    }
    if (strncmp(text, "..", 2) != 0)
        return false;
    text += 2;
    *least = begins ? *least : 1;
    bool ends = number(&text, most);
    *most = ends ? *most : INT64_MAX;
    return *text == '\0' && *least > 0 && *least <= *most;
}

static bool contains(const char *text, const char *part)
{
    size_t length = strlen(part);
    for (; *text; text++)
        if (tern_os_strncasecmp(text, part, length) == 0)
            return true;
    return false;
}

/* ---- lines ------------------------------------------------------------------------------- */

/* Reads a line `device`, `driver` or `tern`. The rest of the line, with its blanks, is a part of
 * the device's or the driver's name, or tern's version. */
static tern_status read_device(reader *r)
{
    char name[LINE_BYTES] = "";
    if (r->n < 2)
        return REFUSE(r, "%s needs a part of its name", r->word[0]);
    for (int i = 1; i < r->n; i++)
        snprintf(name + strlen(name), sizeof name - strlen(name), "%s%s", i > 1 ? " " : "",
                 r->word[i]);
    const tern_device_info *info = tern_place_info(r->place);
    bool device = strcmp(r->word[0], "device") == 0;
    bool is = contains(device ? info->name : info->driver, name);
    if (strcmp(r->word[0], "tern") == 0)
        is = strcmp(name, TERN_VERSION_TEXT) == 0;
    r->skip = !is || (!device && r->skip);
    return TERN_OK;
}

static tern_status read_kernel(reader *r)
{
    const char *names[WORDS];
    size_t values[WORDS], n = 0;
    bool f32 = r->n > 2 && strcmp(r->word[2], "32") == 0;
    if (r->n < 4 || (!f32 && strcmp(r->word[2], "64") != 0))
        return REFUSE(r, "expected %s", "kernel NAME 32|64 PARAMETER=NUMBER ...");
    for (int i = 3; i < r->n; i++) {
        char *equals = strchr(r->word[i], '=');
        const char *text = equals ? equals + 1 : "";
        int64_t value;
        if (!equals || equals == r->word[i] || !number(&text, &value) || *text)
            return REFUSE(r, "\"%s\" is not PARAMETER=NUMBER", r->word[i]);
        *equals = '\0';
        names[n] = r->word[i];
        values[n++] = (size_t)value;
    }
    if (r->skip || !tern_cl_clblast_is_there())
        return TERN_OK;
    int code = tern_cl_clblast_override(r->place, r->word[1], f32 ? 32 : 64, n, names, values);
    if (code == -2047)
        return REFUSE(r, "CLBlast wants all parameters of %s, and misses one", r->word[1]);
    return code ? REFUSE(r, "CLBlast refuses the kernel %s (%d)", r->word[1], code) : TERN_OK;
}

static tern_status add_route(reader *r, const tern_cl_route *route)
{
    tern_cl_tuning *t = r->tuning;
    tern_cl_route *routes = tern_grow(t->routes, sizeof *routes * (size_t)(t->n_routes + 1));
    if (!routes)
        return TERN_ERR_MEMORY;
    t->routes = routes;
    routes[t->n_routes++] = *route;
    return TERN_OK;
}

/* Reads "layout=nt", "type=half" or "tile=16x16x4x4x16x4". */
static tern_status read_form(reader *r, const char *word, const char *value, tern_cl_route *route)
{
    const tern_cl_state *s = tern_cl_state_of(r->place);
    if (strncmp(word, "type", 4) == 0) {
        route->halves = strcmp(value, "half") == 0;
        return route->halves ? TERN_OK : REFUSE(r, "\"%s\" is not type=half", word);
    }
    if (*word == 'l') {
        if (strlen(value) != 2 || strspn(value, "nt") != 2)
            return REFUSE(r, "\"%s\" is not layout=nn, nt, tn or tt", word);
        memcpy(route->layout, value, 3);
        return TERN_OK;
    }
    const bool matrix = route->way == TERN_CL_MATRIX;
    const char *why = (matrix ? tern_cl_matrix_tile_read : tern_cl_tile_read)(value, &route->tile);
    if (!why && !r->skip)
        why = (matrix ? tern_cl_matrix_tile_check
                      : tern_cl_tile_check)(&route->tile, s->local_memory, s->group_limit);
    return why ? REFUSE(r, "\"%s\" %s", word, why) : TERN_OK;
}

static tern_status read_route(reader *r)
{
    static const char *const ways[] = {
#define X(WAY, NAME) [TERN_CL_##WAY] = NAME,
        TERN_CL_WAYS(X)
#undef X
    };
    static const char *const sizes[TERN_CL_SIZES] = {"m", "n", "k", "count"};
    int way = 0;
    while (r->n > 1 && way < TERN_CL_PORTABLE && strcmp(r->word[1], ways[way]) != 0)
        way++;
    if (r->n < 2 || way == TERN_CL_PORTABLE)
        return REFUSE(r, "route: \"%s\" is none of own, gemm, gemv, batched, tiles, matrix",
                      r->n > 1 ? r->word[1] : "");
    tern_cl_route route = {.way = (tern_cl_way)way};
    for (int k = 0; k < TERN_CL_SIZES; k++) {
        route.least[k] = 1;
        route.most[k] = INT64_MAX;
    }
    for (int i = 2; i < r->n; i++) {
        char *equals = strchr(r->word[i], '=');
        if (strncmp(r->word[i], "layout=", 7) == 0 || strncmp(r->word[i], "tile=", 5) == 0 ||
            strncmp(r->word[i], "type=", 5) == 0) {
            TERN_TRY(read_form(r, r->word[i], equals + 1, &route));
            continue;
        }
        size_t length = equals ? (size_t)(equals - r->word[i]) : 0;
        int k = 0;
        while (k < TERN_CL_SIZES &&
               (strlen(sizes[k]) != length || strncmp(r->word[i], sizes[k], length) != 0))
            k++;
        if (k == TERN_CL_SIZES || !range(equals + 1, &route.least[k], &route.most[k]))
            return REFUSE(r, "\"%s\" is not m=A..B, n=A..B, k=A..B or count=A..B", r->word[i]);
    }
    if (route.way == TERN_CL_TILES && !route.tile.down)
        return REFUSE(r, "route tiles needs %s", "tile=16x16x4x4x16x4, or another");
    if (route.way == TERN_CL_MATRIX && !route.tile.m)
        return REFUSE(r, "route matrix needs %s", "tile=128x128x64, or another");
    return r->skip ? TERN_OK : add_route(r, &route);
}

static tern_status read_line(reader *r)
{
    static const struct {
        const char *word;
        tern_status (*read)(reader *r);
    } kinds[] = {{"device", read_device},
                 {"driver", read_device},
                 {"tern", read_device},
                 {"kernel", read_kernel},
                 {"route", read_route}};
    if (r->n == 0)
        return TERN_OK;
    if (r->n == WORDS)
        return REFUSE(r, "more than %d words", WORDS - 1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(r->word[0], kinds[i].word) == 0)
            return kinds[i].read(r);
    return REFUSE(r, "\"%s\" is none of device, driver, tern, kernel, route", r->word[0]);
}

/* ---- the file ---------------------------------------------------------------------------- */

/* Sets path to the file's name. Returns false if there is none. */
static bool path_of_file(char *path, bool *asked_for)
{
    const char *own = tern_env(TERN_ENV_OPENCL_TUNING);
    *asked_for = own != NULL;
    if (!own)
        return tern_os_folder(TERN_OS_CONFIG, "/tern/opencl.tuning", path, PATH_BYTES);
    return strcmp(own, "off") != 0 && snprintf(path, PATH_BYTES, "%s", own) < PATH_BYTES;
}

/* Opens the file without waiting for a writer, in case it is a FIFO. A device, which may have no
 * end, is opened only if it is /dev/null. Returns NULL, with errno, if the file can't be read. */
static FILE *open_file(const char *path)
{
    struct tern_os_stat status;
    int file = tern_os_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return NULL;
    if (tern_os_fstat(file, &status) == 0 &&
        (S_ISREG(status.st_mode) || strcmp(path, "/dev/null") == 0))
        return tern_os_fdopen(file, "r");
    tern_os_close(file);
    errno = ENOTSUP;
    return NULL;
}

static tern_status read_lines(reader *r, FILE *file)
{
    char line[LINE_BYTES];
    while (fgets(line, sizeof line, file)) {
        r->line++;
        if (strlen(line) == sizeof line - 1)
            return REFUSE(r, "a line is longer than %d characters", LINE_BYTES - 2);
        split(r, line);
        TERN_TRY(read_line(r));
    }
    return ferror(file) ? REFUSE(r, "cannot be read: %s", strerror(errno)) : TERN_OK;
}

tern_status tern_cl_tuning_read(tern_place *place, tern_cl_tuning *tuning)
{
    char path[PATH_BYTES];
    bool asked_for;
    *tuning = (tern_cl_tuning){0};
    if (!path_of_file(path, &asked_for))
        return TERN_OK;
    FILE *file = open_file(path);
    if (!file && (asked_for || errno != ENOENT))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: the tuning file %s cannot be opened: %s",
                         tern_place_info(place)->device, path,
                         errno == ENOTSUP ? "it is not a regular file" : strerror(errno));
    if (!file)
        return TERN_OK;
    reader r = {.place = place, .tuning = tuning, .path = path};
    tern_status status = read_lines(&r, file);
    fclose(file);
    if (status != TERN_OK) {
        tern_free(tuning->routes);
        *tuning = (tern_cl_tuning){0};
    }
    return status;
}
