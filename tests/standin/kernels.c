/* kernels.c -- one family of kernels for the stand-in: the host's expansion, with a function that
 * tells the size of each parameter, as CUDA's driver reads it from the program. TERN_FAMILY is
 * "reduce.cl" and so on. */
#define tern_f32_to_f16 tern_f32_to_f16_host
#include "prelude_host.h"
#undef tern_f32_to_f16
#define TERN_STANDIN 1
#define TERN_SECTION standin_kernels
#include "params_host.h"

/* cvt.rn.f16.f32 makes one NaN of all. */
INLINE u16 tern_f32_to_f16(f32 f)
{
    return f != f ? 0x7fffu : tern_f32_to_f16_host(f);
}

/* Parameters come as pointers to their values, pointers to memory among them. */
#undef FETCH_OUT
#undef FETCH_IN
#undef FETCH_ARG
#define FETCH_OUT(i, T) *(T **)tern_kernel_parameter(args, sizes, i, sizeof(T *))
#define FETCH_IN(i, T)  *(const T **)tern_kernel_parameter(args, sizes, i, sizeof(T *))
#define FETCH_ARG(i, T) *(const T *)tern_kernel_parameter(args, sizes, i, sizeof(T))

static inline void *tern_kernel_parameter(void *const *args, unsigned *sizes, int i,
                                          unsigned long bytes)
{
    static const struct {
        _Alignas(16) char zeros[1024];
    } none;
    if (!sizes)
        return args[i];
    sizes[i] = (unsigned)bytes;
    return (void *)&none;
}
static void tern_measured(int first, ...)
{
    (void)first;
}
typedef struct standin_kernel {
    const char *name;
    void (*run)(const tern_host_grid *grid, void *const *args, unsigned *sizes);
} standin_kernel;

#undef KERNEL_
#undef DECLARED_
#define DECLARED_(n, text)
#define KERNEL_(n, text, parameters, fetched)                                                      \
    static void n##_body parameters;                                                               \
    static void n##_run(const tern_host_grid *grid, void *const *args, unsigned *sizes)            \
    {                                                                                              \
        if (sizes)                                                                                 \
            TERN_MEASURE fetched;                                                                  \
        else                                                                                       \
            n##_body fetched;                                                                      \
    }                                                                                              \
    static const standin_kernel n##_entry = {#n, n##_run};                                         \
    static const standin_kernel *const n##_listed GATHERED(TERN_SECTION) = &n##_entry;             \
    static void n##_body parameters
#define TERN_MEASURE(grid_, ...) tern_measured(0, __VA_ARGS__)

#include "dialect.h"
#include "shapes.h"
#include "nd_index.h"
#include "math.cl"
#include "math_special.cl"
#include "math64.cl"
#include "math64_special.cl"
#include "math_names.h"
#define TERN_HAS(T) 1
#include "every_dtype.h"
