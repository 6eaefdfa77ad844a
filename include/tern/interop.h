/* interop.h -- sharing memory, contexts and queues with the rest of a program.
 *
 * A tensor can use memory of the program (host memory, CUDA device memory, a cl_mem), and the
 * program can use the memory of a tensor. Both can share an OpenCL context and queue or a CUDA
 * stream; then all commands are in one order and nobody waits. With queues of their own each side
 * must wait before it uses what the other wrote: tern_synchronize(device) waits for tern's
 * commands. <tern/dlpack.h> exchanges tensors with other libraries by DLPack. */
#ifndef TERN_INTEROP_H
#define TERN_INTEROP_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- tensors on memory of the program -------------------------------------------------------- */
/* A function that is called once, on any thread, when no tensor uses the memory any more and the
 * device has finished with it. */
typedef void (*tern_deleter)(void *user);

typedef struct tern_from_blob_options {
    const char *device;     /* where the memory is; NULL: "cpu" */
    const int64_t *strides; /* one for each dim, in elements, not negative; NULL: row-major */
    int64_t offset;         /* elements from the beginning of the memory to the first one */
    tern_deleter deleter;   /* NULL: the memory outlives the tensor and its views */
    void *user;             /* the argument of deleter */
    uint64_t reserved[4];
} tern_from_blob_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_from_blob_options tern_from_blob_defaults(void);

/* Returns a tensor on memory that is not copied: host memory for "cpu", a device address for
 * "cuda:N", a cl_mem for "opencl:N" (of the context that tern uses there, see
 * tern_device_set_handles; tern retains it). The address must be a multiple of the size of an
 * element. Version counters do not see what others write. options may be NULL. The tensor belongs
 * to the innermost scope. After an error the memory remains the caller's and the deleter is not
 * called. Errors: TERN_ERR_DEVICE for memory of another device or context, TERN_ERR_SHAPE for
 * elements outside of a cl_mem and for negative strides, TERN_ERR_DTYPE. PyTorch:
 * torch.from_blob. */
TERN_API tern_tensor *tern_from_blob(void *data, tern_shape shape, tern_dtype dtype,
                                     const tern_from_blob_options *options);

/* The options of tern_to_dlpack_with and tern_from_dlpack_with (tern/dlpack.h). */
typedef struct tern_dlpack_options {
    bool copy;    /* for tern_from_dlpack_with: copy the elements and call the producer's deleter
                   * at once; they may then be read-only */
    bool no_wait; /* for tern_to_dlpack_with: do not wait; the consumer uses tern's own queue or
                   * stream */
    uint64_t reserved[4];
} tern_dlpack_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_dlpack_options tern_dlpack_defaults(void);

/* ---- the memory of a tensor ------------------------------------------------------------------ */
typedef struct tern_memory_handle {
    void *memory;  /* host address; CUDA device address; cl_mem */
    size_t offset; /* the offset of the first element in it */
    size_t bytes;  /* the size of the memory */
    uint64_t reserved[8];
} tern_memory_handle;
/* Writes the memory of x to *handle; memory is NULL for a tensor without elements. The memory lives
 * as long as x's storage, and tern_stride has the layout of the elements. Commands that tern has
 * launched on it may not be complete. */
TERN_API tern_status tern_get_memory_handle(tern_tensor *x, tern_memory_handle *handle);

/* ---- devices, contexts and queues ------------------------------------------------------------ */
/* The driver's objects of a device; NULL and -1 where a device has no such object. */
typedef struct tern_device_handles {
    void *platform; /* cl_platform_id */
    void *device;   /* cl_device_id */
    void *context;  /* cl_context; CUDA: the primary context, which needs no handle */
    void *queue;    /* cl_command_queue; cudaStream_t */
    int index;      /* CUDA's number of the device */
    uint64_t reserved[8];
} tern_device_handles;
/* Writes the objects that tern uses for device to *handles, and opens the device. The caller owns
 * no reference to them. */
TERN_API tern_status tern_device_get_handles(const char *device, tern_device_handles *handles);

/* Makes tern use objects of the application: for OpenCL a context and an in-order queue of it (tern
 * retains both), for CUDA a stream; other fields are not read, and a NULL context means the current
 * one. The context must be set before tern first uses the device, because tensors and programs
 * belong to it (TERN_ERR_STATE afterwards). A queue or stream can be set at any time; tern waits
 * for the commands that are running. The application keeps it alive until the process ends or
 * another one is set. Errors: TERN_ERR_DEVICE for a context or queue of another device,
 * TERN_ERR_ARGUMENT for an out-of-order queue and if nothing is set, TERN_ERR_UNSUPPORTED for
 * "cpu". PyTorch: torch.cuda.ExternalStream. */
TERN_API tern_status tern_device_set_handles(const char *device,
                                             const tern_device_handles *handles);

/* Returns tern's name of a driver's device, "opencl:1". Only the field device (cl_device_id) is
 * read, or index for "cuda". NULL after an error. The text lives as long as the process. */
TERN_API const char *tern_device_from_handles(const char *kind, const tern_device_handles *handles);

TERN_END_DECLS
#endif
