/* kernels.c -- from a kernel's name to its parameters, and to its best instruction set's code. */
#include "base/env.h"
#include "base/os_cpu.h"
#include "device/cpu/cpu.h"
#include "device/signature.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct level {
    const char *name;
    const tern_host_entry *(*kernels)(size_t *n);
    const tern_host_rows *const *(*rows)(size_t *n);
    tern_cpu_run *row_run, *chain_run;
} level;

#define X(ISA, TEXT, SUPPORTED)                                                                    \
    const tern_host_entry *tern_host_kernels_##ISA(size_t *n);                                     \
    const tern_host_rows *const *tern_host_rows_##ISA(size_t *n);                                  \
    extern tern_cpu_run tern_row_run_##ISA, tern_chain_run_##ISA;
#include "device/cpu/isa.def"
#undef X

/* For each dtype: the suffix of its kernels, and the tile type of its rows. */
static const struct {
    const char *suffix;
    tern_stored tile;
} types[] = {
#define STORED_AS__(T) STORED_AS_##T
#define STORED_AS_(T)  STORED_AS__(T)
#define X(T)           {#T, STORED_AS_(DTYPE_IN(TILES, DTYPE_##T))},
    EACH_DTYPE(X)
#undef X
};

enum { MAX_LEVELS = 4 };

/* Lists the instruction sets that this processor has, the best first. Returns their number.
 * TERN_CPU_ISA=x86-64-v3 leaves out those above it. */
static int supported_levels(level levels[MAX_LEVELS])
{
    const char *highest = tern_env(TERN_ENV_CPU_ISA);
    int n = 0;
#define X(ISA, TEXT, SUPPORTED)                                                                    \
    if (highest && strcmp(highest, TEXT) == 0)                                                     \
        highest = NULL;                                                                            \
    if (!highest && (SUPPORTED))                                                                   \
        levels[n++] = (level){TEXT, tern_host_kernels_##ISA, tern_host_rows_##ISA,                 \
                              tern_row_run_##ISA, tern_chain_run_##ISA};
#include "device/cpu/isa.def"
#undef X
    return n;
}

const char *tern_cpu_level(void)
{
    level levels[MAX_LEVELS];
    return supported_levels(levels) > 0 ? levels[0].name : NULL;
}

/* The lowest level with tern's kernels for convolutions, and products in more registers. */
#ifdef __aarch64__
#define LEVEL_OF_KERNELS "generic"
#else
#define LEVEL_OF_KERNELS "x86-64-v3"
#endif

int tern_cpu_above_v3(void)
{
    static _Atomic int known;
    level levels[MAX_LEVELS];
    if (!known) {
        int n = supported_levels(levels), i = 0;
        while (i < n && strcmp(levels[i].name, LEVEL_OF_KERNELS) != 0)
            i++;
        known = i < n ? i + 2 : 1;
    }
    return known - 2;
}

static void run_entry(const tern_cpu_kernel *k, int part, int parts, void *const *args)
{
    k->entry->run(&(tern_host_grid){part, parts}, args);
}

static const tern_host_entry *entry_called(const level *l, const char *name, tern_stored stored)
{
    char full[128];
    size_t n;
    const tern_host_entry *entries = l->kernels(&n);
    snprintf(full, sizeof full, "%s_%s", name, types[stored].suffix);
    for (size_t i = 0; i < n; i++)
        if (strcmp(entries[i].name, full) == 0)
            return &entries[i];
    return NULL;
}

static bool find_entry(const level *l, const char *name, tern_stored stored, tern_cpu_kernel *k)
{
    const tern_host_entry *entry = entry_called(l, name, stored);
    if (!entry || !entry->run)
        return false;
    *k = (tern_cpu_kernel){.run = run_entry, .entry = entry};
    return true;
}

/* Returns whether name is the row with a suffix: "", "_gradient", or "_scalar" (last input a
 * number). */
static bool is_form(const tern_host_row *row, const char *name, const char *form)
{
    size_t n = strlen(row->name);
    return strncmp(name, row->name, n) == 0 && strcmp(name + n, form) == 0;
}

static bool find_row(const level *l, const char *name, tern_stored stored, tern_cpu_kernel *k)
{
    size_t n;
    const tern_host_rows *const *tables = l->rows(&n);
    for (size_t t = 0; t < n; t++) {
        if (tables[t]->type != types[stored].tile)
            continue;
        for (const tern_host_row *row = tables[t]->rows; row->name; row++) {
            *k = (tern_cpu_kernel){.run = l->row_run,
                                   .tile = row->value,
                                   .stored = stored,
                                   .inputs = row->inputs,
                                   .numbers = row->numbers,
                                   .logical = row->logical};
            if (is_form(row, name, "")) {
                k->flips = row->flips;
                return true;
            }
            if (row->inputs == 2 && is_form(row, name, "_scalar")) {
                k->constant = 1;
                return true;
            }
            if (row->gradient && is_form(row, name, "_gradient")) {
                k->tile = row->gradient;
                k->inputs = 3;
                k->gradient = 1;
                return true;
            }
        }
    }
    return false;
}

/* ---- signatures -------------------------------------------------------------------------- */

/* Returns a row's parameters, as row_kernels.h declares them. */
static const char *row_parameters(const tern_cpu_kernel *row)
{
    if (row->gradient)
        return "(OUT, STO, dxs)(IN, STO, xs)(IN, STO, ys)(IN, STO, dys)(ARG, tern_nd_index, w)"
               "(ARG, REAL, a)(ARG, REAL, b)";
    if (row->constant)
        return row->logical ? "(OUT, u8, ys)(IN, STO, xs)(ARG, tern_nd_index, w)(ARG, REAL, y)"
                            : "(OUT, STO, ys)(IN, STO, xs)(ARG, tern_nd_index, w)(ARG, REAL, y)";
    if (row->inputs == 3)
        return "(OUT, STO, vs)(IN, STO, xs)(IN, STO, ys)(IN, STO, zs)(ARG, tern_nd_index, w)"
               "(ARG, REAL, a)";
    if (row->inputs == 2)
        return row->logical ? "(OUT, u8, zs)(IN, STO, xs)(IN, STO, ys)(ARG, tern_nd_index, w)"
                            : "(OUT, STO, zs)(IN, STO, xs)(IN, STO, ys)(ARG, tern_nd_index, w)";
    return row->logical ? "(OUT, u8, ys)(IN, STO, xs)(ARG, tern_nd_index, w)"
                        : "(OUT, STO, ys)(IN, STO, xs)(ARG, tern_nd_index, w)(ARG, REAL, a)"
                          "(ARG, REAL, b)";
}

/* The lowest instruction set has every kernel for every type, whatever this processor has. */
const char *tern_host_parameters(const char *name, tern_dtype dtype)
{
    static const level all[] = {
#define X(ISA, TEXT, SUPPORTED) {TEXT, tern_host_kernels_##ISA, tern_host_rows_##ISA, NULL, NULL},
#include "device/cpu/isa.def"
#undef X
    };
    tern_stored stored = (tern_stored)((int)dtype - TERN_F32);
    tern_cpu_kernel row;
    for (size_t i = sizeof all / sizeof *all; i-- > 0;) {
        const tern_host_entry *entry = entry_called(&all[i], name, stored);
        if (entry && entry->parameters)
            return entry->parameters;
        if (find_row(&all[i], name, stored, &row))
            return row_parameters(&row);
    }
    return NULL;
}

/* ---- resolving --------------------------------------------------------------------------- */

static _Atomic(tern_cpu_kernel *) kernels; /* lock-free: products are resolved without locks */

static tern_cpu_kernel *keep(const tern_cpu_kernel *found)
{
    tern_cpu_kernel *k = tern_alloc(sizeof *k);
    if (!k)
        return NULL;
    *k = *found;
    k->next = atomic_load(&kernels);
    while (!atomic_compare_exchange_weak(&kernels, &k->next, k))
        ;
    return k;
}

tern_status tern_cpu_resolve(tern_place *place, const char *file, const char *name,
                             tern_dtype dtype, void **kernel)
{
    level levels[MAX_LEVELS];
    tern_cpu_kernel found;
    tern_stored stored = (tern_stored)((int)dtype - TERN_F32);
    int n = supported_levels(levels);
    (void)place;
    for (int i = 0; i < n; i++)
        if (find_entry(&levels[i], name, stored, &found) ||
            find_row(&levels[i], name, stored, &found)) {
            *kernel = keep(&found);
            return *kernel ? TERN_OK : TERN_ERR_MEMORY;
        }
    return tern_fail(TERN_ERR_UNSUPPORTED, "cpu: there is no kernel %s for %s (%s.cl)", name,
                     tern_dtype_name(dtype), file);
}

/* Returns whether a level has rows, and so conversions, for the type; the lowest one has all. */
static bool has_rows(const level *l, tern_stored stored)
{
    size_t n;
    const tern_host_rows *const *tables = l->rows(&n);
    for (size_t t = 0; t < n; t++)
        if (tables[t]->type == types[stored].tile)
            return true;
    return false;
}

/* Sets *compiled to a type's kernel for all chains; its first argument has the rows' functions. */
tern_status tern_cpu_chain(tern_place *place, const tern_chain *chain, tern_dtype dtype,
                           void **compiled)
{
    level levels[MAX_LEVELS];
    const tern_stored stored = (tern_stored)((int)dtype - TERN_F32);
    (void)place;
    for (int i = 0; i < chain->rows; i++) {
        const tern_cpu_kernel *k = chain->row[i].compiled;
        if (!k->tile || k->logical)
            return TERN_OK;
    }
    for (tern_cpu_kernel *k = atomic_load(&kernels); k && !*compiled; k = k->next)
        if (!k->tile && !k->entry && k->stored == stored)
            *compiled = k;
    if (*compiled)
        return TERN_OK;
    for (int i = 0, n = supported_levels(levels); i < n; i++)
        if (has_rows(&levels[i], stored)) {
            *compiled = keep(&(tern_cpu_kernel){.run = levels[i].chain_run, .stored = stored});
            return *compiled ? TERN_OK : TERN_ERR_MEMORY;
        }
    return TERN_OK;
}

void tern_cpu_free_kernels(void)
{
    tern_cpu_kernel *next;
    for (tern_cpu_kernel *k = atomic_exchange(&kernels, NULL); k; k = next) {
        next = k->next;
        tern_free(k);
    }
}
