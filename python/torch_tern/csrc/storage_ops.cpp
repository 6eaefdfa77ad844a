/* storage_ops.cpp -- new tensors, views, copies between devices, numbers read from the device. */
#include "torch_tern.h"
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

namespace torch_tern
{

/* ---- new tensors ----------------------------------------------------------------------------- */

/* The device and the dtype of what is allocated while it lives. */
struct Allocating {
    int before;
    at::IntArrayRef sizes; /* of a contiguous tensor */
    Allocating(int index, at::ScalarType type) : before(exchange_device(index))
    {
        allocated_dtype = dtype_of(type);
    }
    Allocating(int index, at::ScalarType type, at::IntArrayRef sizes_) : Allocating(index, type)
    {
        sizes = sizes_;
        allocated_sizes = &sizes;
    }
    ~Allocating()
    {
        exchange_device(before);
        allocated_dtype = TERN_DTYPE_DEFAULT;
        allocated_sizes = nullptr;
    }
    Allocating(const Allocating &) = delete;
    Allocating &operator=(const Allocating &) = delete;
};

static Tensor empty_memory_format(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                                  std::optional<at::Layout>, std::optional<at::Device> device,
                                  std::optional<bool>, std::optional<at::MemoryFormat> format)
{
    SERVED("empty.memory_format");
    const auto type = c10::dtype_or_default(dtype);
    Allocating allocating(index_of(device), type, size);
    Tensor x = at::detail::empty_generic(size, allocator(), c10::DispatchKeySet(dispatch_key), type,
                                         format);
    shape_block(x);
    return x;
}

static Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                            std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                            std::optional<at::Device> device, std::optional<bool>)
{
    SERVED("empty_strided");
    const auto type = c10::dtype_or_default(dtype);
    Allocating allocating(index_of(device), type);
    Tensor x = at::detail::empty_strided_generic(size, stride, allocator(),
                                                 c10::DispatchKeySet(dispatch_key), type);
    shape_block(x);
    return x;
}

static const Tensor &resize_(const Tensor &x, c10::SymIntArrayRef size,
                             std::optional<at::MemoryFormat> format)
{
    const auto wanted = C10_AS_INTARRAYREF_SLOW(size);
    if (x.sizes() != wanted) {
        const size_t elements = (size_t)(x.storage_offset() + c10::multiply_integers(wanted));
        Allocating allocating(x.device().index(), x.scalar_type());
        if (elements * x.element_size() > x.storage().nbytes())
            at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(x.storage(),
                                                                     elements * x.element_size());
        x.unsafeGetTensorImpl()->set_sizes_contiguous(wanted);
    }
    if (format && *format != at::MemoryFormat::Preserve)
        x.unsafeGetTensorImpl()->empty_tensor_restride(*format);
    return x;
}

/* ---- views are PyTorch's --------------------------------------------------------------------- */

static Tensor as_strided(const Tensor &x, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<c10::SymInt> offset)
{
    return at::native::as_strided_tensorimpl(
        x, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
        offset ? std::optional<int64_t>(offset->expect_int()) : std::nullopt);
}

static const Tensor &as_strided_(const Tensor &x, c10::SymIntArrayRef size,
                                 c10::SymIntArrayRef stride, std::optional<c10::SymInt> offset)
{
    at::native::setStrided(x, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                           offset ? offset->expect_int() : x.storage_offset());
    return x;
}

static Tensor view(const Tensor &x, c10::SymIntArrayRef size)
{
    return at::native::view(x, C10_AS_INTARRAYREF_SLOW(size));
}

static Tensor reshape_alias(const Tensor &x, c10::SymIntArrayRef size, c10::SymIntArrayRef stride)
{
    return at::native::_reshape_alias(x, C10_AS_INTARRAYREF_SLOW(size),
                                      C10_AS_INTARRAYREF_SLOW(stride));
}

static Tensor &set_storage(Tensor &x, at::Storage storage)
{
    return at::native::set_(x, storage);
}

static Tensor &set_storage_offset(Tensor &x, at::Storage storage, c10::SymInt offset,
                                  c10::SymIntArrayRef size, c10::SymIntArrayRef stride)
{
    return at::native::set_storage_cpu_(x, storage, offset.expect_int(),
                                        C10_AS_INTARRAYREF_SLOW(size),
                                        C10_AS_INTARRAYREF_SLOW(stride));
}

static Tensor &set_tensor(Tensor &x, const Tensor &source)
{
    return at::native::set_tensor_(x, source);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* All bytes of x's storage as a tensor. */
static Tensor storage_bytes(const Tensor &x)
{
    Tensor bytes = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(x.storage()),
                                                            c10::DispatchKeySet(dispatch_key),
                                                            c10::scalarTypeToTypeMeta(at::kByte));
    bytes.unsafeGetTensorImpl()->set_sizes_and_strides(
        at::IntArrayRef{(int64_t)x.storage().nbytes()}, at::IntArrayRef{1}, 0);
    return bytes;
}

static bool is_known(const Tensor &x)
{
    return dtype_of(x.scalar_type()) != TERN_DTYPE_DEFAULT && x.dim() <= TERN_MAX_DIMS &&
           !x.is_neg();
}

static const char not_known[] = "tern has no tensors of this dtype, or of so many dims";

static Tensor copy_from(const Tensor &source, const Tensor &target, bool non_blocking);

/* x on the host, with its storage, whatever its dtype. */
static Tensor on_host(const Tensor &x)
{
    if (x.device().is_cpu())
        return x;
    Tensor bytes = at::empty({(int64_t)x.storage().nbytes()}, at::kByte);
    copy_from(storage_bytes(x), bytes, false);
    Tensor host = at::empty({0}, x.options().device(at::kCPU));
    host.set_(bytes.storage(), x.storage_offset(), x.sizes(), x.strides());
    host._set_conj(x.is_conj());
    host._set_neg(x.is_neg());
    return host;
}

/* Copies what tern has no dtype for, complex numbers, by way of the host. */
static void copy_by_host(const Tensor &source, const Tensor &target)
{
    if (target.device().is_cpu()) {
        target.copy_(on_host(source));
        return;
    }
    if (on_device(source))
        note_fallback("aten::_copy_from", not_known);
    Tensor host = on_host(target);
    host.copy_(on_host(source));
    Tensor bytes = at::empty({0}, at::kByte);
    bytes.set_(host.storage(), 0, {(int64_t)host.storage().nbytes()}, {1});
    copy_from(bytes, storage_bytes(target), false);
}

static Tensor copy_from(const Tensor &source, const Tensor &target, bool)
{
    SERVED("_copy_from");
    if (!target.numel())
        return target;
    if (!is_known(source) || !is_known(target)) {
        copy_by_host(source, target);
        return target;
    }
    Frame frame;
    tern_tensor *to = lend(target);
    check(tern_copy_(to, lend(source)) != nullptr, "copy_");
    return target;
}

static Tensor copy_from_and_resize(const Tensor &source, const Tensor &target)
{
    if (target.sizes() != source.sizes())
        target.resize_(source.sizes());
    return copy_from(source, target, false);
}

static at::Scalar local_scalar_dense(const Tensor &x)
{
    SERVED("_local_scalar_dense");
    if (!is_known(x))
        return on_host(x).item();
    Frame frame;
    tern_tensor *lent = lend(x);
    if (at::isIntegralType(x.scalar_type(), true)) {
        const int64_t value = tern_item_int(lent);
        check(tern_last_status(), "item");
        return x.scalar_type() == at::kBool ? at::Scalar(value != 0) : at::Scalar(value);
    }
    const double value = tern_item(lent);
    check(tern_last_status(), "item");
    return value;
}

/* ---- filling --------------------------------------------------------------------------------- */

static Tensor &fill_scalar_(Tensor &x, const at::Scalar &value)
{
    SERVED("fill_.Scalar");
    if (!x.numel())
        return x;
    if (!is_known(x) || value.isComplex()) {
        note_fallback("aten::fill_.Scalar", not_known);
        x.copy_(at::full(x.sizes(), value, x.options().device(at::kCPU)));
        return x;
    }
    Frame frame;
    check(tern_fill_(lend(x), scalar(value)) != nullptr, "fill_");
    return x;
}

static Tensor &fill_tensor_(Tensor &x, const Tensor &value)
{
    TORCH_CHECK(value.dim() == 0,
                "fill_ only supports 0-dimension value tensor but got tensor "
                "with ",
                value.dim(), " dimensions.");
    if (value.device().is_cpu() || !is_known(x) || !is_known(value))
        return fill_scalar_(x, value.item());
    x.copy_(value.expand(x.sizes()));
    return x;
}

static Tensor &zero_(Tensor &x)
{
    SERVED("zero_");
    if (!is_known(x))
        return fill_scalar_(x, 0);
    if (!x.numel())
        return x;
    Frame frame;
    check(tern_zero_(lend(x)) != nullptr, "zero_");
    return x;
}

static Tensor &arange_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step,
                          Tensor &out)
{
    SERVED("arange.start_out");
    Frame frame;
    tern_tensor *result =
        tern_arange_scalar(scalar(start), scalar(end), scalar(step), dtype_of(out.scalar_type()),
                           device_name(out.device().index()));
    check(result != nullptr, "arange");
    if (out.numel() != tern_numel(result))
        out.resize_({tern_numel(result)});
    put(result, out, "arange");
    return out;
}

static Tensor &linspace_out(const at::Scalar &start, const at::Scalar &end, int64_t steps,
                            Tensor &out)
{
    SERVED("linspace.out");
    if (!is_known(out) || start.isComplex() || end.isComplex()) {
        note_fallback("aten::linspace.out", not_known);
        out.resize_({steps});
        out.copy_(at::linspace(start, end, steps, out.options().device(at::kCPU)));
        return out;
    }
    Frame frame;
    tern_tensor *result =
        tern_linspace(start.toDouble(), end.toDouble(), steps, dtype_of(out.scalar_type()),
                      device_name(out.device().index()));
    check(result != nullptr, "linspace");
    if (out.numel() != steps)
        out.resize_({steps});
    put(result, out, "linspace");
    return out;
}

static Tensor &eye_m_out(c10::SymInt rows, c10::SymInt columns, Tensor &out)
{
    SERVED("eye.m_out");
    out.resize_({rows.expect_int(), columns.expect_int()});
    if (!is_known(out)) {
        note_fallback("aten::eye.m_out", not_known);
        out.copy_(at::eye(out.size(0), out.size(1), out.options().device(at::kCPU)));
        return out;
    }
    Frame frame;
    if (out.numel())
        put(tern_eye(out.size(0), out.size(1), dtype_of(out.scalar_type()),
                     device_name(out.device().index())),
            out, "eye");
    return out;
}

static Tensor &eye_out(c10::SymInt rows, Tensor &out)
{
    return eye_m_out(rows, rows, out);
}

static void record_stream(Tensor &, c10::Stream)
{
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("empty.memory_format", &empty_memory_format);
    library.impl("empty_strided", &torch_tern::empty_strided);
    library.impl("resize_", &torch_tern::resize_);
    library.impl("as_strided", &torch_tern::as_strided);
    library.impl("as_strided_", &torch_tern::as_strided_);
    library.impl("view", &torch_tern::view);
    library.impl("_reshape_alias", &reshape_alias);
    library.impl("unfold", &at::native::unfold);
    library.impl("view_as_real", &at::native::view_as_real);
    library.impl("view_as_complex", &at::native::view_as_complex);
    library.impl("set_.source_Storage", &set_storage);
    library.impl("set_.source_Storage_storage_offset", &set_storage_offset);
    library.impl("set_.source_Tensor", &set_tensor);
    library.impl("_copy_from", &copy_from);
    library.impl("_copy_from_and_resize", &copy_from_and_resize);
    library.impl("_local_scalar_dense", &local_scalar_dense);
    library.impl("fill_.Scalar", &fill_scalar_);
    library.impl("fill_.Tensor", &fill_tensor_);
    library.impl("zero_", &torch_tern::zero_);
    library.impl("arange.start_out", &torch_tern::arange_out);
    library.impl("linspace.out", &torch_tern::linspace_out);
    library.impl("eye.out", &torch_tern::eye_out);
    library.impl("eye.m_out", &eye_m_out);
    library.impl("record_stream", &torch_tern::record_stream);
}

/* A copy looks at these bits itself. */
TORCH_LIBRARY_IMPL(aten, Conjugate, library)
{
    library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library)
{
    library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
