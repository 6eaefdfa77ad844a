/* device.h -- devices are strings: "cpu", "opencl:0", "cuda:1", "auto".
 *
 * A kind alone ("opencl") is the current device of that kind. "auto" is the best device of the
 * machine: cuda, then an OpenCL GPU, then cpu. OpenCL devices are numbered over all platforms, and
 * a part of a device's name, vendor or platform names it too ("opencl:pocl"; 3 characters or more,
 * any case). NULL is the default device: cpu, or TERN_DEVICE of the environment.
 * TERN_OPENCL_VISIBLE_DEVICES selects and orders OpenCL devices ("1,0"); the first element that is
 * not valid ends the list, and an element that is repeated leaves no device. A file that
 * TERN_OPENCL_TUNING names tunes matrix products on OpenCL devices (see docs/tuning.md). */
#ifndef TERN_DEVICE_H
#define TERN_DEVICE_H
#include <tern/error.h>

TERN_BEGIN_DECLS

typedef enum tern_device_type {
    TERN_DEVICE_CPU = 1,        /* a processor */
    TERN_DEVICE_GPU = 2,        /* a graphics processor */
    TERN_DEVICE_ACCELERATOR = 3 /* anything else */
} tern_device_type;

/* What a device is and can do. The texts live as long as the process. */
typedef struct tern_device_info {
    const char *device; /* the canonical string, "opencl:0" */
    const char *name;   /* as the driver gives it */
    const char *vendor;
    const char *platform; /* "PoCL", "CUDA", "tern" */
    const char *driver;   /* driver version */
    tern_device_type type;
    int compute_units;
    uint64_t memory_total;       /* bytes */
    uint64_t memory_free;        /* bytes; memory_total where the driver does not report it */
    uint64_t largest_allocation; /* bytes; 0 = no limit but the memory */
    bool has_f64;
    bool has_native_f16; /* f16 arithmetic; f16 storage works on every device */
    bool unified_memory; /* shares its memory with the host */
    bool exact;          /* elementwise results have the same bits as the cpu's */
    char uuid[40];       /* "01234567-89ab-..." (36 characters); "" where it is not reported */
    int capability_major, capability_minor; /* compute capability of a CUDA GPU; 0 elsewhere */
    /* The matrix unit of an OpenCL device that products in half precision go on: "mma", "rdna3",
     * "rdna4", "cdna", "xe8", "xe16"; "" where none is known of. */
    const char *matrix_unit;
    /* Whether a product tried on it was right, in float16 and in bfloat16: 1 right, -1 wrong, 0 not
     * tried yet. */
    signed char matrix_f16, matrix_bf16;
    uint64_t reserved[6];
} tern_device_info;

/* The memory of a device as tern uses it, in bytes, and counts since the device was opened. */
typedef struct tern_memory_stats {
    uint64_t allocated; /* in live tensors */
    uint64_t allocated_peak;
    uint64_t reserved; /* taken from the driver: live and cached */
    uint64_t reserved_peak;
    uint64_t allocations;     /* requests served since the device was opened */
    uint64_t driver_calls;    /* of these, how many asked the driver */
    uint64_t launches;        /* kernels launched, matrix products included */
    uint64_t programs_built;  /* compiled from source */
    uint64_t programs_loaded; /* taken from the cache on disk */
    uint64_t to_host_bytes;   /* copied from the device to the host */
    uint64_t to_device_bytes;
    uint64_t recorded; /* of `reserved`: what recordings (tern/graph.h) hold as long as they live */
    uint64_t reserved_fields[7];
} tern_memory_stats;

/* Returns whether the device can be used now. It records no error. */
TERN_API bool tern_device_is_available(const char *device);

/* Returns how many devices a kind ("cpu", "opencl", "cuda") has; 0 for none or an unknown kind. */
TERN_API int tern_device_count(const char *kind);

/* Returns why a kind has no device, or what was passed over while devices were looked for (a broken
 * installation, a mask); "" where nothing is to be said, never NULL. */
TERN_API const char *tern_device_notes(const char *kind);

/* Returns the driver's name of the device; NULL after an error. The text lives as long as the
 * process. */
TERN_API const char *tern_device_name(const char *device);

/* Fills *info with what is known of the device. Errors: TERN_ERR_DEVICE. */
TERN_API tern_status tern_device_get_info(const char *device, tern_device_info *info);

/* Returns the canonical form of any device string ("auto" -> "opencl:0"); NULL after an error. */
TERN_API const char *tern_device_canonical(const char *device);

/* Returns the thread's default device in canonical form. */
TERN_API const char *tern_default_device(void);
/* Sets the thread's default device; NULL: the process's own again. Errors: TERN_ERR_DEVICE where
 * there is no such device; the default stays as it was. */
TERN_API tern_status tern_set_default_device(const char *device);

/* Sets the thread's current device of a kind, which "opencl" alone then means
 * (torch.cuda.set_device). */
TERN_API tern_status tern_set_device(const char *device);
/* Returns the current device of a kind in canonical form; NULL after an error. */
TERN_API const char *tern_current_device(const char *kind);

/* Returns the i-th device that this process has opened, in canonical form; NULL behind the last. */
TERN_API const char *tern_opened_device_at(int i);

/* Waits until everything launched on the device is done, and reports what went wrong there. */
TERN_API tern_status tern_synchronize(const char *device);

/* Fills *stats with the memory of the device and the counts of its commands. */
TERN_API tern_status tern_memory_get_stats(const char *device, tern_memory_stats *stats);
/* Makes the peaks equal to the present values. */
TERN_API tern_status tern_reset_peak_memory_stats(const char *device);
/* Gives the blocks of memory that no tensor uses back to the driver. */
TERN_API tern_status tern_empty_cache(const char *device);
/* Sets the most memory, in bytes, that tern takes from the device's driver for tensors of this
 * process; 0: as much as there is. A request beyond the limit fails with TERN_ERR_MEMORY after the
 * cache was emptied, as one that the driver refuses. Memory that is reserved already stays. */
TERN_API tern_status tern_set_memory_limit(const char *device, uint64_t bytes);
/* Sets the same limit as a fraction of the device's memory (tern_device_info.memory_total), from 0
 * to 1; 1: no limit. Errors: TERN_ERR_ARGUMENT for any other fraction. */
TERN_API tern_status tern_set_per_process_memory_fraction(double fraction, const char *device);
/* Returns the limit as a fraction of the device's memory; 1 where there is none; NaN after an
 * error. */
TERN_API double tern_get_per_process_memory_fraction(const char *device);

/* Sets how many threads the cpu device may use; at first it uses all cores, or OMP_NUM_THREADS. */
TERN_API tern_status tern_set_num_threads(int n);
/* Returns how many threads the cpu device may use. */
TERN_API int tern_get_num_threads(void);

/* ---- blocks ---------------------------------------------------------------------------------
 * TERN_DEVICE("opencl:0") { ... } and every macro of its kind (TERN_SCOPE, TERN_NO_GRAD, ...) hold
 * for one statement. Each way out of the statement undoes them: its end, `return`, `goto`, and
 * `continue`, which ends the block. `break` in a block does not compile (gcc; clang from 14 on),
 * because it looks as if it left the loop around the block. TERN_DEVICE_HERE("opencl:0"); is a
 * declaration that holds until the braces around it end, and in them `break` and `continue` are
 * those of the loop; each block has such a twin. At -O0 gcc warns of a function that ends in a
 * block with `return`. */

/* The block of TERN_DEVICE, inside of which the device is the default. A device that is refused
 * records the error and leaves the default as it was. */
typedef struct tern_device_block {
    int active;
    int saved;
} tern_device_block;
/* Opens the block of TERN_DEVICE, for other languages. */
TERN_API tern_device_block tern_device_block_enter(const char *device);
/* Closes the block, and restores what was set before it. */
TERN_API void tern_device_block_leave(tern_device_block *block);

#define TERN_BLOCK_JOIN_(prefix, line) prefix##line
#define TERN_BLOCK_NAME_(prefix, line) TERN_BLOCK_JOIN_(prefix, line)

/* The body runs in the inner loop, whose increment jumps to a loop that ends at once. Nothing but
 * `break` leads to the outer increment, so the compiler has a call to refuse. It sees, too, that
 * the body runs: what is set in it is set, and what returns in it returns. */
#define TERN_BLOCK_OF_(type, enter, leave, condition, name, done)                                  \
    switch (0)                                                                                     \
    done:                                                                                          \
        while (0)                                                                                  \
        default:                                                                                   \
            for (type name __attribute__((cleanup(leave), unused)) = enter; condition(name);       \
                 tern_break_in_block_())                                                           \
                for (;; __extension__({ goto done; }))
#define TERN_BLOCK_NUMBERED_(type, enter, leave, condition, n)                                     \
    TERN_BLOCK_OF_(type, enter, leave, condition, TERN_BLOCK_NAME_(tern_block_, n),                \
                   TERN_BLOCK_NAME_(tern_block_done_, n))
#define TERN_BLOCK_ALWAYS_(name)
#define TERN_BLOCK_ACTIVE_(name) name.active
#define TERN_BLOCK_(type, enter, leave)                                                            \
    TERN_BLOCK_NUMBERED_(type, enter, leave, TERN_BLOCK_ALWAYS_, __COUNTER__)
/* The same for a block that may be refused: the body runs if it is active. */
#define TERN_BLOCK_IF_(type, enter, leave)                                                         \
    TERN_BLOCK_NUMBERED_(type, enter, leave, TERN_BLOCK_ACTIVE_, __COUNTER__)
/* The declaration. */
#define TERN_HERE_(type, enter, leave)                                                             \
    type TERN_BLOCK_NAME_(tern_here_, __COUNTER__) __attribute__((cleanup(leave), unused)) = enter

#ifdef __GNUC__
#if defined(__has_attribute)
#if __has_attribute(error)
__attribute__((error("`break` in a block of tern's: use the macro's twin with _HERE")))
#endif
#endif
__attribute__((nothrow)) void
tern_break_in_block_(void); /* there is none */
#endif

#define TERN_DEVICE(device)                                                                        \
    TERN_BLOCK_(tern_device_block, tern_device_block_enter(device), tern_device_block_leave)
#define TERN_DEVICE_HERE(device)                                                                   \
    TERN_HERE_(tern_device_block, tern_device_block_enter(device), tern_device_block_leave)

TERN_END_DECLS
#endif
