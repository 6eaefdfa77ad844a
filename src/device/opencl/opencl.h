/* opencl.h -- what the files of the opencl backend share. */
#ifndef TERN_DEVICE_OPENCL_OPENCL_H
#define TERN_DEVICE_OPENCL_OPENCL_H
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "base/dtype.h"
#include "base/lock.h"
#include "base/ending.h"
#include "device/backend.h"
#include <CL/cl.h>
#include <stdatomic.h>

/* ---- the loader (api.c) ---------------------------------------------------------------------- */
typedef struct tern_cl_api {
#define X(NAME)        __typeof__(&cl##NAME) NAME;
#define OPTIONAL(NAME) X(NAME)
#include "device/opencl/opencl.def"
#undef OPTIONAL
#undef X
} tern_cl_api;
extern tern_cl_api tern_cl;
/* Opens libOpenCL. Returns false, with the reason, if that fails. */
bool tern_cl_load(char *reason, size_t bytes);

/* Every call goes through CL(...), so that tests can make the n-th call fail: the result is then
 * CL_OUT_OF_RESOURCES, without the call. CL_NEW is for calls that return an object. */
bool tern_cl_gate(void);
/* Once the gate lets a call through, the thread is inside the driver until tern_cl_code or
 * tern_cl_object takes the call's result. */
cl_int tern_cl_code(cl_int code);
void *tern_cl_object(void *object);
#define CL(CALL) (tern_cl_gate() ? CL_OUT_OF_RESOURCES : tern_cl_code(tern_cl.CALL))
#define CL_NEW(CODE, CALL)                                                                         \
    (tern_cl_gate() ? ((CODE) = CL_OUT_OF_RESOURCES, NULL) : tern_cl_object(tern_cl.CALL))
/* CL_END is for calls that release something and never fail. */
#define CL_END(CALL) (tern_foreign_enter(), (void)tern_cl_code(tern_cl.CALL))
/* Test hook: makes the n-th call from now fail; later calls succeed again; 0 disarms. Returns the
 * number of calls since the last arming. */
uint64_t tern_opencl_fail_at(uint64_t n);

bool tern_cl_has_extension(cl_device_id device, const char *name);
const char *tern_cl_code_name(cl_int code);
/* Returns the status for the result code of `call`, and records the error; a fatal one loses the
 * device. */
tern_status tern_cl_check(tern_place *place, cl_int code, const char *call);
#define CL_TRY(PLACE, CALL) TERN_TRY(tern_cl_check(PLACE, CL(CALL), #CALL))

enum { TERN_CL_NOT_TRIED, TERN_CL_RIGHT, TERN_CL_WRONG };
/* ---- ways around what a driver gets wrong (doctor.c) ------------------------------------- */
typedef struct tern_cl_way_around {
    char kernel[96]; /* "softmax_f32" */
    size_t group;    /* most work-items of a group; 0: build without the driver's optimizer */
} tern_cl_way_around;
typedef struct tern_cl_doctor {
    tern_cl_way_around *ways;
    int n;
    unsigned char gemm[TERN_DTYPE_END]; /* 1: tern's own product, 2: the portable one */
} tern_cl_doctor;
/* Reads the routes of the device's profile, if `tern doctor` wrote one. */
void tern_cl_doctor_read(tern_place *place);
/* Returns the way around for a kernel, or NULL if the kernel needs none. */
const tern_cl_way_around *tern_cl_doctor_way(tern_place *place, const char *kernel);

/* ---- a device ---------------------------------------------------------------------------- */
typedef struct tern_cl_kernel tern_cl_kernel;
/* When a program goes to the cache on disk: never; when it is built; when tern_programs_save asks
 * (the driver caches it as well). */
typedef enum tern_cl_keep { TERN_CL_KEEP_NOT, TERN_CL_KEEP, TERN_CL_KEEP_LATER } tern_cl_keep;

typedef struct tern_cl_state {
    cl_platform_id platform;
    cl_device_id device;
    const char *platform_version;
    bool cpu_form;      /* kernels in the form for CPUs: a work-item computes a chunk */
    bool svm, svm_fine; /* buffers have an address; the host reads them without mapping */
    bool is_lazy;       /* PoCL in the cpu form: code is made at the first launch */
    bool compiles_late; /* PoCL in any form (first_launch.c) */
    bool atomics64;
    bool has_large_registers; /* Intel's compiler takes -cl-intel-256-GRF-per-thread */
    tern_cl_keep keep;        /* when programs go to the cache on disk */
    const char *options;      /* build options for any program of the library */
    char own_options[112];    /* build options for programs that begin with declares.h */
    uint64_t local_memory;
    size_t group_limit;
    int matrix_way;             /* the way of matrix.h that the device reports (matrix_unit.c) */
    atomic_int matrix_tried[2]; /* trials of matrix_way for f16 and bf16: TERN_CL_NOT_TRIED, ... */

    cl_context context;
    cl_command_queue queue;
    cl_command_queue copies; /* queue of transfers.c; NULL before the first copy */
    bool takes_times;        /* queue has profiling enabled: a profiler runs */
    bool shares_queue;       /* queue is the application's, which may enqueue commands itself */
    /* clSetKernelArg is not safe on a kernel that two threads share. One lock around setting the
     * arguments and enqueueing costs 20 ns, keeps the queue's order the order of calls, and needs
     * no copies of kernels per thread; the driver's own queue has a lock there anyway. */
    tern_mutex lock;
    atomic_bool lost;
    atomic_ullong enqueued, finished; /* commands; equal if the device is idle */
    atomic_ullong flushed;            /* enqueued commands that were flushed to the driver */
    atomic_ullong live;               /* bytes of all buffers */

    tern_mutex staged_lock;
    void *staged; /* copies of host bytes that queued writes still read */
    size_t staged_bytes;

    tern_cl_kernel *kernels;     /* resolved kernels, newest first */
    struct tern_cl_later *later; /* programs that are to go to the cache later */
    void *gemm;                  /* a tern_cl_gemm_state */
    struct tern_cl_tuning {
        struct tern_cl_route *routes;
        int n_routes;
    } tuning; /* of a tuning file: see gemm.h */
    tern_cl_doctor doctor;
} tern_cl_state;

/* The last value of a kernel's argument. A driver may take memory each time an argument is set. */
typedef struct tern_cl_set {
    uint64_t value;
    size_t bytes; /* 0: the value is unknown */
} tern_cl_set;

enum { TERN_CL_SETS = 40, TERN_CL_FORMS = 8 };

/* A kernel of the library or of the user. */
struct tern_cl_kernel {
    tern_cl_kernel *next;
    cl_program program; /* owned by this struct */
    const char *family; /* program group or family in the program; NULL: one kernel */
    tern_dtype dtype;
    bool narrow; /* 32-bit indices */
    int lanes;   /* lanes of the teams, for short rows */
    cl_kernel kernel;
    cl_uint arguments;
    cl_ulong own_local; /* bytes of local memory that the kernel declares */
    size_t group;       /* work-group size of the library's kernels */
    char name[128];
    int n_forms; /* number of forms: group sizes that were launched */
    uint64_t forms[TERN_CL_FORMS];
    tern_cl_set set[TERN_CL_SETS]; /* the first arguments, as far as they are numbers */
};

static inline tern_cl_state *tern_cl_state_of(const tern_place *place)
{
    return tern_place_state(place);
}

/* ---- enumerate.c, mask.c, vendors.c ------------------------------------------------------ */
tern_status tern_cl_enumerate(tern_found **found, int *n, tern_text *notes);
/* matrix_device.c: returns the way of MATRIX_WAY that a device of this name reports; 0: none. */
int tern_cl_matrix_claimed(cl_device_id device, const char *name);
/* Fills order with the indices that TERN_OPENCL_VISIBLE_DEVICES names out of n; returns how
 * many. */
int tern_cl_mask(const char *mask, int n, int *order);
/* Copies the first element that ends the list by mistake (-1 ends it on purpose) or repeats
 * another. Returns false if there is none. */
bool tern_cl_mask_error(const char *mask, int n, char *element, size_t bytes);
/* Notes the drivers that the loader skipped silently. Returns whether a driver is installed, even
 * if it is broken. */
bool tern_cl_note_vendors(tern_text *notes);

/* ---- memory.c ---------------------------------------------------------------------------- */
tern_status tern_cl_alloc(tern_place *place, tern_buffer *buffer);
void tern_cl_free(tern_place *place, tern_buffer *buffer);
tern_status tern_cl_part(tern_place *place, const tern_buffer *whole, size_t at, tern_buffer *part);
void tern_cl_unpart(tern_place *place, tern_buffer *part);
tern_status tern_cl_write(tern_place *place, const tern_buffer *to, size_t at, const void *from,
                          size_t bytes);
tern_status tern_cl_read(tern_place *place, const tern_buffer *from, size_t at, void *to,
                         size_t bytes);
tern_status tern_cl_copy(tern_place *place, const tern_buffer *from, size_t from_at,
                         const tern_buffer *to, size_t to_at, size_t bytes);
tern_status tern_cl_zero(tern_place *place, const tern_buffer *to, size_t at, size_t bytes);
tern_status tern_cl_memory(tern_place *place, uint64_t *free_bytes, uint64_t *total);
/* Returns TERN_ERR_DEVICE_LOST if the device is lost. */
tern_status tern_cl_alive(tern_place *place);
/* Counts an enqueued command. */
void tern_cl_note_enqueued(tern_cl_state *state);
/* Flushes the queue: a driver may start no command before a flush or a wait. */
void tern_cl_flush(tern_place *place);
/* Returns whether the device is known to be idle. */
bool tern_cl_is_idle(tern_cl_state *state);
/* Returns the number of commands that may not have finished. */
uint64_t tern_cl_queued(tern_cl_state *state);
/* Waits for the queue, unless it is known to be empty. */
tern_status tern_cl_settle(tern_place *place);

/* ---- transfers.c, interop.c -------------------------------------------------------------- */
extern const tern_transfers tern_cl_transfers;
tern_status tern_cl_borrow(tern_place *place, void *memory, tern_buffer *buffer);
void tern_cl_unborrow(tern_place *place, tern_buffer *buffer);
void tern_cl_handles(tern_place *place, tern_device_handles *handles);
tern_status tern_cl_use_handles(tern_place *place, const tern_device_handles *handles);
/* tern_cl_chain is tern_backend.chain. */
tern_status tern_cl_chain(tern_place *place, const tern_chain *chain, tern_dtype dtype,
                          void **compiled);

/* ---- programs.c, launch.c, gemm.c, user.c ------------------------------------------------ */
typedef struct tern_cl_source {
    const char *text, *options;
    const char *title; /* for messages: "gelu of elementwise.cl for float32" */
    tern_cl_keep keep;
} tern_cl_source;
/* Builds the program into the cache on disk alone, unless another thread has begun to. */
void tern_cl_build_ahead(tern_place *place, const tern_cl_source *source);
void tern_cl_build_kernel_ahead(tern_place *place, const char *file, const char *name,
                                tern_dtype dtype, int lanes);
tern_status tern_cl_build(tern_place *place, const tern_cl_source *source, cl_program *program);
tern_status tern_cl_kernel_make(tern_place *place, cl_program program, const char *name,
                                tern_cl_kernel **kernel);
void tern_cl_kernel_free(tern_cl_kernel *kernel);
tern_status tern_cl_resolve(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                            void **kernel);
/* binaries.c: returns the program of a cache entry, or NULL; stores a program in the cache; keeps
 * it for tern_cl_keep_programs, which stores it when tern_programs_save asks. */
struct tern_cache_key;
cl_program tern_cl_binary_load(tern_place *place, const tern_cl_source *source,
                               const struct tern_cache_key *key);
void tern_cl_binary_store(const struct tern_cache_key *key, cl_program program);
void tern_cl_keep_later(tern_place *place, const struct tern_cache_key *key, cl_program program);
void tern_cl_keep_programs(tern_place *place);
/* ---- unloading the library: each file frees what is its own ---- */
void tern_cl_forget_programs(tern_place *place);
void tern_cl_gemm_release(tern_place *place);
void tern_cl_staged_free(tern_cl_state *state);
void tern_cl_info_release(const tern_device_info *info, tern_cl_state *state);
void tern_cl_prebuild(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                      int lanes);
void tern_cl_prebuild_gemm(tern_place *place, const tern_gemm *gemm);
tern_status tern_cl_resolve_index32(tern_place *place, const char *file, const char *name,
                                    tern_dtype dtype, int lanes, void **kernel);
/* Sets *kernel to the one with 32-bit or with 64-bit indices, as the arguments need, for launches
 * of the backend itself. slots[2] keep both. */
tern_status tern_cl_resolve_for(tern_place *place, const char *file, const char *name,
                                tern_dtype dtype, const tern_arg *args, int n, void *slots[2],
                                void **kernel);
tern_status tern_cl_launch(tern_place *place, void *kernel, const tern_grid *grid,
                           const tern_arg *args, int n);
/* Sets n arguments and enqueues the kernel, under the state's lock. */
tern_status tern_cl_enqueue(tern_place *place, tern_cl_kernel *kernel, cl_uint dims,
                            const size_t *global, const size_t *local, const tern_arg *args, int n,
                            bool with_offsets);
/* first_launch.c: returns whether PoCL compiles at this launch, and notes the launch; the caller
 * holds the state's lock. tern_cl_wait_for_code then waits until the event shows that the code is
 * compiled. */
bool tern_cl_launch_is_first(tern_cl_state *state, tern_cl_kernel *kernel, cl_uint dims,
                             const size_t *global, const size_t *local);
void tern_cl_wait_for_code(tern_place *place, const tern_cl_kernel *kernel, cl_event event);
tern_status tern_cl_gemm(tern_place *place, const tern_gemm *gemm);
extern const tern_vendor tern_cl_vendor; /* convolution.c */
tern_status tern_cl_attention_plan(tern_place *place, tern_attention *a, size_t *scratch,
                                   bool *taken);
tern_status tern_cl_attention(tern_place *place, const tern_attention *a, bool *taken);
bool tern_cl_attends_wide(tern_place *place, tern_dtype dtype);
tern_status tern_cl_user_compile(tern_place *place, const char *source, const char *name,
                                 void **kernel);
tern_status tern_cl_user_launch(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                                const tern_arg *args, int n);
void tern_cl_user_free(tern_place *place, void *kernel);

#endif
