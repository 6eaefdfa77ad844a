/* beside.h -- TERN_SIDES launches of one kernel as one command (src/device/beside.h): of its
 * work-groups each launch has every TERN_SIDES-th. BESIDE in the kernel counts the groups of the
 * launch that a group belongs to, and takes that launch's arguments. */
#if defined(__OPENCL_VERSION__)
INLINE idx tern_all_group(void)
{
    return (idx)get_group_id(0);
}
INLINE idx tern_all_groups(void)
{
    return (idx)get_num_groups(0);
}
#define get_group_id(d)    tern_group
#define get_num_groups(d)  tern_groups
#define get_global_id(d)   (tern_group * TERN_WG + LID)
#define get_global_size(d) (tern_groups * TERN_WG)
#define IS_FIRST_FAULT_(words, code)                                                               \
    (atomic_cmpxchg((volatile GLOBAL u32 *)(words), 0u, (u32)(code)) == 0u)
#else
#define tern_all_group()  ((idx)blockIdx.x)
#define tern_all_groups() ((idx)gridDim.x)
#undef GROUP_ID
#undef GROUP_COUNT
#undef TERN_THREAD
#undef TERN_THREADS
#define GROUP_ID     tern_group
#define GROUP_COUNT  tern_groups
#define TERN_THREAD  (tern_group * TERN_WG + (idx)threadIdx.x)
#define TERN_THREADS (tern_groups * TERN_WG)
#define IS_FIRST_FAULT_(words, code) (atomicCAS((u32 *)(words), 0u, (u32)(code)) == 0u)
#endif
/* For the family's other kernels, which nothing launches from this program. */
enum { tern_group = 0, tern_groups = 1 };
#define SIDES                                                                                      \
    const i32 tern_side = (i32)(tern_all_group() % TERN_SIDES);                                    \
    const idx tern_group = tern_all_group() / TERN_SIDES,                                          \
              tern_groups = tern_all_groups() / TERN_SIDES;
/* The program's text has BESIDE_name empty for each kernel that has a BESIDE but its own. */
#undef BESIDE
#define BESIDE(name) TERN_CAT(BESIDE, name)
/* Of the first launch the arguments have their own names; TAKE gives them another's values. */
#undef CHAIN_PARAMETERS
#undef PARAM_ARG
#define PARAM_ARG(T, a) T a
#define TAKE_ARG(a, b)  a = b;
#define TAKE_OUT(a, b)                                                                             \
    BASE(b);                                                                                       \
    a = b;
#define TAKE_IN TAKE_OUT
/* Two launches may find mistakes: the words are those of the first alone. */
#undef FAULT
#define FAULT(words, code, a, b)                                                                   \
    do {                                                                                           \
        if (IS_FIRST_FAULT_(words, code)) {                                                        \
            (words)[1] = (i64)(a);                                                                 \
            (words)[2] = (i64)(b);                                                                 \
        }                                                                                          \
    } while (0)
