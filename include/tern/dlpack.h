/* dlpack.h -- tensors to and from other libraries, without a copy: DLPack 1.x, and the struct of
 * 0.x.
 *
 * The structs are those of DLPack's ABI, written anew; where a program includes DLPack's own
 * <dlpack/dlpack.h>, before or after, they are that header's. From Python they travel in capsules
 * "dltensor_versioned" and "dltensor". */
#ifndef TERN_DLPACK_H
#define TERN_DLPACK_H
#include <tern/interop.h>

TERN_BEGIN_DECLS

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1
#define TERN_DLPACK_VERSIONED_

/* Where memory is. */
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3, /* of the host, pinned */
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

/* Kinds of numbers; with bits and lanes they are a type. */
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

/* The first element is byte_offset behind data; strides count elements. */
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;

/* Of DLPack 0.x. The consumer calls the deleter once; it may be NULL. */
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
    uint32_t major; /* another one is another layout behind the deleter */
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

/* ---- lending --------------------------------------------------------------------------------- */
/* x's elements, lent: who gets them calls ->deleter(self) once, on any thread, and x's memory lives
 * until then. What was launched on it is done when this returns. On "opencl:N" data is the cl_mem
 * and device_id N. The consumer's writes are not seen by version counters. NULL after an error:
 * TERN_ERR_STATE for x that requires a gradient (detach it). */
TERN_API DLManagedTensorVersioned *tern_to_dlpack(tern_tensor *x);
/* Does the same with options; NULL: the defaults. */
TERN_API DLManagedTensorVersioned *tern_to_dlpack_with(tern_tensor *x,
                                                       const tern_dlpack_options *options);
/* The struct of 0.x, for consumers that know no version. */
TERN_API DLManagedTensor *tern_to_dlpack_unversioned(tern_tensor *x,
                                                     const tern_dlpack_options *options);

/* ---- borrowing ------------------------------------------------------------------------------- */
/* A tensor on the elements of managed, which must be done by now; owned by the innermost scope. It
 * takes managed over, also when it fails: the deleter is called once nobody uses the elements.
 * Errors: TERN_ERR_UNSUPPORTED for another major version than 1 (nothing else is read then) and
 * for kinds of memory that tern has no device for, TERN_ERR_DTYPE by name, TERN_ERR_SHAPE for more
 * than TERN_MAX_DIMS dims and for negative strides, TERN_ERR_ARGUMENT for what is read-only and
 * for elements that are not aligned to their size, TERN_ERR_DEVICE for a cl_mem of another context
 * than tern's. PyTorch: torch.from_dlpack. */
TERN_API tern_tensor *tern_from_dlpack(DLManagedTensorVersioned *managed);
/* Does the same with options; NULL: the defaults. */
TERN_API tern_tensor *tern_from_dlpack_with(DLManagedTensorVersioned *managed,
                                            const tern_dlpack_options *options);
/* Of the struct of 0.x. */
TERN_API tern_tensor *tern_from_dlpack_unversioned(DLManagedTensor *managed,
                                                   const tern_dlpack_options *options);

TERN_END_DECLS
#endif
