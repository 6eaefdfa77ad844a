/* profiler.h -- where time and memory are spent, and which calls copy or wait.
 *
 *   TERN_PROFILE ("trace.json") {
 *       train_step();
 *   }
 *
 * writes a Chrome trace, for chrome://tracing, Perfetto, and tools that read PyTorch's traces. A
 * profiler of the program's own returns numbers and a table (torch.profiler):
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
 * gradient calls ("linear (backward)"), a labelled block (TERN_PROFILER_LABEL), a copy ("to_host",
 * "to_device") or a wait ("synchronize"). Kernels that are launched outside of all these, such as
 * an optimizer's, have rows of their own names. Device times come from the device's events, on the
 * cpu from the clock. While no profiler runs, an operation costs one more branch. A profiled OpenCL
 * device measures each command: start and stop the profiler while no other thread uses the
 * device. */
#ifndef TERN_PROFILER_H
#define TERN_PROFILER_H
#include <tern/device.h>

TERN_BEGIN_DECLS

typedef struct tern_profiler tern_profiler;

typedef struct tern_profiler_options {
    bool memory;  /* record the bytes of live tensors over time, and the bytes that each row
                   * allocated */
    bool shapes;  /* record the shapes of inputs, for the trace */
    int64_t most; /* the number of events to keep; later ones are only counted; 0: 4 million */
    uint64_t reserved[4];
} tern_profiler_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_profiler_options tern_profiler_defaults(void);

/* Returns a profiler that does not run yet, which the caller frees with tern_profiler_free. options
 * may be NULL. NULL after TERN_ERR_MEMORY. */
TERN_API tern_profiler *tern_profiler_new(const tern_profiler_options *options);
/* Stops the profiler if it runs, and frees it. NULL is fine. */
TERN_API void tern_profiler_free(tern_profiler *profiler);
/* Starts to record, on all threads. Earlier records are kept. Errors: TERN_ERR_STATE if a profiler
 * runs already. */
TERN_API tern_status tern_profiler_start(tern_profiler *profiler);
/* Stops recording, and waits for the devices. */
TERN_API tern_status tern_profiler_stop(tern_profiler *profiler);

/* All calls of one name. Times are in nanoseconds; `self` excludes the calls inside. The texts
 * belong to the profiler. */
typedef struct tern_profiler_row {
    const char *name;
    const char *module; /* the path that was asked for, "" for the outermost module; NULL: all
                         * modules */
    int64_t calls;
    int64_t host_ns, self_host_ns;
    int64_t device_ns, self_device_ns;
    int64_t launches; /* kernels and products, including those of the calls inside */
    /* Floating point operations of products, convolutions, attention and recurrent layers, and of
     * their gradients: two for a multiply and add. Masked elements are counted. */
    double flops;
    int64_t copied;    /* bytes copied from and to the host */
    int64_t allocated; /* bytes of tensors allocated less bytes freed, without the calls inside;
                        * with .memory */
    uint64_t reserved[8];
} tern_profiler_row;

/* Writes the row of a name to *row, for one module's path ("blocks.0.mlp") or (NULL) for all
 * modules. If there is none, it returns false and a row of zeros, without an error. */
TERN_API bool tern_profiler_find(tern_profiler *profiler, const char *name, const char *module,
                                 tern_profiler_row *row);
/* Writes row i of all names to *row, sorted by time on the device, largest first. After the last
 * one it returns false and a row of zeros. */
TERN_API bool tern_profiler_row_at(tern_profiler *profiler, int i, tern_profiler_row *row);

typedef struct tern_profiler_table_options {
    const char *sort_by; /* the field to sort by, largest first; NULL: "self_device_ns" */
    int rows;            /* 0: 100 */
    bool by_module;      /* a row for each name and path */
    uint64_t reserved[4];
} tern_profiler_table_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_profiler_table_options tern_profiler_table_defaults(void);
/* Returns a table like that of torch.profiler's key_averages().table(), which the caller frees with
 * tern_free_text. NULL after TERN_ERR_ARGUMENT (sort_by is not a field) or TERN_ERR_MEMORY. */
TERN_API char *tern_profiler_table(tern_profiler *profiler,
                                   const tern_profiler_table_options *options);
/* Writes the records as a Chrome trace: operations by thread, commands by device with arrows from
 * the operations, and memory as counters for each device and module. Errors: TERN_ERR_IO. */
TERN_API tern_status tern_profiler_write_trace(tern_profiler *profiler, const char *path);

/* ---- TERN_PROFILE("trace.json") { ... } ---------------------------------------------------------
 * The trace of the block, with memory and shapes, is written to the file at the end of the
 * block. */
typedef struct tern_profile_block {
    tern_profiler *profiler;
    const char *path;
} tern_profile_block;
/* Opens the block of TERN_PROFILE; path must live until the end of the block. */
TERN_API tern_profile_block tern_profile_block_enter(const char *path);
/* Stops the profiler, writes the trace and frees the profiler. */
TERN_API void tern_profile_block_leave(tern_profile_block *block);
#define TERN_PROFILE(path)                                                                         \
    TERN_BLOCK_(tern_profile_block, tern_profile_block_enter(path), tern_profile_block_leave)
#define TERN_PROFILE_HERE(path)                                                                    \
    TERN_HERE_(tern_profile_block, tern_profile_block_enter(path), tern_profile_block_leave)

/* ---- TERN_PROFILER_LABEL("forward") { ... } -----------------------------------------------------
 * All that happens in the block is also counted in the row of that name
 * (torch.profiler.record_function). */
typedef struct tern_profiler_label_block {
    int64_t range;
} tern_profiler_label_block;
/* Opens the block of TERN_PROFILER_LABEL; the text is copied. */
TERN_API tern_profiler_label_block tern_profiler_label_enter(const char *label);
/* Closes the block of TERN_PROFILER_LABEL. */
TERN_API void tern_profiler_label_leave(tern_profiler_label_block *block);
#define TERN_PROFILER_LABEL(label)                                                                 \
    TERN_BLOCK_(tern_profiler_label_block, tern_profiler_label_enter(label),                       \
                tern_profiler_label_leave)
#define TERN_PROFILER_LABEL_HERE(label)                                                            \
    TERN_HERE_(tern_profiler_label_block, tern_profiler_label_enter(label),                        \
               tern_profiler_label_leave)

/* ---- TERN_STRICT { ... } ------------------------------------------------------------------------
 * Inside the block, on this thread, an implicit wait for a device, an implicit copy between devices
 * and a slow fallback are TERN_ERR_STATE, and the message names the cause: tern_item, operations
 * whose shape or checks depend on values (nonzero, unique, one_hot without num_classes), printing,
 * a scalar on the cpu beside tensors of a device. tern_copy_to_host, tern_to and tern_synchronize
 * wait or copy by definition, and are allowed. The same rules hold on the cpu. */
typedef struct tern_strict_block {
    bool outer;
} tern_strict_block;
/* Opens the block of TERN_STRICT, or with strict false a block in which all is allowed. */
TERN_API tern_strict_block tern_strict_block_enter(bool strict);
/* Closes the block, and restores what was set before it. */
TERN_API void tern_strict_block_leave(tern_strict_block *block);
/* Returns whether this thread is in such a block. */
TERN_API bool tern_is_strict(void);
#define TERN_STRICT                                                                                \
    TERN_BLOCK_(tern_strict_block, tern_strict_block_enter(true), tern_strict_block_leave)
#define TERN_STRICT_HERE                                                                           \
    TERN_HERE_(tern_strict_block, tern_strict_block_enter(true), tern_strict_block_leave)

/* ---- counters ------------------------------------------------------------------------------- */

/* What a device has done since the process opened it. */
typedef struct tern_counters {
    uint64_t operations;         /* may be too small when several threads use the device at once */
    uint64_t launches;           /* kernels and products */
    uint64_t waits;              /* of the host for the device, in reads and synchronisations */
    uint64_t to_host, to_device; /* bytes copied */
    uint64_t fallbacks;          /* slow fallbacks on all devices: warnings of kind "slow" */
    uint64_t programs_built, programs_loaded;
    uint64_t allocations, driver_allocations; /* blocks of memory; those that were requested from
                                               * the driver */
    uint64_t reserved[8];
} tern_counters;
/* Writes the counters of a device to *counters. Errors: TERN_ERR_DEVICE. */
TERN_API tern_status tern_get_counters(const char *device, tern_counters *counters);

TERN_END_DECLS
#endif
