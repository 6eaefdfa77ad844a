/* dlpack.h -- exchange of tensors with other libraries without a copy: DLPack 1.x, and the struct
 * of 0.x.
 *
 * The structs are those of DLPack's ABI. If a program includes DLPack's own <dlpack/dlpack.h>,
 * before or after this header, the structs of that header are used. Python passes them in capsules
 * named "dltensor_versioned" and "dltensor". */
#ifndef TERN_DLPACK_H
#define TERN_DLPACK_H
#include <tern/interop.h>

TERN_BEGIN_DECLS

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1
#define TERN_DLPACK_VERSIONED_

/* The kind of device that the memory belongs to. */
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3, /* pinned memory of the host */
    kDLOpenCL = 4,   /* data is a cl_mem */
    kDLVulkan = 7,
    kDLMetal = 8,
    kDLVPI = 9,
    kDLROCM = 10,
    kDLROCMHost = 11,
    kDLExtDev = 12,
    kDLCUDAManaged = 13,
    kDLOneAPI = 14,
    kDLWebGPU = 15,
    kDLHexagon = 16,
    kDLMAIA = 17
} DLDeviceType;

typedef struct {
    DLDeviceType device_type;
    int32_t device_id;
} DLDevice;

/* Kinds of numbers; a kind, bits and lanes together are a dtype. */
typedef enum {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2,
    kDLOpaqueHandle = 3,
    kDLBfloat = 4,
    kDLComplex = 5,
    kDLBool = 6,
    kDLFloat8_e3m4 = 7,
    kDLFloat8_e4m3 = 8,
    kDLFloat8_e4m3b11fnuz = 9,
    kDLFloat8_e4m3fn = 10,
    kDLFloat8_e4m3fnuz = 11,
    kDLFloat8_e5m2 = 12,
    kDLFloat8_e5m2fnuz = 13,
    kDLFloat8_e8m0fnu = 14,
    kDLFloat6_e2m3fn = 15,
    kDLFloat6_e3m2fn = 16,
    kDLFloat4_e2m1fn = 17
} DLDataTypeCode;

typedef struct {
    uint8_t code; /* a DLDataTypeCode */
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

/* The first element is at data + byte_offset; strides are in elements. */
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;

/* The struct of DLPack 0.x. The consumer calls the deleter once; it may be NULL. */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
#elif !defined(DLPACK_MAJOR_VERSION) /* DLPack's own header of 0.x came first */
#define TERN_DLPACK_VERSIONED_
#endif

#ifdef TERN_DLPACK_VERSIONED_
typedef struct {
    uint32_t major; /* with another major version the fields after the deleter may differ */
    uint32_t minor;
} DLPackVersion;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif

/* ---- exporting tensors ----------------------------------------------------------------------- */
/* Exports x without a copy. The consumer calls ->deleter(self) once, on any thread, and the memory
 * of x lives until then. When this function returns, the commands that were launched on x are
 * complete. On "opencl:N" data is the cl_mem and device_id is N. Version counters do not see what
 * the consumer writes. NULL after an error: TERN_ERR_STATE if x requires a gradient (detach it). */
TERN_API DLManagedTensorVersioned *tern_to_dlpack(tern_tensor *x);
/* Does the same with options; NULL: the defaults. */
TERN_API DLManagedTensorVersioned *tern_to_dlpack_with(tern_tensor *x,
                                                       const tern_dlpack_options *options);
/* Does the same with the struct of DLPack 0.x, for consumers that do not know versions. */
TERN_API DLManagedTensor *tern_to_dlpack_unversioned(tern_tensor *x,
                                                     const tern_dlpack_options *options);

/* ---- importing tensors ----------------------------------------------------------------------- */
/* Returns a tensor on the elements of managed, without a copy. Commands on them must be complete.
 * The tensor belongs to the innermost scope. The function takes managed over, even if it fails: it
 * calls the deleter once the elements are no longer used. Errors: TERN_ERR_UNSUPPORTED for a major
 * version other than 1 (and then nothing else is read) and for memory of a device that tern does
 * not support, TERN_ERR_DTYPE with the name of the dtype, TERN_ERR_SHAPE for more than
 * TERN_MAX_DIMS dims and for negative strides, TERN_ERR_ARGUMENT for read-only elements and for
 * elements that are not aligned to their size, TERN_ERR_DEVICE for a cl_mem of a context that is
 * not tern's. PyTorch: torch.from_dlpack. */
TERN_API tern_tensor *tern_from_dlpack(DLManagedTensorVersioned *managed);
/* Does the same with options; NULL: the defaults. */
TERN_API tern_tensor *tern_from_dlpack_with(DLManagedTensorVersioned *managed,
                                            const tern_dlpack_options *options);
/* Does the same with the struct of DLPack 0.x. */
TERN_API tern_tensor *tern_from_dlpack_unversioned(DLManagedTensor *managed,
                                                   const tern_dlpack_options *options);

TERN_END_DECLS
#endif
