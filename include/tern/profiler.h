/* profiler.h -- where time and memory go, and whether anything is copied or waited for unasked.
 *
 *   TERN_PROFILE ("trace.json") {
 *       train_step();
 *   }
 *
 * writes a Chrome trace, which chrome://tracing, Perfetto and what reads PyTorch's traces open.
 * With a profiler of its own a program asks for numbers and a table (torch.profiler):
 *
 *   tern_profiler *p = tern_profiler_new(NULL);
 *   tern_profiler_start(p);
 *   ...
 *   tern_profiler_stop(p);
 *   char *table = tern_profiler_table(p, &(tern_profiler_table_options){.sort_by = "device_ns"});
 *   puts(table);
 *   tern_free_text(table);
 *   tern_profiler_free(p);
 *
 * A row is an operation ("linear"), the gradient of one ("LinearBackward"), an operation that a
 * gradient is made of ("linear (backward)"), a block with a name (TERN_PROFILER_LABEL), a copy
 * ("to_host", "to_device") or a wait ("synchronize"); work that is given to a device outside of all
 * these, as an optimizer's, is a row of its kernel's name. Times of the device come from its
 * events, on the cpu from the clock. While no profiler runs an operation costs one branch more. On
 * OpenCL a profiled device takes times of its own: start and stop while no other thread works
 * there. */
#ifndef TERN_PROFILER_H
#define TERN_PROFILER_H
#include <tern/device.h>

TERN_BEGIN_DECLS

typedef struct tern_profiler tern_profiler;

typedef struct tern_profiler_options {
    bool memory;  /* the bytes of live tensors over time, and those that each row made */
    bool shapes;  /* the shapes of inputs, in the trace */
    int64_t most; /* events kept; what comes after them is counted only; 0: 4 million */
    uint64_t reserved[4];
} tern_profiler_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_profiler_options tern_profiler_defaults(void);

/* A profiler that does not run yet; options may be NULL. The caller frees it. NULL after
 * TERN_ERR_MEMORY. */
TERN_API tern_profiler *tern_profiler_new(const tern_profiler_options *options);
/* Stops it if it runs. NULL is fine. */
TERN_API void tern_profiler_free(tern_profiler *profiler);
/* Look on from now on, on all threads. What was seen before stays. TERN_ERR_STATE: a profiler
 * runs already. */
TERN_API tern_status tern_profiler_start(tern_profiler *profiler);
/* Look on no more; waits for the devices. */
TERN_API tern_status tern_profiler_stop(tern_profiler *profiler);

/* All calls of one name. Times are nanoseconds; `self` is without what was called in turn. Texts
 * are the profiler's. */
typedef struct tern_profiler_row {
    const char *name;
    const char *module; /* the path that was asked for, "" at the outermost; NULL: all modules */
    int64_t calls;
    int64_t host_ns, self_host_ns;
    int64_t device_ns, self_device_ns;
    int64_t launches; /* kernels and products, with those of what was called */
    /* Of products, convolutions, attention and recurrent layers, and of their gradients: two for a
     * multiply and add. What a mask hides is counted. */
    double flops;
    int64_t copied;    /* bytes from and to the host */
    int64_t allocated; /* bytes of tensors made less those freed, self; with .memory */
    uint64_t reserved[8];
} tern_profiler_row;

/* The row of a name, of one module's path ("blocks.0.mlp") or (NULL) of all; false, and a row of
 * zeros, where there is none. No error is recorded for that. */
TERN_API bool tern_profiler_find(tern_profiler *profiler, const char *name, const char *module,
                                 tern_profiler_row *row);
/* Row i of all names, most time on the device first; false and a row of zeros behind the last. */
TERN_API bool tern_profiler_row_at(tern_profiler *profiler, int i, tern_profiler_row *row);

typedef struct tern_profiler_table_options {
    const char *sort_by; /* a field of the row, largest first; NULL: "self_device_ns" */
    int rows;            /* 0: 100 */
    bool by_module;      /* a row for each name and path */
    uint64_t reserved[4];
} tern_profiler_table_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_profiler_table_options tern_profiler_table_defaults(void);
/* A table like that of torch.profiler's key_averages().table(); free it with tern_free_text. NULL
 * after TERN_ERR_ARGUMENT (sort_by is no field) or TERN_ERR_MEMORY. */
TERN_API char *tern_profiler_table(tern_profiler *profiler,
                                   const tern_profiler_table_options *options);
/* Write what was seen as a Chrome trace: operations by thread, work by device, arrows from one to
 * the other, memory as counters of a device and of each module. TERN_ERR_IO: the file can't be
 * written. */
TERN_API tern_status tern_profiler_write_trace(tern_profiler *profiler, const char *path);

/* ---- TERN_PROFILE("trace.json") { ... } ---------------------------------------------------------
 * The trace of a block, with memory and shapes, is in the file when the block has ended. */
typedef struct tern_profile_block {
    tern_profiler *profiler;
    const char *path;
} tern_profile_block;
/* What TERN_PROFILE opens with; path must live until the end of the block. */
TERN_API tern_profile_block tern_profile_block_enter(const char *path);
/* Stops, writes and frees. */
TERN_API void tern_profile_block_leave(tern_profile_block *block);
#define TERN_PROFILE(path)                                                                         \
    TERN_BLOCK_(tern_profile_block, tern_profile_block_enter(path), tern_profile_block_leave)
#define TERN_PROFILE_HERE(path)                                                                    \
    TERN_HERE_(tern_profile_block, tern_profile_block_enter(path), tern_profile_block_leave)

/* ---- TERN_PROFILER_LABEL("forward") { ... } -----------------------------------------------------
 * What happens in the block is also the row's of that name (torch.profiler.record_function). */
typedef struct tern_profiler_label_block {
    int64_t range;
} tern_profiler_label_block;
/* What TERN_PROFILER_LABEL opens with; the text is copied. */
TERN_API tern_profiler_label_block tern_profiler_label_enter(const char *label);
/* Ends it. */
TERN_API void tern_profiler_label_leave(tern_profiler_label_block *block);
#define TERN_PROFILER_LABEL(label)                                                                 \
    TERN_BLOCK_(tern_profiler_label_block, tern_profiler_label_enter(label),                       \
                tern_profiler_label_leave)
#define TERN_PROFILER_LABEL_HERE(label)                                                            \
    TERN_HERE_(tern_profiler_label_block, tern_profiler_label_enter(label),                        \
               tern_profiler_label_leave)

/* ---- TERN_STRICT { ... } ----------------------------------------------------------------------
 * Inside, on this thread, what waits for a device, copies between devices or falls back to a slow
 * way without being asked for it by name is TERN_ERR_STATE, and its message names it: tern_item,
 * operations whose result's shape or checks depend on values (nonzero, unique, one_hot without
 * num_classes), printing, a number of the cpu beside tensors of a device. tern_copy_to_host,
 * tern_to and tern_synchronize say what they do, and may. The cpu is held to the same. */
typedef struct tern_strict_block {
    bool outer;
} tern_strict_block;
/* What TERN_STRICT opens with: strict or not from now on. */
TERN_API tern_strict_block tern_strict_block_enter(bool strict);
/* Closes the block, and restores what was set before it. */
TERN_API void tern_strict_block_leave(tern_strict_block *block);
/* Whether the thread is in such a block. */
TERN_API bool tern_is_strict(void);
#define TERN_STRICT                                                                                \
    TERN_BLOCK_(tern_strict_block, tern_strict_block_enter(true), tern_strict_block_leave)
#define TERN_STRICT_HERE                                                                           \
    TERN_HERE_(tern_strict_block, tern_strict_block_enter(true), tern_strict_block_leave)

/* ---- counters ------------------------------------------------------------------------------- */

/* What a device did since the process opened it. */
typedef struct tern_counters {
    uint64_t operations;         /* may miss some where several threads work at once */
    uint64_t launches;           /* kernels and products */
    uint64_t waits;              /* of the host for the device: reads and synchronisations */
    uint64_t to_host, to_device; /* bytes copied */
    uint64_t fallbacks;          /* slow ways taken, on all devices: warnings of kind "slow" */
    uint64_t programs_built, programs_loaded;
    uint64_t allocations, driver_allocations; /* blocks of memory; those that asked the driver */
    uint64_t reserved[8];
} tern_counters;
/* Fill *counters. Errors: TERN_ERR_DEVICE. */
TERN_API tern_status tern_get_counters(const char *device, tern_counters *counters);

TERN_END_DECLS
#endif
