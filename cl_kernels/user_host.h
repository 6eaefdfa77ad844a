/* user_host.h -- what comes before user.h and a kernel of the program's for the host's C++
 * compiler. */
#define TERN_FN static inline
#define TERN_IN inline
#define TERN_M(f) __builtin_##f
#define TERN_NATIVE(f) cl_##f
#define TERN_KERNEL   static
#define TERN_LOCAL    static thread_local
#define TERN_CONSTANT static
typedef __SIZE_TYPE__ size_t;
extern "C" int printf(const char *, ...);
#include "user_group.h"
/* The work-item that runs on this thread. */
static thread_local struct {
    const tern_user_group *group;
    size_t item[3];
} tern_here;
#define TERN_ASK(NAME, FIELD, ELSE) \
    TERN_FN size_t NAME(unsigned d) { return d < 3 ? tern_here.FIELD[d] : ELSE; }
TERN_ASK(cl_get_local_id, item, 0)
TERN_ASK(cl_get_group_id, group->group, 0)
TERN_ASK(cl_get_local_size, group->local, 1)
TERN_ASK(cl_get_num_groups, group->groups, 1)
TERN_FN unsigned cl_get_work_dim() { return tern_here.group->dims; }
TERN_FN void cl_mem_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
/* Others run on this thread until all have come here. */
TERN_FN void cl_barrier(int)
{
    auto here = tern_here;
    here.group->meet(here.group->meeting);
    tern_here = here;
}
#define TERN_ONES(x)  __builtin_popcountl(x)
#define TERN_ZEROS(x) __builtin_clzl(x)
#define TERN_ATOMIC_ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define TERN_ATOMIC_AND(p, v) __atomic_fetch_and(p, v, __ATOMIC_RELAXED)
#define TERN_ATOMIC_OR(p, v)  __atomic_fetch_or(p, v, __ATOMIC_RELAXED)
#define TERN_ATOMIC_XOR(p, v) __atomic_fetch_xor(p, v, __ATOMIC_RELAXED)
template <class T> TERN_FN T tern_exchange(T *p, T v)
{
    T old;
    __atomic_exchange(p, &v, &old, __ATOMIC_RELAXED);
    return old;
}
template <class T> TERN_FN T tern_compare(T *p, T old, T v)
{
    __atomic_compare_exchange(p, &old, &v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return old;
}
template <class T> TERN_FN T tern_least_of(T *p, T v)
{
    T old = *p;
    while (v < old && !__atomic_compare_exchange(p, &old, &v, false, __ATOMIC_RELAXED,
        __ATOMIC_RELAXED))
        ;
    return old;
}
template <class T> TERN_FN T tern_most_of(T *p, T v)
{
    T old = *p;
    while (old < v && !__atomic_compare_exchange(p, &old, &v, false, __ATOMIC_RELAXED,
        __ATOMIC_RELAXED))
        ;
    return old;
}
#define TERN_ATOMIC_MIN(p, v)  tern_least_of(p, v)
#define TERN_ATOMIC_MAX(p, v)  tern_most_of(p, v)
#define TERN_ATOMIC_XCHG(p, v) tern_exchange(p, v)
#define TERN_ATOMIC_CMPXCHG(p, old, v) tern_compare(p, old, v)
/* Functions, and what follows the kernel's text is short: that may define macros called as these
 * words. */
TERN_FN unsigned long long tern_bits_of(int i) { return tern_here.group->words[i]; }
TERN_FN void *tern_shared_of(int i) { return tern_here.group->shared + tern_bits_of(i); }
template <class F> TERN_FN void tern_run_item(const tern_user_group *g, size_t i, F run)
{
    tern_here = {g, {i % g->local[0], i / g->local[0] % g->local[1],
        i / g->local[0] / g->local[1]}};
    run();
}
template <class F> TERN_FN void tern_run_items(const tern_user_group *g, F run)
{
    tern_here.group = g;
    for (size_t z = 0; z < g->local[2]; z++)
        for (size_t y = 0; y < g->local[1]; y++)
            for (size_t x = 0; x < g->local[0]; x++) {
                tern_here.item[0] = x, tern_here.item[1] = y, tern_here.item[2] = z;
                run();
            }
}
#define TERN_WORD(i)   tern_word{tern_bits_of(i)}
#define TERN_SHARED(i) tern_shared_word{tern_shared_of(i)}
/* What the library calls. No name of it but tern's own: a kernel may be called g, or i. */
#define TERN_SEEN extern "C" __attribute__((__visibility__("default")))
#define TERN_ENTRY(CALL) \
    TERN_SEEN void tern_user_item(const tern_user_group *tern_group, size_t tern_i) \
    { \
        tern_run_item(tern_group, tern_i, [] { CALL; }); \
    } \
    TERN_SEEN void tern_user_items(const tern_user_group *tern_group) \
    { \
        tern_run_items(tern_group, [] { CALL; }); \
    }
