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
/* Open libOpenCL; false with the reason where there is none. */
bool tern_cl_load(char *reason, size_t bytes);

/* Every call goes through CL(...), so that tests can make the n-th one fail: it then answers
 * CL_OUT_OF_RESOURCES without being made. CL_NEW is for those that return an object. */
bool tern_cl_gate(void);
/* Where the gate let a call through, the thread is inside the driver until this gives the call's
 * result. */
cl_int tern_cl_code(cl_int code);
void *tern_cl_object(void *object);
#define CL(CALL) (tern_cl_gate() ? CL_OUT_OF_RESOURCES : tern_cl_code(tern_cl.CALL))
#define CL_NEW(CODE, CALL)                                                                         \
    (tern_cl_gate() ? ((CODE) = CL_OUT_OF_RESOURCES, NULL) : tern_cl_object(tern_cl.CALL))
/* Of those that give something back, which never fail. */
#define CL_END(CALL) (tern_foreign_enter(), (void)tern_cl_code(tern_cl.CALL))
/* Test hook: the n-th call from now fails, later ones succeed again; 0 disarms. Returns how many
 * calls were made since the last arming. */
uint64_t tern_opencl_fail_at(uint64_t n);

bool tern_cl_has_extension(cl_device_id device, const char *name);
const char *tern_cl_code_name(cl_int code);
/* The status of a call's result; what is wrong is recorded. A dead device is remembered. */
tern_status tern_cl_check(tern_place *place, cl_int code, const char *call);
#define CL_TRY(PLACE, CALL) TERN_TRY(tern_cl_check(PLACE, CL(CALL), #CALL))

enum { TERN_CL_NOT_TRIED, TERN_CL_RIGHT, TERN_CL_WRONG };
/* ---- ways around what a driver gets wrong (doctor.c) ------------------------------------- */
typedef struct tern_cl_way_around {
    char kernel[96]; /* "softmax_f32" */
    size_t group;    /* at most so many in a work-group; 0: built without the driver's optimizer */
} tern_cl_way_around;
typedef struct tern_cl_doctor {
    tern_cl_way_around *ways;
    int n;
    unsigned char gemm[TERN_DTYPE_END]; /* 1: tern's own product, 2: the portable one */
} tern_cl_doctor;
/* The routes of the device's profile, where `tern doctor` wrote one. */
void tern_cl_doctor_read(tern_place *place);
/* What helps a kernel; NULL: it needs nothing. */
const tern_cl_way_around *tern_cl_doctor_way(tern_place *place, const char *kernel);

/* ---- a device ---------------------------------------------------------------------------- */
typedef struct tern_cl_kernel tern_cl_kernel;
/* In the cache on disk: not at all; when it is built; when tern_programs_save asks (the driver
 * keeps it as well). */
typedef enum tern_cl_keep { TERN_CL_KEEP_NOT, TERN_CL_KEEP, TERN_CL_KEEP_LATER } tern_cl_keep;

typedef struct tern_cl_state {
    cl_platform_id platform;
    cl_device_id device;
    const char *platform_version;
    bool cpu_form;      /* kernels in the host's expansion: a work-item takes a chunk */
    bool svm, svm_fine; /* buffers have an address; the host sees it without mapping */
    bool is_lazy;       /* PoCL: machine code is made when a kernel is first launched */
    bool compiles_late; /* the same in any form (first_launch.c) */
    bool atomics64;
    bool has_large_registers; /* Intel's compiler takes -cl-intel-256-GRF-per-thread */
    tern_cl_keep keep;        /* of programs, in the cache on disk */
    const char *options;      /* for building any program of the library's */
    char own_options[112];    /* for those that begin with declares.h */
    uint64_t local_memory;
    size_t group_limit;
    int matrix_way;             /* of cl_kernels/matrix.h, as the device says it (matrix_unit.c) */
    atomic_int matrix_tried[2]; /* TERN_CL_NOT_TRIED or what that has shown, for f16 and bf16 */

    cl_context context;
    cl_command_queue queue;
    cl_command_queue copies; /* of transfers; NULL before the first */
    bool takes_times;        /* the queue does: a profiler runs */
    bool shares_queue;       /* it is the application's, who may have given it work */
    /* clSetKernelArg is not safe on a kernel that two threads share. One lock around setting the
     * arguments and enqueueing costs 20 ns, keeps the queue's order the order of calls, and needs
     * no copies of kernels per thread; the driver's own queue has a lock there anyway. */
    tern_mutex lock;
    atomic_bool lost;
    atomic_ullong enqueued, finished; /* equal: the device has nothing to do */
    atomic_ullong flushed;            /* of those enqueued, how many were flushed to the driver */
    atomic_ullong live;               /* bytes in buffers */

    tern_mutex staged_lock;
    void *staged; /* copies of host bytes that queued writes still read */
    size_t staged_bytes;

    tern_cl_kernel *kernels;     /* resolved, newest first */
    struct tern_cl_later *later; /* programs that the cache does not have yet */
    void *gemm;                  /* gemm.c's own */
    struct tern_cl_tuning {
        struct tern_cl_route *routes;
        int n_routes;
    } tuning; /* from a file, see gemm.h */
    tern_cl_doctor doctor;
} tern_cl_state;

/* What an argument was set to last. A driver may take memory each time that one is set. */
typedef struct tern_cl_set {
    uint64_t value;
    size_t bytes; /* 0: not known */
} tern_cl_set;

enum { TERN_CL_SETS = 40, TERN_CL_FORMS = 8 };

/* A kernel of the library or of the user. */
struct tern_cl_kernel {
    tern_cl_kernel *next;
    cl_program program; /* owned */
    const char *family; /* what else is in the program; NULL: nothing */
    tern_dtype dtype;
    bool narrow; /* indices of 32 bits */
    int lanes;   /* of teams for short rows */
    cl_kernel kernel;
    cl_uint arguments;
    cl_ulong own_local; /* bytes of local memory in its text */
    size_t group;       /* work-group size of the library's kernels */
    char name[128];
    int n_forms; /* sizes of groups that it was launched with */
    uint64_t forms[TERN_CL_FORMS];
    tern_cl_set set[TERN_CL_SETS]; /* of the first arguments, those that are numbers */
};

static inline tern_cl_state *tern_cl_state_of(const tern_place *place)
{
    return tern_place_state(place);
}

/* ---- enumerate.c, mask.c, vendors.c ------------------------------------------------------ */
tern_status tern_cl_enumerate(tern_found **found, int *n, tern_text *notes);
/* matrix_device.c: the way of MATRIX_WAY that a device of this name speaks of; 0: none. */
int tern_cl_matrix_claimed(cl_device_id device, const char *name);
/* Which of n devices TERN_OPENCL_VISIBLE_DEVICES names: fills order, returns how many. */
int tern_cl_mask(const char *mask, int n, int *order);
/* The first element that ends such a list by mistake (-1 does so on purpose) or repeats another;
 * false where there is none. */
bool tern_cl_mask_error(const char *mask, int n, char *element, size_t bytes);
/* Note drivers that the loader passed over in silence. Returns whether a driver is installed,
 * even if it is broken. */
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
/* TERN_ERR_DEVICE_LOST once the device is dead. */
tern_status tern_cl_alive(tern_place *place);
/* Say that a command was enqueued. */
void tern_cl_note_enqueued(tern_cl_state *state);
/* Begin what is enqueued: a driver may put that off until a flush or a wait. */
void tern_cl_flush(tern_place *place);
/* Whether the device is known to have nothing to do. */
bool tern_cl_is_idle(tern_cl_state *state);
/* How many commands may not be done yet. */
uint64_t tern_cl_queued(tern_cl_state *state);
/* Wait for the queue, unless it is known to be empty. */
tern_status tern_cl_settle(tern_place *place);

/* ---- transfers.c, interop.c -------------------------------------------------------------- */
extern const tern_transfers tern_cl_transfers;
tern_status tern_cl_borrow(tern_place *place, void *memory, tern_buffer *buffer);
void tern_cl_unborrow(tern_place *place, tern_buffer *buffer);
void tern_cl_handles(tern_place *place, tern_device_handles *handles);
tern_status tern_cl_use_handles(tern_place *place, const tern_device_handles *handles);
/* tern_backend.chain. */
tern_status tern_cl_chain(tern_place *place, const tern_chain *chain, tern_dtype dtype,
                          void **compiled);

/* ---- programs.c, launch.c, gemm.c, user.c ------------------------------------------------ */
typedef struct tern_cl_source {
    const char *text, *options;
    const char *title; /* for messages: "gelu of elementwise.cl for float32" */
    tern_cl_keep keep;
} tern_cl_source;
/* Into the cache alone, if nobody has. */
void tern_cl_build_ahead(tern_place *place, const tern_cl_source *source);
void tern_cl_build_kernel_ahead(tern_place *place, const char *file, const char *name,
                                tern_dtype dtype, int lanes);
tern_status tern_cl_build(tern_place *place, const tern_cl_source *source, cl_program *program);
tern_status tern_cl_kernel_make(tern_place *place, cl_program program, const char *name,
                                tern_cl_kernel **kernel);
void tern_cl_kernel_free(tern_cl_kernel *kernel);
tern_status tern_cl_resolve(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                            void **kernel);
/* binaries.c: the program of an entry of the cache, or NULL; into the cache; into it when
 * tern_programs_save asks. */
struct tern_cache_key;
cl_program tern_cl_binary_load(tern_place *place, const tern_cl_source *source,
                               const struct tern_cache_key *key);
void tern_cl_binary_store(const struct tern_cache_key *key, cl_program program);
void tern_cl_keep_later(tern_place *place, const struct tern_cache_key *key, cl_program program);
void tern_cl_keep_programs(tern_place *place);
/* ---- the library is unloaded: each file gives back what is its own ---- */
void tern_cl_forget_programs(tern_place *place);
void tern_cl_gemm_release(tern_place *place);
void tern_cl_staged_free(tern_cl_state *state);
void tern_cl_info_release(const tern_device_info *info, tern_cl_state *state);
void tern_cl_prebuild(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                      int lanes);
void tern_cl_prebuild_gemm(tern_place *place, const tern_gemm *gemm);
tern_status tern_cl_resolve_index32(tern_place *place, const char *file, const char *name,
                                    tern_dtype dtype, int lanes, void **kernel);
/* Either, for a launch of the backend's own; slots [2]. */
tern_status tern_cl_resolve_for(tern_place *place, const char *file, const char *name,
                                tern_dtype dtype, const tern_arg *args, int n, void *slots[2],
                                void **kernel);
tern_status tern_cl_launch(tern_place *place, void *kernel, const tern_grid *grid,
                           const tern_arg *args, int n);
/* Set n arguments and enqueue, as one step of the queue. */
tern_status tern_cl_enqueue(tern_place *place, tern_cl_kernel *kernel, cl_uint dims,
                            const size_t *global, const size_t *local, const tern_arg *args, int n,
                            bool with_offsets);
/* first_launch.c: whether a launch has PoCL compile, which is noted, with the state's lock held;
 * until its event says that this is done. */
bool tern_cl_launch_is_first(tern_cl_state *state, tern_cl_kernel *kernel, cl_uint dims,
                             const size_t *global, const size_t *local);
void tern_cl_wait_for_code(tern_place *place, const tern_cl_kernel *kernel, cl_event event);
tern_status tern_cl_gemm(tern_place *place, const tern_gemm *gemm);
extern const tern_vendor tern_cl_vendor; /* of convolution.c */
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
