/* autocast.cpp -- torch.autocast("tern"): PyTorch's lists of what is computed in which dtype. */
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast
{
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library)
{
    library.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m)
{
#define LOWER_PRECISION(...)  KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FLOAT32(...)          KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FLOAT32_BY_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PROMOTED(...)         KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
    AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
    AT_FORALL_FP32(FLOAT32)
    AT_FORALL_FP32_SET_OPT_DTYPE(FLOAT32_BY_DTYPE)
    AT_FORALL_PROMOTE(PROMOTED)
}
} // namespace at::autocast
