/* chain_kernels.c -- keeps the kernels of chains of each device, and compiles each once. */
#include "device/chain_kernels.h"
#include "base/error.h"
#include "base/forks.h"
#include "base/os.h"
#include "base/text.h"
#include "device/index32.h"
#include "device/registry.h"
#include <string.h>

/* The state of a kernel: not compiled, a thread compiles it, or the compilation has ended. */
typedef enum state { WANTED, UNDER_WAY, DONE } state;

struct tern_chain_kernel {
    tern_chain_kernel *next;
    tern_place *place;
    tern_chain chain;
    tern_dtype dtype;
    state state;        /* guarded by the lock */
    int forks;          /* tern_forks() of the process whose thread compiles the kernel */
    tern_status status; /* of the compilation */
    void *compiled;     /* NULL with TERN_OK: the backend has no such kernel */
    char why[200];
};

static tern_mutex lock = TERN_MUTEX_INIT;
static tern_cond change = TERN_COND_INIT;
static tern_once once = TERN_ONCE_INIT;

/* Called in a forked child: a thread of the parent may have held the lock. */
static void renew(void)
{
    static const tern_mutex free_lock = TERN_MUTEX_INIT;
    static const tern_cond free_change = TERN_COND_INIT;
    lock = free_lock;
    change = free_change;
}

static void watch_forks(void)
{
    tern_os_at_fork(renew);
}

/* Returns whether a thread of this process compiles the kernel. The caller holds the lock. */
static bool is_made(const tern_chain_kernel *k)
{
    return k->state == UNDER_WAY && k->forks == tern_forks();
}

static bool is_same_row(const tern_chain_row *a, const tern_chain_row *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->file, b->file) == 0 && a->n == b->n &&
           memcmp(a->in, b->in, a->n) == 0 && a->out == b->out && a->numbers == b->numbers &&
           a->wide == b->wide;
}

/* Returns whether two chains have the same kernel: they differ in sizes and numbers alone. For
 * kernels with a slot and launches side by side the compiled kernels must be the same too, as the
 * size of their work-groups is in the text. */
static bool is_same(const tern_chain *a, const tern_chain *b)
{
    bool same = a->rows == b->rows && a->tensors == b->tensors && a->slot == b->slot &&
                a->is_beside == b->is_beside &&
                (a->n < tern_index32_limit) == (b->n < tern_index32_limit) &&
                memcmp(a->step, b->step, (size_t)a->tensors) == 0 &&
                memcmp(a->wide, b->wide, (size_t)a->tensors) == 0;
    for (int i = 0; same && i < a->rows; i++)
        same =
            is_same_row(&a->row[i], &b->row[i]) && ((!tern_chain_is_slot(a, i) && !a->is_beside) ||
                                                    a->row[i].compiled == b->row[i].compiled);
    return same;
}

/* Returns the place's list of kernels for this hash of the rows. */
static tern_chain_kernel **list_of(tern_place *place, const tern_chain *chain)
{
    uint64_t hash = TERN_HASH_SEED;
    for (int i = 0; i < chain->rows; i++) {
        hash = tern_hash(hash, chain->row[i].name, strlen(chain->row[i].name));
        hash = tern_hash(hash, chain->row[i].in, chain->row[i].n);
    }
    return &place->chains[hash % TERN_CHAIN_KEYS];
}

tern_chain_kernel *tern_chain_kernel_of(tern_place *place, const tern_chain *chain,
                                        tern_dtype dtype)
{
    tern_call_once(&once, watch_forks);
    tern_mutex_lock(&lock);
    tern_chain_kernel **list = list_of(place, chain), *k = *list;
    while (k && (k->dtype != dtype || !is_same(&k->chain, chain)))
        k = k->next;
    if (!k && (k = tern_alloc(sizeof *k))) {
        *k = (tern_chain_kernel){.next = *list, .place = place, .chain = *chain, .dtype = dtype};
        *list = k;
    }
    tern_mutex_unlock(&lock);
    return k;
}

bool tern_chain_kernel_is_done(const tern_chain_kernel *k)
{
    tern_mutex_lock(&lock);
    const bool done = k->state == DONE;
    tern_mutex_unlock(&lock);
    return done;
}

bool tern_chain_kernel_is_under_way(const tern_chain_kernel *k)
{
    tern_mutex_lock(&lock);
    const bool under_way = is_made(k);
    tern_mutex_unlock(&lock);
    return under_way;
}

/* Returns whether the compilation may succeed if it is tried again. */
static bool is_transient(tern_status status)
{
    return status == TERN_ERR_MEMORY || status == TERN_ERR_STATE; /* tern_compile_stop */
}

/* Returns whether the calling thread has to compile the kernel; false: the compilation has ended,
 * or if `ahead`, another thread compiles it. With `ahead` the function must not wait: a thread that
 * waits for a program does other jobs meanwhile (builds.c), and the kernel of this job may be one
 * that the same thread is already compiling. */
static bool begin(tern_chain_kernel *k, bool ahead)
{
    tern_mutex_lock(&lock);
    while (is_made(k) && !ahead)
        tern_cond_wait(&change, &lock);
    const bool mine = k->state == WANTED || (k->state == UNDER_WAY && !is_made(k)) ||
                      (k->state == DONE && !ahead && is_transient(k->status));
    if (mine) {
        k->state = UNDER_WAY;
        k->forks = tern_forks();
    }
    tern_mutex_unlock(&lock);
    return mine;
}

static void make(tern_chain_kernel *k, bool ahead)
{
    tern_error_hold hold;
    if (!begin(k, ahead))
        return;
    tern_status status = tern_error_hold_begin(&hold);
    if (status == TERN_OK) {
        k->place->backend->chain(k->place, &k->chain, k->dtype, &k->compiled);
        status = tern_error_hold_end(&hold, k->why, sizeof k->why);
    }
    tern_mutex_lock(&lock);
    k->status = status;
    k->state = DONE;
    tern_cond_broadcast(&change);
    tern_mutex_unlock(&lock);
}

void tern_chain_kernel_make(tern_chain_kernel *k)
{
    make(k, false);
}

void tern_chain_kernel_make_ahead(tern_chain_kernel *k)
{
    make(k, true);
}

tern_status tern_chain_kernel_get(tern_chain_kernel *k, void **compiled, const char **why)
{
    tern_chain_kernel_make(k);
    tern_mutex_lock(&lock);
    const tern_status status = k->status;
    *compiled = status == TERN_OK ? k->compiled : NULL;
    *why = k->why;
    tern_mutex_unlock(&lock);
    return status;
}

void tern_chain_kernels_end(tern_place *place)
{
    for (int i = 0; i < TERN_CHAIN_KEYS; i++)
        for (tern_chain_kernel *next, *k = place->chains[i]; k; k = next) {
            next = k->next;
            tern_free(k);
        }
}
