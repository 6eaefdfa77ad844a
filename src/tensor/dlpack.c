/* dlpack.c -- tensors exported to other libraries and imported from them (DLPack). */
#include <tern/dlpack.h>
#include "tensor/blob.h"
#include "tensor/from_ops.h"
#include "tensor/tensor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices and types --------------------------------------------------------------------- */

/* The first row of a kind is the type as which tern exports its memory. */
static const struct {
    const char *kind;
    DLDeviceType type;
} kinds[] = {{"cpu", kDLCPU},
             {"cuda", kDLCUDA},
             {"opencl", kDLOpenCL},
             {"cpu", kDLCUDAHost},
             {"cuda", kDLCUDAManaged}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct {
    uint8_t code, bits;
} types[TERN_DTYPE_END] = {
    [TERN_F32] = {kDLFloat, 32},
    [TERN_F64] = {kDLFloat, 64},
    [TERN_F16] = {kDLFloat, 16},
    [TERN_BF16] = {kDLBfloat, 16},
    [TERN_I32] = {kDLInt, 32},
    [TERN_I64] = {kDLInt, 64},
    [TERN_U8] = {kDLUInt, 8},
    [TERN_BOOL] = {kDLBool, 8},
    [TERN_I8] = {kDLInt, 8},
    [TERN_I16] = {kDLInt, 16},
    [TERN_U16] = {kDLUInt, 16},
    [TERN_U32] = {kDLUInt, 32},
    [TERN_U64] = {kDLUInt, 64},
    [TERN_F8_E4M3FN] = {kDLFloat8_e4m3fn, 8},
    [TERN_F8_E5M2] = {kDLFloat8_e5m2, 8},
};

static tern_status dtype_of(DLDataType type, const char *function, tern_dtype *dtype)
{
    static const char *const names[] = {"int",    "uint",    "float", "opaque handle",
                                        "bfloat", "complex", "bool"};
    for (int t = 1; t < TERN_DTYPE_END; t++)
        if (types[t].code == type.code && types[t].bits == type.bits && type.lanes == 1) {
            *dtype = (tern_dtype)t;
            return TERN_OK;
        }
    if (type.code < sizeof names / sizeof *names)
        return tern_fail(TERN_ERR_DTYPE, "%s: there is no dtype for %s of %d bits and %d lanes",
                         function, names[type.code], type.bits, type.lanes);
    return tern_fail(TERN_ERR_DTYPE, "%s: there is no dtype for DLPack's type %d of %d bits",
                     function, type.code, type.bits);
}

/* Sets text to the name of the device of the memory. */
static tern_status device_of(DLDevice device, const char *function, char text[24])
{
    for (int i = 0; i < KINDS; i++) {
        if (kinds[i].type != device.device_type)
            continue;
        snprintf(text, 24, "cpu");
        if (strcmp(kinds[i].kind, "cpu") == 0)
            return TERN_OK;
        snprintf(text, 24, "%s:%d", kinds[i].kind, (int)device.device_id);
        if (strcmp(kinds[i].kind, "cuda") != 0)
            return TERN_OK;
        const tern_device_handles own = {.index = (int)device.device_id};
        const char *name = tern_device_from_handles("cuda", &own);
        if (name)
            snprintf(text, 24, "%s", name);
        return name ? TERN_OK : tern_last_status();
    }
    return tern_fail(TERN_ERR_UNSUPPORTED, "%s: memory of DLPack's device type %d is not known",
                     function, (int)device.device_type);
}

/* ---- export -------------------------------------------------------------------------------- */

/* An exported tensor: the struct of either version, and the arrays that it points to. */
typedef struct exported {
    union {
        DLManagedTensorVersioned versioned;
        DLManagedTensor plain;
    } is;
    int64_t shape[TERN_MAX_DIMS], strides[TERN_MAX_DIMS];
    tern_tensor *x;
} exported;

static void end(exported *l)
{
    tern_release(l->x);
    tern_free(l);
}

static void end_versioned(DLManagedTensorVersioned *self)
{
    end(self->manager_ctx);
}

static void end_unversioned(DLManagedTensor *self)
{
    end(self->manager_ctx);
}

static void describe(exported *l, DLTensor *to)
{
    const tern_tensor *x = l->x;
    const tern_place *place = x->storage->place;
    tern_device_handles own = {.index = 0};
    tern_memory_handle memory = {.memory = NULL};
    tern_get_memory_handle(l->x, &memory);
    *to = (DLTensor){.ndim = x->ndim,
                     .dtype = {types[x->dtype].code, types[x->dtype].bits, 1},
                     .shape = l->shape,
                     .strides = l->strides};
    for (int i = KINDS - 1; i >= 0; i--)
        if (strcmp(kinds[i].kind, tern_place_kind(place)) == 0)
            to->device.device_type = kinds[i].type;
    tern_device_get_handles(tern_place_text(place), &own);
    if (to->device.device_type == kDLCUDA)
        to->device.device_id = own.index;
    else if (to->device.device_type != kDLCPU)
        to->device.device_id = (int32_t)strtol(strchr(tern_place_text(place), ':') + 1, NULL, 10);
    to->data = memory.memory;
    if (to->device.device_type == kDLOpenCL)
        to->byte_offset = memory.offset;
    else if (memory.memory)
        to->data = (char *)memory.memory + memory.offset;
    memcpy(l->shape, x->shape, sizeof *l->shape * (size_t)x->ndim);
    memcpy(l->strides, x->stride, sizeof *l->strides * (size_t)x->ndim);
}

static exported *export_tensor(tern_tensor *x, const tern_dlpack_options *options)
{
    static const char function[] = "tern_to_dlpack";
    if (!tern_given(x, function, "x"))
        return NULL;
    if (x->requires_grad)
        return tern_fail_null(TERN_ERR_STATE,
                              "%s: Can't export tensors that require gradient, use "
                              "tensor.detach()",
                              function);
    if (x->numel && tern_storage_there(x, function) != TERN_OK)
        return NULL;
    if (!(options && options->no_wait) && tern_place_sync(x->storage->place) != TERN_OK)
        return NULL;
    exported *l = tern_alloc(sizeof *l);
    if (l && !(l->x = tern_tensor_detached(x))) {
        tern_free(l);
        return NULL;
    }
    tern_hand_out(x);
    return l;
}

DLManagedTensorVersioned *tern_to_dlpack_with(tern_tensor *x, const tern_dlpack_options *options)
{
    TERN_NAMED_IN_ERRORS;
    exported *l = export_tensor(x, options);
    if (!l)
        return NULL;
    DLManagedTensorVersioned *m = &l->is.versioned;
    m->version.major = 1;
    m->version.minor = 1;
    m->flags = 0;
    m->manager_ctx = l;
    m->deleter = end_versioned;
    describe(l, &m->dl_tensor);
    return m;
}

DLManagedTensorVersioned *tern_to_dlpack(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_to_dlpack_with(x, NULL);
}

DLManagedTensor *tern_to_dlpack_unversioned(tern_tensor *x, const tern_dlpack_options *options)
{
    TERN_NAMED_IN_ERRORS;
    exported *l = export_tensor(x, options);
    if (!l)
        return NULL;
    DLManagedTensor *m = &l->is.plain;
    m->manager_ctx = l;
    m->deleter = end_unversioned;
    describe(l, &m->dl_tensor);
    return m;
}

/* ---- import -------------------------------------------------------------------------------- */

static void give_back_versioned(void *user)
{
    DLManagedTensorVersioned *m = user;
    if (m->deleter)
        m->deleter(m);
}

static void give_back_unversioned(void *user)
{
    DLManagedTensor *m = user;
    if (m->deleter)
        m->deleter(m);
}

/* Reads and checks the fields that can be read without access to the elements. */
static tern_status read_struct(const DLTensor *t, const char *function, tern_blob *blob)
{
    if (t->ndim < 0 || t->ndim > TERN_MAX_DIMS)
        return tern_fail(TERN_ERR_SHAPE, "%s: %d dims, 0 to %d are possible", function,
                         (int)t->ndim, TERN_MAX_DIMS);
    if (t->ndim > 0 && !t->shape)
        return tern_fail_argument_null(function, "shape");
    blob->shape = tern_shape_from(t->ndim, t->shape);
    int64_t numel = tern_shape_numel(&blob->shape, function);
    if (numel < 0)
        return tern_last_status();
    TERN_TRY(dtype_of(t->dtype, function, &blob->dtype));
    blob->strides = numel ? t->strides : NULL;
    size_t size = tern_dtype_size(blob->dtype);
    bool handle = t->device.device_type == kDLOpenCL;
    if (handle && t->byte_offset % size)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: byte_offset %llu is not a multiple of the element's %zu bytes",
                         function, (unsigned long long)t->byte_offset, size);
    if (handle && t->byte_offset / size > INT64_MAX)
        return tern_fail(TERN_ERR_SHAPE, "%s: byte_offset %llu is beyond all memory", function,
                         (unsigned long long)t->byte_offset);
    blob->offset = handle ? (int64_t)(t->byte_offset / size) : 0;
    blob->data = handle || !t->data ? t->data : (char *)t->data + t->byte_offset;
    return TERN_OK;
}

static tern_tensor *copied(tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x);
    tern_tensor *y = tern_tensor_new(&shape, x->dtype, x->storage->place, "tern_from_dlpack");
    if (y && tern_from_ops->copy(y, x) != TERN_OK) {
        tern_release(y);
        y = NULL;
    }
    tern_release(x);
    return y;
}

static tern_tensor *borrow(const DLTensor *t, uint64_t flags, tern_blob *blob,
                           const tern_dlpack_options *options)
{
    static const char function[] = "tern_from_dlpack";
    char device[24];
    bool copy = options && options->copy;
    tern_tensor *x = NULL;
    blob->function = function;
    tern_status status = TERN_OK;
    if ((flags & DLPACK_FLAG_BITMASK_READ_ONLY) && !copy)
        status = tern_fail(TERN_ERR_ARGUMENT,
                           "%s: the elements are read-only: ask for a copy (.copy)", function);
    if (status == TERN_OK)
        status = read_struct(t, function, blob);
    if (status == TERN_OK)
        status = device_of(t->device, function, device);
    if (status == TERN_OK) {
        blob->device = device;
        x = tern_blob_tensor(blob);
    }
    if (!x) { /* the deleter is called after an error too */
        tern_callback before = tern_callback_begin();
        blob->deleter(blob->user);
        tern_callback_end(&before, TERN_OK);
        return NULL;
    }
    return tern_scoped_from(copy ? copied(x) : x, function);
}

tern_tensor *tern_from_dlpack_with(DLManagedTensorVersioned *managed,
                                   const tern_dlpack_options *options)
{
    TERN_NAMED_IN_ERRORS;
    if (!managed) {
        tern_fail_argument_null(__func__, "managed");
        return NULL;
    }
    tern_blob blob = {.deleter = give_back_versioned, .user = managed};
    if (managed->version.major != 1) {
        const unsigned major = managed->version.major, minor = managed->version.minor;
        give_back_versioned(managed);
        return tern_fail_null(TERN_ERR_UNSUPPORTED,
                              "tern_from_dlpack: the tensor is of DLPack %u.%u, and tern reads 1.x",
                              major, minor);
    }
    return borrow(&managed->dl_tensor, managed->flags, &blob, options);
}

tern_tensor *tern_from_dlpack(DLManagedTensorVersioned *managed)
{
    TERN_NAMED_IN_ERRORS;
    return tern_from_dlpack_with(managed, NULL);
}

tern_tensor *tern_from_dlpack_unversioned(DLManagedTensor *managed,
                                          const tern_dlpack_options *options)
{
    TERN_NAMED_IN_ERRORS;
    if (!managed) {
        tern_fail_argument_null(__func__, "managed");
        return NULL;
    }
    tern_blob blob = {.deleter = give_back_unversioned, .user = managed};
    return borrow(&managed->dl_tensor, 0, &blob, options);
}
