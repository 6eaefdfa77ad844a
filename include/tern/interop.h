/* interop.h -- memory, contexts and queues shared with the rest of a program.
 *
 * A tensor can stand on memory of the program's (host memory, CUDA device memory, a cl_mem), the
 * program can use the memory under a tensor, and both can share OpenCL's context and queue or
 * CUDA's stream: then work is in one order and nobody waits. With queues of their own each side
 * waits for the other before it touches what the other wrote: tern_synchronize(device) for tern's
 * work. Exchange with other libraries by DLPack is <tern/dlpack.h>. */
#ifndef TERN_INTEROP_H
#define TERN_INTEROP_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- borrowing memory ------------------------------------------------------------------------ */
/* Called once, on any thread, when no tensor stands on the memory any more and the device is done
 * with it. */
typedef void (*tern_deleter)(void *user);

typedef struct tern_from_blob_options {
    const char *device;     /* where the memory is; NULL: "cpu" */
    const int64_t *strides; /* one a dim, in elements, not negative; NULL: row-major */
    int64_t offset;         /* elements from the beginning of the memory to the first one */
    tern_deleter deleter;   /* NULL: the memory outlives the tensor and its views */
    void *user;             /* what deleter gets */
    uint64_t reserved[4];
} tern_from_blob_options;
/* The defaults: no field is read otherwise than as it is written. */
TERN_API tern_from_blob_options tern_from_blob_defaults(void);

/* A tensor on memory that is not copied: host memory for "cpu", a device address for "cuda:N", a
 * cl_mem for "opencl:N" (of the context that tern uses there, see tern_device_set_handles; it is
 * retained). A multiple of the element's size as address. Writes by others are not seen by version
 * counters. options may be NULL. Owned by the innermost scope. After an error the memory is the
 * caller's and the deleter is not called. Errors: TERN_ERR_DEVICE for memory of another device or
 * context, TERN_ERR_SHAPE for elements that lie outside (a cl_mem) and for strides that are
 * negative, TERN_ERR_DTYPE. PyTorch: torch.from_blob. */
TERN_API tern_tensor *tern_from_blob(void *data, tern_shape shape, tern_dtype dtype,
                                     const tern_from_blob_options *options);

/* For tern_to_dlpack_with and tern_from_dlpack_with (tern/dlpack.h). */
typedef struct tern_dlpack_options {
    bool copy; /* from: the elements are copied and the lender's deleter is called at once; they may
                 be read-only then */
    bool no_wait; /* to: the consumer works in the order of tern's own queue or stream */
    uint64_t reserved[4];
} tern_dlpack_options;
/* The defaults: false. */
TERN_API tern_dlpack_options tern_dlpack_defaults(void);

/* ---- the memory under a tensor --------------------------------------------------------------- */
typedef struct tern_memory_handle {
    void *memory;  /* host address; CUDA device address; cl_mem */
    size_t offset; /* bytes from there to the first element */
    size_t bytes;  /* of the memory */
    uint64_t reserved[8];
} tern_memory_handle;
/* Fill *handle; memory is NULL of a tensor without elements. It lives as long as x's storage; x's
 * elements lie in it as tern_stride says. What tern launched on it may not be done yet. */
TERN_API tern_status tern_get_memory_handle(tern_tensor *x, tern_memory_handle *handle);

/* ---- devices, contexts and queues ------------------------------------------------------------ */
/* The driver's objects of a device; NULL and -1 where there is no such thing. */
typedef struct tern_device_handles {
    void *platform; /* cl_platform_id */
    void *device;   /* cl_device_id */
    void *context;  /* cl_context; CUDA: the primary context, which needs no handle */
    void *queue;    /* cl_command_queue; cudaStream_t */
    int index;      /* CUDA's number of the device */
    uint64_t reserved[8];
} tern_device_handles;
/* Those that tern uses; opens the device. The caller owns no reference to them. */
TERN_API tern_status tern_device_get_handles(const char *device, tern_device_handles *handles);

/* Use the application's own: a context and an in-order queue of it for OpenCL (both are retained),
 * a stream for CUDA; other fields are not read, a NULL context is the present one. The context can
 * be chosen before tern first uses the device only, as tensors and programs belong to it
 * (TERN_ERR_STATE later); a queue or a stream at any time: what is under way is waited for. The
 * application keeps it alive until the process ends or another one is set. Errors: TERN_ERR_DEVICE
 * where context or queue are another device's, TERN_ERR_ARGUMENT for a queue out of order and where
 * nothing is given, TERN_ERR_UNSUPPORTED for "cpu". PyTorch: torch.cuda.ExternalStream. */
TERN_API tern_status tern_device_set_handles(const char *device,
                                             const tern_device_handles *handles);

/* tern's name of a device of the driver's, "opencl:1": of handles the device (cl_device_id), or the
 * index for "cuda". NULL after an error. Lives as long as the process. */
TERN_API const char *tern_device_from_handles(const char *kind, const tern_device_handles *handles);

TERN_END_DECLS
#endif
