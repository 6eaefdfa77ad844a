/* memory.cpp -- tern's memory under PyTorch's storages; tensors lent from one to the other. */
#include "torch_tern.h"
#include <cstring>

namespace torch_tern
{

/* ---- errors ---------------------------------------------------------------------------------- */

void throw_error(const char *operation)
{
    const tern_status status = tern_last_status();
    const char *error = tern_last_error();
    const std::string text = error ? error : "failed";
    tern_clear_error();
    if (status == TERN_ERR_MEMORY)
        TORCH_CHECK_WITH(OutOfMemoryError, false, text);
    if (status == TERN_ERR_UNSUPPORTED ||
        (status == TERN_ERR_DTYPE && text.find("not implemented") != std::string::npos))
        TORCH_CHECK_NOT_IMPLEMENTED(false, operation, ": ", text);
    if (text.find("out of range") != std::string::npos ||
        text.find("out of bounds") != std::string::npos)
        TORCH_CHECK_INDEX(false, operation, ": ", text);
    TORCH_CHECK(false, operation, ": ", text);
}

/* ---- dtypes and numbers ---------------------------------------------------------------------- */

tern_dtype dtype_of(at::ScalarType type)
{
    switch (type) {
    case at::kFloat:
        return TERN_F32;
    case at::kDouble:
        return TERN_F64;
    case at::kHalf:
        return TERN_F16;
    case at::kBFloat16:
        return TERN_BF16;
    case at::kInt:
        return TERN_I32;
    case at::kLong:
        return TERN_I64;
    case at::kByte:
        return TERN_U8;
    case at::kBool:
        return TERN_BOOL;
    case at::kChar:
        return TERN_I8;
    case at::kShort:
        return TERN_I16;
    case at::kUInt16:
        return TERN_U16;
    case at::kUInt32:
        return TERN_U32;
    case at::kUInt64:
        return TERN_U64;
    case at::kFloat8_e4m3fn:
        return TERN_F8_E4M3FN;
    case at::kFloat8_e5m2:
        return TERN_F8_E5M2;
    default:
        return TERN_DTYPE_DEFAULT;
    }
}

at::ScalarType scalar_type_of(tern_dtype dtype)
{
    for (auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong,
                      at::kByte, at::kBool, at::kChar, at::kShort, at::kUInt16, at::kUInt32,
                      at::kUInt64, at::kFloat8_e4m3fn, at::kFloat8_e5m2})
        if (dtype_of(type) == dtype)
            return type;
    TORCH_CHECK_NOT_IMPLEMENTED(false, "tern: PyTorch has no ", tern_dtype_name(dtype));
}

tern_scalar scalar(const at::Scalar &number)
{
    if (number.isBoolean())
        return tern_scalar_bool(number.toBool());
    if (number.isIntegral(false))
        return tern_scalar_int(number.toLong());
    return tern_scalar_real(number.toDouble());
}

/* ---- storages -------------------------------------------------------------------------------- */

Block::~Block()
{
    tern_release(typed);
}

static void delete_block(void *block)
{
    delete static_cast<Block *>(block);
}

/* A storage has a number in place of an address, outside of what a processor can address, by which
 * PyTorch tells storages apart. */
static void *number_as_address(size_t bytes)
{
    static std::atomic<uint64_t> next{0};
    const uint64_t at = next.fetch_add((bytes + 511) & ~UINT64_C(511));
    return reinterpret_cast<void *>(UINT64_C(0x8000000000000000) |
                                    (at & UINT64_C(0x0fffffffffffffff)));
}

static std::atomic<bool> memory_was_made[most_devices];

bool had_memory(int device)
{
    return memory_was_made[device];
}

static c10::DataPtr data_ptr_of(Block *block)
{
    if (C10_UNLIKELY(!memory_was_made[block->device].load(std::memory_order_relaxed)))
        memory_was_made[block->device] = true;
    void *address = block->bytes ? number_as_address(block->bytes) : nullptr;
    return {address, block, &delete_block,
            c10::Device(device_type, (c10::DeviceIndex)block->device)};
}

thread_local tern_dtype allocated_dtype = TERN_DTYPE_DEFAULT;
thread_local const at::IntArrayRef *allocated_sizes = nullptr;

struct Allocator final : at::Allocator {
    c10::DataPtr allocate(size_t bytes) override
    {
        Frame frame;
        const tern_dtype wanted = allocated_dtype;
        auto block = std::make_unique<Block>();
        block->device = current_device();
        block->bytes = bytes;
        /* Of the dtype of the tensor that is about to stand on it, whose views are views of it. */
        block->dtype = wanted && bytes % tern_dtype_size(wanted) == 0 ? wanted : TERN_U8;
        const int64_t n = (int64_t)(bytes / tern_dtype_size(block->dtype));
        const bool is_shaped = allocated_sizes && allocated_sizes->size() <= TERN_MAX_DIMS &&
                               c10::multiply_integers(*allocated_sizes) == n;
        block->sizes = is_shaped ? *allocated_sizes : at::IntArrayRef(n);
        block->strides.resize(block->sizes.size());
        int64_t stride = 1;
        for (size_t i = block->sizes.size(); i-- > 0; stride *= block->sizes[i])
            block->strides[i] = stride;
        block->typed = tern_keep(tern_empty(shape(at::IntArrayRef(block->sizes)), block->dtype,
                                            device_name(block->device)));
        check(block->typed != nullptr, "empty");
        return data_ptr_of(block.release());
    }
    at::DeleterFnPtr raw_deleter() const override
    {
        return &delete_block;
    }
    void copy_data(void *, const void *, std::size_t) const override
    {
        TORCH_CHECK(false, "tern: a storage is copied by clone()");
    }
};

at::Allocator *allocator()
{
    static Allocator the_allocator;
    return &the_allocator;
}
REGISTER_ALLOCATOR(device_type, allocator())

void shape_block(const Tensor &x)
{
    Block *block = block_of(x);
    if (!block || !block->typed || x.dim() > TERN_MAX_DIMS || x.numel() == 0 ||
        (block->sizes == x.sizes() && block->strides == x.strides()) ||
        block->dtype != dtype_of(x.scalar_type()))
        return;
    Frame frame;
    tern_tensor *view = tern_as_strided(block->typed, shape(x.sizes()), shape(x.strides()), 0);
    check(view != nullptr, "empty");
    tern_release(block->typed);
    block->typed = tern_keep(view);
    block->sizes = x.sizes();
    block->strides = x.strides();
}

/* ---- lending --------------------------------------------------------------------------------- */

static tern_tensor *lend_host(const Tensor &x, tern_dtype dtype)
{
    tern_from_blob_options options = tern_from_blob_defaults();
    options.device = "cpu";
    options.strides = x.strides().data();
    return tern_from_blob(x.data_ptr(), shape(x.sizes()), dtype, &options);
}

/* The memory as elements of another dtype than that of what stands on it. */
static tern_tensor *lend_retyped(const Tensor &x, Block *block, tern_dtype dtype)
{
    tern_memory_handle handle{};
    check(tern_get_memory_handle(block->typed, &handle), "view");
    tern_from_blob_options options = tern_from_blob_defaults();
    options.device = device_name(block->device);
    options.offset = (int64_t)(handle.offset / tern_dtype_size(dtype)) + x.storage_offset();
    options.strides = x.strides().data();
    return tern_from_blob(handle.memory, shape(x.sizes()), dtype, &options);
}

void make_now(Block *block)
{
    std::call_once(block->made, [&] {
        if (!block->is_later.load(std::memory_order_acquire))
            return; /* was written over meanwhile */
        tern_tensor *typed = block->later();
        check(typed != nullptr, "statistics");
        typed = tern_reshape(typed, shape(at::IntArrayRef(block->sizes)));
        check(typed != nullptr, "statistics");
        block->typed = tern_keep(typed);
        block->later = nullptr;
        block->is_later.store(false, std::memory_order_release);
    });
}

tern_tensor *lend(const Tensor &x)
{
    const tern_dtype dtype = dtype_of(x.scalar_type());
    TORCH_CHECK_NOT_IMPLEMENTED(dtype != TERN_DTYPE_DEFAULT, "tern has no ", x.scalar_type());
    TORCH_CHECK_NOT_IMPLEMENTED(x.dim() <= TERN_MAX_DIMS, "tern has at most ", (int)TERN_MAX_DIMS,
                                " dims, not ", x.dim());
    tern_tensor *lent;
    if (!on_device(x)) {
        TORCH_CHECK(x.device().is_cpu(), "tern: a tensor on ", x.device(),
                    " among those of a tern device");
        TORCH_CHECK(!recording, "a copy from or to the host, or a value there, can't be recorded");
        lent = x.numel() ? lend_host(x, dtype) : tern_empty(shape(x.sizes()), dtype, "cpu");
        check(lent != nullptr, "lend");
        return lent;
    }
    Block *block = block_of(x);
    if (block && block->is_later.load(std::memory_order_acquire))
        make_now(block);
    if (C10_UNLIKELY(recording) && block && block->born != recording)
        block->stays = true;
    TORCH_CHECK(x.numel() == 0 || (block && block->bytes), "tern: a tensor of ", x.sizes(),
                " on memory that is not tern's, or that was given back");
    if (x.numel() == 0)
        lent = tern_empty(shape(x.sizes()), dtype, device_name(x.device().index()));
    else if (block->dtype != dtype)
        lent = lend_retyped(x, block, dtype);
    else if (x.storage_offset() == 0 && block->sizes == x.sizes() && block->strides == x.strides())
        return block->typed;
    else
        lent =
            tern_as_strided(block->typed, shape(x.sizes()), shape(x.strides()), x.storage_offset());
    check(lent != nullptr, "lend");
    return lent;
}

tern_tensor *lend(const OptionalTensor &x)
{
    return x && x->defined() ? lend(*x) : nullptr;
}

tern_tensor *lend_to(const Tensor &x, int device)
{
    tern_tensor *lent = lend(x);
    if (on_device(x) && x.device().index() == device)
        return lent;
    lent = tern_to(lent, device_name(device));
    check(lent != nullptr, "copy");
    return lent;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static std::unique_ptr<Block> block_for(tern_tensor *x, int device)
{
    auto block = std::make_unique<Block>();
    block->typed = tern_keep(x);
    block->dtype = tern_dtype_of(x);
    block->device = device;
    int64_t extent = tern_numel(x) ? 1 : 0;
    for (int i = 0; i < tern_dim(x); i++) {
        block->sizes.push_back(tern_size(x, i));
        block->strides.push_back(tern_stride(x, i));
        extent += extent ? (tern_size(x, i) - 1) * tern_stride(x, i) : 0;
    }
    block->bytes = (size_t)extent * tern_dtype_size(block->dtype);
    return block;
}

Tensor take(tern_tensor *result, int device, const char *operation)
{
    check(result != nullptr, operation);
    auto block = block_for(result, device);
    const at::DimVector sizes = block->sizes, strides = block->strides;
    const size_t bytes = block->bytes;
    const auto type = c10::scalarTypeToTypeMeta(scalar_type_of(block->dtype));
    auto storage =
        c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                              data_ptr_of(block.release()), allocator(), true);
    Tensor x = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                        c10::DispatchKeySet(dispatch_key), type);
    if (sizes.size() != 1 || sizes[0] != 0)
        x.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    return x;
}

Tensor take_later(std::function<tern_tensor *()> later, at::IntArrayRef sizes, at::ScalarType type,
                  int device)
{
    auto block = std::make_unique<Block>();
    block->later = std::move(later);
    block->is_later = true;
    block->dtype = dtype_of(type);
    block->device = device;
    const int64_t n = c10::multiply_integers(sizes);
    block->bytes = (size_t)n * tern_dtype_size(block->dtype);
    block->sizes = sizes;
    const size_t bytes = block->bytes;
    auto storage = c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), bytes, data_ptr_of(block.get()), allocator(), true);
    Tensor x = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(dispatch_key), c10::scalarTypeToTypeMeta(type));
    x.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
    block->strides = x.strides();
    block.release();
    return x;
}

bool is_one_of(tern_tensor *x, at::ArrayRef<tern_value> values)
{
    tern_memory_handle own{}, other{};
    if (tern_get_memory_handle(x, &own) != TERN_OK || !own.memory)
        return false;
    for (const tern_value &value : values)
        if (value.kind == TERN_VALUE_TENSOR && value.as.tensor &&
            (value.as.tensor == x || (tern_get_memory_handle(value.as.tensor, &other) == TERN_OK &&
                                      own.memory == other.memory && own.offset == other.offset)))
            return true;
    return false;
}

void adopt(tern_tensor *typed, const Tensor &x)
{
    auto block = block_for(typed, x.device().index());
    Block *old = block_of(x); /* the number that stands for an address stays */
    std::swap(block->typed, old->typed);
    std::swap(block->sizes, old->sizes);
    std::swap(block->strides, old->strides);
    old->dtype = block->dtype;
    old->later = nullptr; /* what nobody has read is written over */
    old->is_later.store(false, std::memory_order_release);
    old->recorded.reset();
}

void put(tern_tensor *result, const Tensor &x, const char *operation)
{
    check(result != nullptr, operation);
    if (x.numel() == 0)
        return;
    const Block *old = block_of(x);
    const bool is_whole = old && old->born == recording && !old->stays &&
                          tern_dtype_of(result) == dtype_of(x.scalar_type()) &&
                          x.storage_offset() == 0 && x.is_contiguous() &&
                          tern_is_contiguous(result) && tern_numel(result) == x.numel() &&
                          (size_t)x.numel() * x.element_size() == x.storage().nbytes();
    if (!is_whole) {
        check(tern_copy_(lend(x), result) != nullptr, operation);
        return;
    }
    tern_tensor *typed = tern_view(result, shape(x.sizes()));
    check(typed != nullptr, operation);
    adopt(typed, x);
}

} // namespace torch_tern
