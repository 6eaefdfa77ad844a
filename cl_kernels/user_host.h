/* user_host.h -- what comes before user.h and a kernel of the program's for the host's C++
 * compiler. */
#define TERN_FN static inline
#define TERN_IN inline
#define TERN_M(f) __builtin_##f
#define TERN_NATIVE(f) cl_##f
#define TERN_KERNEL   static
/* On Linux thread-local memory starts at a cache line. LeakSanitizer misreads a block that starts
 * 16 bytes behind the start of a page (DTLS_on_tls_get_addr) and ends the program. */
#ifdef __linux__
#define TERN_LOCAL static thread_local __attribute__((aligned(64)))
#else
#define TERN_LOCAL static thread_local
#endif
#define TERN_CONSTANT static
typedef __SIZE_TYPE__ size_t;
extern "C" int printf(const char *, ...);
#include "user_group.h"
/* The work-group and the work-item that run on this thread. Both are copies whose addresses nobody
 * has: what a kernel stores changes neither, so a loop over items keeps them in registers. */
TERN_LOCAL tern_user_group tern_here;
TERN_LOCAL struct {
    size_t local[3], global[3];
} tern_item;
#define TERN_ASK(NAME, FIELD, ELSE) \
    TERN_FN size_t NAME(unsigned d) { return d < 3 ? FIELD[d] : ELSE; }
TERN_ASK(cl_get_local_id, tern_item.local, 0)
TERN_ASK(cl_get_global_id, tern_item.global, 0)
TERN_ASK(cl_get_group_id, tern_here.group, 0)
TERN_ASK(cl_get_local_size, tern_here.local, 1)
TERN_ASK(cl_get_num_groups, tern_here.groups, 1)
TERN_ASK(cl_get_global_size, tern_here.global, 1)
#define TERN_GLOBAL_IDS 1
TERN_FN unsigned cl_get_work_dim() { return tern_here.dims; }
TERN_FN void cl_mem_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
/* Others of the group run on this thread until all have come here. */
TERN_FN void cl_barrier(int)
{
    auto item = tern_item;
    tern_here.meet(tern_here.meeting);
    tern_item = item;
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
TERN_FN void tern_copy_words(unsigned long long *to, const tern_user_group *g, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = g->words[i];
}
TERN_FN void *tern_shared_of(unsigned long long word) { return tern_here.shared + word; }
template <class I> TERN_FN void tern_set_item(int d, I local, size_t global)
{
    tern_item.local[d] = (size_t)local, tern_item.global[d] = global;
}
template <class F> TERN_FN void tern_run_item(const tern_user_group *g, size_t i, F run)
{
    const size_t item[3] = {i % g->local[0], i / g->local[0] % g->local[1],
        i / g->local[0] / g->local[1]};
    tern_here = *g;
    for (int d = 0; d < 3; d++)
        tern_set_item(d, item[d], g->first[d] + item[d]);
    run();
}
/* The items of a group one after the other. OpenCL has no order of them without a barrier, so the
 * compiler may make vectors of those that follow each other along dimension 0 (ivdep). They are
 * counted by I: an address that a kernel computes with ids of type int is linear to the compiler
 * where the count is one of int, which does not wrap. */
template <class I, class F> TERN_FN void tern_run_items(const tern_user_group *g, F run)
{
    const size_t deep = g->local[2], high = g->local[1], z = g->first[2], y = g->first[1];
    const I from = (I)g->first[0], to = from + (I)g->local[0];
    if (from < 0)
        __builtin_unreachable();
    tern_here = *g;
    for (size_t k = 0; k < deep; k++)
        for (size_t j = 0; j < high; j++) {
            tern_set_item(2, k, z + k);
            tern_set_item(1, j, y + j);
#pragma GCC ivdep
            for (I i = from; i < to; i++) {
                tern_set_item(0, i - from, (size_t)i);
                run();
            }
        }
}
TERN_FN bool tern_is_small(const tern_user_group *g)
{
    return g->first[0] + g->local[0] < 1u << 31;
}
#define TERN_WORD(i)   tern_word{tern_words[i]}
#define TERN_SHARED(i) tern_shared_word{tern_shared_of(tern_words[i])}
/* What the library calls: a group's items where there is no barrier (ids beyond int in a function
 * that is not made fast), else one item. No name of it but tern's own: a kernel may be called g,
 * or i. */
#define TERN_SEEN extern "C" __attribute__((__visibility__("default")))
#define TERN_WORDS(N) \
    unsigned long long tern_words[N + 1]; \
    tern_copy_words(tern_words, tern_group, N);
#define TERN_ITEM(N, CALL) \
    TERN_SEEN void tern_user_item(const tern_user_group *tern_group, size_t tern_i) \
    { \
        TERN_WORDS(N) \
        tern_run_item(tern_group, tern_i, [&] { CALL; }); \
    }
#define TERN_ITEMS(N, CALL) \
    static __attribute__((__cold__, __noinline__)) \
    void tern_far(const tern_user_group *tern_group) \
    { \
        TERN_WORDS(N) \
        tern_run_items<long>(tern_group, [&] { CALL; }); \
    } \
    TERN_SEEN __attribute__((__flatten__)) \
    void tern_user_items(const tern_user_group *tern_group) \
    { \
        if (!tern_is_small(tern_group)) { \
            tern_far(tern_group); \
            return; \
        } \
        TERN_WORDS(N) \
        tern_run_items<int>(tern_group, [&] { CALL; }); \
    }
