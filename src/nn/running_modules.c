/* running_modules.c -- the modules that run, and their paths for error messages. */
#include "nn/running_modules.h"
#include "base/lock.h"
#include "base/from_nn.h"
#include <string.h>

static tern_mutex lock = TERN_MUTEX_INIT;
static tern_module *modules;
static uint64_t count;

static const tern_module *find(tern_module_ref ref)
{
    const tern_module *m = ref.module ? modules : NULL;
    while (m && (m != ref.module || m->number != ref.number))
        m = m->listed;
    return m;
}

/* ---- paths ------------------------------------------------------------------------------- */

static const char *name_in_parent(const tern_module *m)
{
    for (int i = 0; i < m->parent->count; i++)
        if (m->parent->members[i].child == m)
            return m->parent->members[i].name;
    return "?";
}

/* Writes text, and a dot after it, before position *at, or only the end of text if the space does
 * not suffice. */
static void prepend(char *path, size_t *at, const char *text, bool dot)
{
    if (dot && *at > 0)
        path[--*at] = '.';
    size_t length = strlen(text), fits = length < *at ? length : *at;
    *at -= fits;
    memcpy(path + *at, text + length - fits, fits);
}

/* Writes the path from outermost, "blocks.0.mlp". If m is not below outermost, writes the path from
 * the module without a parent, beginning with that module's type. */
static void write_path(const tern_module *m, const tern_module *outermost, char *path, size_t bytes)
{
    size_t at = bytes - 1;
    path[at] = '\0';
    for (; m != outermost && m->parent && at > 0; m = m->parent)
        prepend(path, &at, name_in_parent(m), at < bytes - 1);
    if (m != outermost && at > 0)
        prepend(path, &at, m->name, at < bytes - 1);
    memmove(path, path + at, bytes - at);
}

static bool path_of(const tern_modules_running *running, char *path, char *type, size_t bytes)
{
    tern_mutex_lock(&lock);
    const tern_module *m = find(running->innermost);
    if (m) {
        write_path(m, find(running->outermost), path, bytes);
        strncat(type, m->name, bytes - 1);
    }
    tern_mutex_unlock(&lock);
    return m;
}

/* ---- list of all modules --------------------------------------------------------------------- */

void tern_nn_list(tern_module *m)
{
    static const tern_nn_functions functions = {path_of};
    tern_from_nn = &functions; /* set before any module can run */
    tern_mutex_lock(&lock);
    m->number = ++count;
    m->listed = modules;
    m->listed_at = &modules;
    if (modules)
        modules->listed_at = &m->listed;
    modules = m;
    tern_mutex_unlock(&lock);
}

void tern_nn_unlist(tern_module *m)
{
    tern_mutex_lock(&lock);
    *m->listed_at = m->listed;
    if (m->listed)
        m->listed->listed_at = m->listed_at;
    tern_mutex_unlock(&lock);
}
