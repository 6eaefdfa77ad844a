/* env.c -- reads each variable of env.def once, and finds mistakes in the environment. */
#include "base/env.h"
#include "base/os.h"
#include "base/near.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES_BYTES = 16384, PREFIX_BYTES = sizeof "TERN_" - 1 };
typedef enum kind { FLAG, COUNT, CHOICE, LIVE, TEXT, LIST } kind;

typedef struct variable {
    const char *name;
    kind kind;
    const char *values, *by_default, *description;
} variable;

static const variable variables[] = {
#define VARIABLE(NAME, KIND, VALUES, DEFAULT, ABOUT) {"TERN_" #NAME, KIND, VALUES, DEFAULT, ABOUT},
#define OTHER(...)
#include "base/env.def"
#undef VARIABLE
#undef OTHER
};

static const char *const others[] = {
#define VARIABLE(...)
#define OTHER(NAME, WHOSE) #NAME,
#include "base/env.def"
#undef VARIABLE
#undef OTHER
};
enum { OTHERS = sizeof others / sizeof *others };

/* ---- values ------------------------------------------------------------------------------ */

/* Values are copied once, because a program may change its environment while other threads read it.
 * The copies are not on the heap, because they can never be freed: a reader may still use them. */
static struct {
    tern_mutex lock;
    atomic_bool is_read[TERN_ENV_VARIABLES];
    const char *value[TERN_ENV_VARIABLES];
    char copies[COPIES_BYTES];
    size_t used;
} store = {.lock = TERN_MUTEX_INIT};

static const char *from_environment(tern_env_variable i)
{
    const char *value = tern_os_getenv(variables[i].name);
    return value && (*value || variables[i].kind == LIST) ? value : NULL;
}

/* The lock is held. A value for which there is no space stays in the environment. */
static const char *copy(const char *value)
{
    size_t bytes = strlen(value) + 1;
    if (bytes > sizeof store.copies - store.used)
        return value;
    char *to = store.copies + store.used;
    store.used += bytes;
    return memcpy(to, value, bytes);
}

static void read_value(tern_env_variable i)
{
    tern_mutex_lock(&store.lock);
    if (!atomic_load_explicit(&store.is_read[i], memory_order_relaxed)) {
        const char *value = from_environment(i);
        store.value[i] = value ? copy(value) : NULL;
        atomic_store_explicit(&store.is_read[i], true, memory_order_release);
    }
    tern_mutex_unlock(&store.lock);
}

const char *tern_env(tern_env_variable i)
{
    if (variables[i].kind == LIVE)
        return from_environment(i);
    if (!atomic_load_explicit(&store.is_read[i], memory_order_acquire))
        read_value(i);
    return store.value[i];
}

/* Returns whether value is a word for a flag that is off. */
static bool is_off(const char *value)
{
    static const char *const words[] = {"0", "off", "no", "false"};
    for (int i = 0; i < 4; i++)
        if (tern_near_distance(value, words[i]) == 0)
            return true;
    return false;
}

bool tern_env_flag(tern_env_variable i, bool by_default)
{
    const char *value = tern_env(i);
    return value ? !is_off(value) : by_default;
}

bool tern_env_prints(void)
{
    return tern_env_flag(TERN_ENV_WARN, tern_env_flag(TERN_ENV_DEBUG, false));
}

void tern_env_read_again(tern_env_variable i)
{
    atomic_store(&store.is_read[i], false);
}

/* ---- mistakes ---------------------------------------------------------------------------- */

/* Returns whether text matches the pattern, in which a final "*" stands for any ending. */
static bool fits(const char *pattern, size_t length, const char *text)
{
    bool begins = length > 0 && pattern[length - 1] == '*';
    length -= begins;
    return strncmp(text, pattern, length) == 0 && (begins || text[length] == '\0');
}

/* Returns whether value is one of "a|b|c"; if not, sets text to the closest one, or to "". */
static bool is_choice(const char *values, const char *value, char text[64])
{
    const char *best = NULL;
    int least = 0;
    char one[64];
    *text = '\0';
    for (const char *v = values; *v; v += strcspn(v, "|"), v += *v == '|') {
        size_t n = strcspn(v, "|");
        if (fits(v, n, value))
            return true;
        snprintf(one, sizeof one, "%.*s", (int)n, v);
        const char *before = best;
        tern_near_try(value, one, &best, &least);
        if (best != before)
            snprintf(text, 64, "%s", one);
        best = best ? text : NULL;
    }
    return false;
}

/* Writes the values "0|1" as "0 or 1". */
static const char *alternatives(const char *values, char text[128])
{
    int used = 0;
    *text = '\0';
    for (const char *v = values; *v && used < 96; v += strcspn(v, "|"), v += *v == '|') {
        size_t n = strcspn(v, "|");
        used += snprintf(text + used, (size_t)(128 - used), "%s%.*s",
                         v == values ? ""
                         : v[n]      ? ", "
                                     : " or ",
                         (int)n, v);
    }
    return text;
}

/* Sets text to what is wrong with a variable's value, without its name; to "" if nothing is. */
static void find_bad_value(const variable *v, const char *value, char *text, size_t bytes)
{
    char list[128], meant[64];
    *text = '\0';
    if (v->kind == FLAG && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        snprintf(text, bytes, "\"%.64s\" is neither 0 nor 1, and counts as %d", value,
                 !is_off(value));
    else if (v->kind == COUNT && value[strspn(value, "0123456789")])
        snprintf(text, bytes, "\"%.64s\" is not a whole number from 0 on", value);
    else if ((v->kind == CHOICE || v->kind == LIVE) && !is_choice(v->values, value, meant))
        snprintf(text, bytes, "\"%.64s\" is none of %s%s%s%s", value, alternatives(v->values, list),
                 *meant ? "; did you mean \"" : "", meant, *meant ? "\"?" : "");
}

static bool is_known(const char *name)
{
    for (int i = 0; i < TERN_ENV_VARIABLES; i++)
        if (strcmp(variables[i].name, name) == 0)
            return true;
    for (int i = 0; i < OTHERS; i++)
        if (fits(others[i], strlen(others[i]), name))
            return true;
    return false;
}

static void guess_name(const char *name, char *text, size_t bytes)
{
    const char *best = NULL;
    int least = 0;
    for (int i = 0; i < TERN_ENV_VARIABLES; i++)
        tern_near_try(name + PREFIX_BYTES, variables[i].name + PREFIX_BYTES, &best, &least);
    snprintf(text, bytes, "tern has no such variable%s%s%s", best ? "; did you mean TERN_" : "",
             best ? best : "", best ? "?" : "");
}

/* Writes name and value of the i-th unknown variable TERN_... in the environment. Returns false if
 * there are not that many. */
static bool unknown_at(int i, char name[64], const char **value)
{
    for (char **e = tern_os_environment(); e && *e; e++) {
        size_t n = strcspn(*e, "=");
        if (strncmp(*e, "TERN_", PREFIX_BYTES) != 0 || n >= 64 || !(*e)[n])
            continue;
        snprintf(name, 64, "%.*s", (int)n, *e);
        *value = *e + n + 1;
        if (!is_known(name) && i-- == 0)
            return true;
    }
    return false;
}

/* ---- the public function ----------------------------------------------------------------- */

static void describe(int i, tern_env_info *info)
{
    const variable *v = &variables[i];
    bool is_read = atomic_load_explicit(&store.is_read[i], memory_order_acquire);
    *info = (tern_env_info){
        .value = is_read ? store.value[i] : from_environment((tern_env_variable)i),
        .values = v->values,
        .by_default = v->by_default,
        .description = v->description,
    };
    snprintf(info->name, sizeof info->name, "%s", v->name);
    if (info->value)
        find_bad_value(v, info->value, info->problem, sizeof info->problem);
}

bool tern_env_at(int i, tern_env_info *info)
{
    if (!info)
        return false;
    *info = (tern_env_info){.value = NULL};
    if (i < 0)
        return false;
    if (i < TERN_ENV_VARIABLES) {
        describe(i, info);
        return true;
    }
    if (!unknown_at(i - TERN_ENV_VARIABLES, info->name, &info->value)) {
        info->name[0] = '\0';
        info->value = NULL;
        return false;
    }
    info->values = info->by_default = info->description = "";
    guess_name(info->name, info->problem, sizeof info->problem);
    return true;
}
