"""autocast_calls.py -- how autocast.py calls the operations: arguments, and PyTorch's function where it has another
name or other parameters."""
from unittest import mock

import torch
import torch.nn.functional as F
from torch._subclasses.fake_impls import register_op_impl

aten = torch.ops.aten

# Of required parameters.
DEFAULTS = {"Tensor": "f3,3", "Tensor[]": "[f3,3;f3,3]", "int": "1", "float": "0.5", "Scalar": "2", "bool": "False",
            "int[]": "(3,3)", "int[1]": "(1)", "int[2]": "(2,2)", "int[3]": "(2,2,2)"}

# Other arguments, by the name or by how the signature begins (the longest counts); "|" between calls.
CALLS = {
    "bitwise_and(Tensor input, T": "input=i3 other=i3=1", "bitwise_or(Tensor input, T": "input=i3 other=i3=1",
    "bitwise_xor(Tensor input, T": "input=i3 other=i3=1", "bitwise_and": "input=i3", "bitwise_or": "input=i3",
    "bitwise_and(Scalar": "other=i3", "bitwise_or(Scalar": "other=i3", "bitwise_xor(Scalar": "other=i3",
    "bitwise_xor": "input=i3", "bitwise_not": "input=i3", "bitwise_left_shift(Tensor input, T": "input=i3 other=i3=1",
    "bitwise_left_shift": "input=i3", "bitwise_right_shift(Tensor input, T": "input=i3 other=i3=1",
    "bitwise_right_shift": "input=i3", "clamp(Tensor input, f": "min=0.1 max=0.9",
    "clamp(Tensor input, T": "min=f3,3 max=f3,3|max=f3,3", "where": "condition=b3,3", "masked_fill": "mask=b3,3",
    "masked_fill(Tensor input, Tensor mask, T": "mask=b3,3 value=f", "prelu_kernel(Tensor input, T": "other=f3",
    "nn.functional.prelu": "weight=f3|weight=f1", "nn.functional.glu": "input=f3,4",
    "nn.functional.gelu": "|approximate='tanh'", "div(Tensor input, Tensor other, *": "rounding_mode='floor'",
    "div(Tensor input, Scalar other, *": "rounding_mode='trunc'", "logit": "eps=0.1", "polygamma": "|n=2",
    "mvlgamma": "p=2", "sum": "|dim=(0)", "mean": "|dim=(0)", "var": "|correction=1 dim=(0)",
    "std": "|correction=1 dim=(0)", "var(Tensor input, int[1]? dim=None, bool": "dim=(0) unbiased=True",
    "std(Tensor input, int[1]? dim=None, bool": "dim=(0) unbiased=True", "var_mean": "|correction=1 dim=(0)",
    "std_mean": "|correction=1 dim=(0)", "var_mean(Tensor input, int[1]? dim=None, bool": "dim=(0) unbiased=True",
    "std_mean(Tensor input, int[1]? dim=None, bool": "dim=(0) unbiased=True",
    "var_mean(Tensor input, bool": "unbiased=True", "std_mean(Tensor input, bool": "unbiased=True",
    "var(Tensor input, bool": "unbiased=True", "std(Tensor input, bool": "unbiased=True", "amax": "dim=(0)",
    "amin": "dim=(0)", "argmax(Tensor input, int?": "dim=0", "argmin(Tensor input, int?": "dim=0",
    "sum_to_size": "size=(1,3)|size=(3,3)", "aminmax": "|dim=0", "nansum": "|dim=(0)", "nanmean": "|dim=(0)",
    "count_nonzero": "dim=(0)", "norm": "|p=1 dim=(0)|p=3.0 dim=(0)",
    "norm(Tensor input, str": "p='fro'|p='fro' dim=(0,1)", "linalg.vector_norm": "|ord=1 dim=(0)", "dist": "|p=1",
    "cdist": "|p=1.0", "diff": "|prepend=f3,1", "sort(Tensor input, *": "stable=True",
    "argsort(Tensor input, *": "stable=True", "quantile": "q=f2", "nanquantile": "q=f2",
    "quantile(Tensor input, f": "q=0.5", "nanquantile(Tensor input, f": "q=0.5",
    "searchsorted": "sorted_sequence=f3 input=f3", "searchsorted(Tensor sorted_sequence, S": "sorted_sequence=f3",
    "bucketize": "boundaries=f3", "bincount": "input=i3",
    "histc": "bins=4 max=1", "view": "size=(9)", "reshape": "shape=(9)", "unflatten": "sizes=(3,1)",
    "permute": "dims=(1,0)", "transpose": "dim0=0", "unfold": "dimension=0 size=2", "expand": "size=(2,3,3)",
    "broadcast_to": "size=(2,3,3)", "narrow(Tensor input, int dim, T": "start=i",
    "as_strided": "size=(2,2) stride=(3,1)", "movedim": "source=(0) destination=(1)",
    "moveaxis": "source=(0) destination=(1)", "swapdims": "dim0=0", "swapaxes": "axis0=0",
    "split(Tensor input, int[]": "split_size=(1,2)", "split_with_sizes": "split_sizes=(1,2)",
    "tensor_split(Tensor input, int[]": "indices=(1)",
    "tensor_split(Tensor input, T": "tensor_indices_or_sections=i=2", "hsplit(Tensor input, int[]": "indices=(1)",
    "vsplit(Tensor input, int[]": "indices=(1)", "hsplit(Tensor input, int s": "input=f4,4 sections=2",
    "vsplit(Tensor input, int s": "input=f4,4 sections=2", "dsplit(Tensor input, int[]": "input=f2,2,4 indices=(1)",
    "dsplit": "input=f2,2,4 sections=2", "flip": "dims=(0)", "repeat": "repeats=(2,1)", "tile": "dims=(2,1)",
    "repeat_interleave": "|dim=0", "repeat_interleave(Tensor input, T": "repeats=i3=1 dim=0",
    "meshgrid": "tensors=[f3;f2] indexing='ij'", "tril_indices": "row=3 col=3", "triu_indices": "row=3 col=3",
    "nn.functional.pad": "pad=(1,1)|input=f2,3,4 pad=(1,1) mode='reflect'", "constant_pad_nd": "pad=(1,1)",
    "select_scatter": "src=f3 dim=0", "slice_scatter": "src=f3,3", "diagonal_scatter": "src=f3",
    "cartesian_prod": "tensors=[f3;f2]", "combinations": "input=f3", "index_select": "index=i2",
    "gather": "index=i2,3", "index": "index=i2", "index(Tensor input, Tensor[]": "indices=[i2;i2]",
    "take": "index=i2", "take_along_dim": "indices=i3,1 dim=1", "masked_select": "mask=b3,3",
    "masked_scatter": "mask=b3,3", "scatter": "index=i3,3", "scatter_add": "index=i3,3",
    "scatter_reduce": "index=i3,3 reduce='sum'", "index_add": "index=i3", "index_copy": "index=i3",
    "index_fill": "index=i2", "index_fill(Tensor input, int dim, Tensor index, T": "index=i2 value=f", "put": "index=i2 source=f2", "index_put": "indices=[i2;i2] values=f2",
    "nn.functional.one_hot": "input=i3 num_classes=4", "index_reduce": "index=i3 reduce='amax'",
    "bmm": "input=f2,3,3 mat2=f2,3,3", "nn.functional.linear": "|bias=f3|bias=f3,3",
    "matmul": "|input=f3 other=f3|input=f2,3,3",
    "nn.functional.scaled_dot_product_attention":
        "query=f1,2,3,4 key=f1,2,3,4 value=f1,2,3,4|query=f1,2,3,4 key=f1,2,3,4 value=f1,2,3,4 attn_mask=f3,3",
    "dot": "input=f3 tensor=f3", "vdot": "input=f3 other=f3", "outer": "input=f3 vec2=f3", "ger": "input=f3 vec2=f3",
    "mv": "vec=f3", "addmv": "input=f3 vec=f3", "addr": "vec1=f3 vec2=f3", "addbmm": "batch1=f2,3,3 batch2=f2,3,3",
    "baddbmm": "input=f2,3,3 batch1=f2,3,3 batch2=f2,3,3", "inner": "|input=f3 other=f3",
    "nn.functional.bilinear": "input1=f2,3 input2=f2,4 weight=f5,3,4|input1=f2,3 input2=f2,4 weight=f5,3,4 bias=f5",
    "tensordot": "dims_self=(1) dims_other=(0)", "tensordot(Tensor a, Tensor b, int dims": "dims=1",
    "einsum":
        "equation='ij,jk->ik'|equation='ij->i' operands=[f3,3]|equation='i,j->ij' operands=[f3;f3]"
        "|equation='ij,ij->'|equation='ij,jk,kl->il' operands=[f3,3;f3,3;f3,3]"
        "|equation='ijk,jk->i' operands=[f2,3,3;f3,3]",
    "chain_matmul": "matrices=[f3,3;f3,3;f3,3]", "linalg.multi_dot": "tensors=[f3,3;f3,3;f3,3]",
    "matrix_power": "n=2|n=3", "linalg.matrix_power": "n=2|n=3", "cholesky": "input=d3",
    "linalg.cholesky": "input=d3", "cholesky_solve": "input2=d3", "linalg.solve_triangular": "input=d3 upper=False",
    "triangular_solve": "A=d3", "linalg.solve": "A=d3", "linalg.inv": "A=d3", "inverse": "input=d3",
    "linalg.det": "A=d3", "det": "input=d3", "block_diag": "tensors=[f2,2;f3,3]", "vander": "input=f3",
    "cov": "|fweights=i3=1|aweights=f3",
    "nn.functional.conv1d": "input=f2,4,8 weight=f3,4,3|input=f2,4,8 weight=f3,4,3 bias=f3",
    "nn.functional.conv2d": "input=f2,4,5,5 weight=f3,4,3,3|input=f2,4,5,5 weight=f3,4,3,3 bias=f3",
    "nn.functional.conv3d": "input=f2,4,5,5,5 weight=f3,4,3,3,3|input=f2,4,5,5,5 weight=f3,4,3,3,3 bias=f3",
    "nn.functional.conv_transpose1d": "input=f2,3,8 weight=f3,4,3|input=f2,3,8 weight=f3,4,3 bias=f4",
    "nn.functional.conv_transpose2d": "input=f2,3,5,5 weight=f3,4,3,3|input=f2,3,5,5 weight=f3,4,3,3 bias=f4",
    "nn.functional.conv_transpose3d":
        "input=f2,3,5,5,5 weight=f3,4,3,3,3|input=f2,3,5,5,5 weight=f3,4,3,3,3 bias=f4",
    "nn.functional.max_pool1d": "input=f2,2,4 kernel_size=(2)", "nn.functional.max_pool2d": "input=f2,2,4,4",
    "nn.functional.max_pool3d": "input=f2,2,4,4,4", "nn.functional.avg_pool1d": "input=f2,2,4 kernel_size=(2)",
    "nn.functional.avg_pool2d": "input=f2,2,4,4", "nn.functional.avg_pool3d": "input=f2,2,4,4,4",
    "nn.functional.adaptive_max_pool1d": "input=f2,2,4 output_size=(2)",
    "nn.functional.adaptive_max_pool2d": "input=f2,2,4,4", "nn.functional.adaptive_max_pool3d": "input=f2,2,4,4,4",
    "nn.functional.adaptive_avg_pool1d": "input=f2,2,4 output_size=(2)",
    "nn.functional.adaptive_avg_pool2d": "input=f2,2,4,4", "nn.functional.adaptive_avg_pool3d": "input=f2,2,4,4,4",
    "nn.functional.max_unpool1d": "input=f1,1,2 indices=i1,1,2 kernel_size=(2)",
    "nn.functional.max_unpool2d": "input=f1,1,2,2 indices=i1,1,2,2",
    "nn.functional.max_unpool3d": "input=f1,1,2,2,2 indices=i1,1,2,2,2",
    "nn.functional.fractional_max_pool2d": "input=f1,1,4,4 output_size=(2,2) _random_samples=f1,1,2",
    "nn.functional.fractional_max_pool3d": "input=f1,1,4,4,4 output_size=(2,2,2) _random_samples=f1,1,3",
    "nn.functional.lp_pool1d": "input=f1,1,4 norm_type=2.0 kernel_size=2",
    "nn.functional.lp_pool2d": "input=f1,1,4,4 norm_type=2.0",
    "nn.functional.lp_pool3d": "input=f1,1,4,4,4 norm_type=2.0",
    "nn.functional.interpolate":
        "input=f1,1,4,4 size=(8,8)|input=f1,1,4,4 size=(8,8) mode='bilinear'"
        "|input=f1,1,4,4 size=(8,8) mode='bicubic'|input=f1,1,4 size=(8) mode='linear'"
        "|input=f1,1,4,4 size=(2,2) mode='area'|input=f1,1,4,4,4 size=(2,2,2) mode='trilinear'",
    "nn.functional.grid_sample": "input=f1,1,4,4 grid=f1,2,2,2 align_corners=False",
    "nn.functional.affine_grid": "theta=f1,2,3 size=(1,1,2,2) align_corners=False",
    "nn.functional.pixel_shuffle": "input=f1,4,2,2 upscale_factor=2",
    "nn.functional.pixel_unshuffle": "input=f1,1,4,4 downscale_factor=2",
    "nn.functional.channel_shuffle": "input=f1,4,2,2 groups=2",
    "nn.functional.layer_norm": "normalized_shape=(3)|normalized_shape=(3) weight=f3 bias=f3",
    "nn.functional.embedding": "input=i2 weight=f4,3", "nn.functional.embedding_bag": "input=i2,2 weight=f4,3",
    "all(Tensor input, int[]": "dim=(0,1)", "any(Tensor input, int[]": "dim=(0,1)", "squeeze(Tensor input, int[]": "dim=(0,1)",
    "nn.functional.linear_cross_entropy": "target=i3",
    "nn.functional.cross_entropy": "target=i3|target=f3,3|target=i3 weight=f3",
    "nn.functional.nll_loss": "target=i3|target=i3 weight=f3",
    "nn.functional.batch_norm":
        "running_mean=None running_var=None training=True|running_mean=f3 running_var=f3 weight=f3 bias=f3",
    "nn.functional.unfold": "input=f1,1,4,4", "nn.functional.fold": "input=f1,4,9 output_size=(4,4)",
    "nn.functional.group_norm": "input=f2,4,3 num_groups=2|input=f2,4,3 num_groups=2 weight=f4 bias=f4",
    "nn.functional.instance_norm": "input=f2,3,4|input=f2,3,4 weight=f3 bias=f3",
    "nn.functional.rms_norm": "normalized_shape=(3) eps=0.1|normalized_shape=(3) weight=f3 eps=0.1",
    "nn.functional.local_response_norm": "input=f2,4,3 size=2", "norm_except_dim": "v=f3,3", "_weight_norm": "g=f3,1",
    "nn.functional.dropout1d": "input=f2,3,4", "nn.functional.dropout2d": "input=f2,3,4,4",
    "nn.functional.dropout3d": "input=f2,3,2,2,2", "nn.functional.alpha_dropout": "training=True",
    "nn.functional.feature_alpha_dropout": "input=f2,3,4 training=True",
    "nn.functional.gaussian_nll_loss": "|full=True",
    "nn.functional.binary_cross_entropy_with_logits": "|weight=f3,3|pos_weight=f3",
    "nn.functional.ctc_loss": "log_probs=f4,2,3 targets=i2,2=1 input_lengths=i2=4 target_lengths=i2=2",
    "nn.functional.multilabel_soft_margin_loss": "|weight=f3",
    "nn.functional.margin_ranking_loss": "input1=f3 input2=f3 target=f3",
    "nn.functional.cosine_embedding_loss": "target=i3=1|target=f3",
    "nn.functional.multi_margin_loss": "target=i3|target=i3 weight=f3",
    "nn.functional.multilabel_margin_loss": "target=i3,3", "arange(Scalar start, Scalar end, *": "start=0",
    "arange(Scalar start, Scalar end, S": "start=0 step=1", "eye": "n=3", "linspace": "start=0.0 end=1.0 steps=3",
    "linspace(Tensor start, T": "start=f end=f steps=3", "linspace(Tensor start, f": "start=f end=1.0 steps=3",
    "linspace(float start, T": "start=0.0 end=f steps=3", "logspace(Tensor start, T": "start=f end=f steps=3",
    "logspace(Tensor start, f": "start=f end=1.0 steps=3", "logspace(float start, T": "start=0.0 end=f steps=3",
    "nuclear_norm(Tensor input, int": "dim=(0,1)", "linalg.norm(Tensor input, str": "ord='nuc'",
    "linalg.matrix_norm(Tensor input, str": "|ord='nuc'", "linalg.norm(Tensor input, Scalar": "|ord=2 dim=(0)|ord=1",
    "hann_window": "window_length=3", "hamming_window": "window_length=3", "blackman_window": "window_length=3",
    "bartlett_window": "window_length=3", "kaiser_window": "window_length=3", "fft.fftfreq": "n=3",
    "fft.rfftfreq": "n=3", "signal.windows.general_cosine": "M=3 a={0.5}",
    **{"signal.windows." + name: "M=3" for name in (
        "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_hamming", "hamming", "hann", "kaiser",
        "nuttall")},
    "nonzero_static": "size=3",
    "logspace": "start=0.0 end=1.0 steps=3", "multinomial": "num_samples=2", "randint_like": "low=0 high=5",
    "nn.functional.l1_loss": "|reduction='none'", "nn.functional.mse_loss": "|reduction='none'|reduction='sum'",
    "nn.functional.threshold": "threshold=0.5 value=0.1", "isin(Scalar": "element=1",
}


def without_any(function):
    """What looks for bad values first."""
    def call(**a):
        with mock.patch.object(torch, "any", lambda x: False):
            return function(**a)
    return call


@register_op_impl(aten.equal.default)
def _(mode, func, a, b):
    return True


def listed(function):
    """Of any number of tensors, where tern has one list."""
    return lambda **a: function(*next(iter(a.values())), **dict(list(a.items())[1:]))


def by_position(name):
    function = getattr(torch, name, None) or getattr(torch.Tensor, name)
    return lambda **a: function(*a.values())


# Beside other names: what needs elements, in a form that does not.
THEIRS = {name: by_position(name) for name in """
    pow clamp_min clamp_max heaviside bitwise_and bitwise_or bitwise_xor polygamma sum_to_size view view_as reshape_as
    expand expand_as contiguous unfold repeat new_zeros new_ones new_full atleast_1d atleast_2d atleast_3d split hsplit
    vsplit dsplit max min isin arange masked_fill put vander constant_pad_nd where searchsorted bucketize
    """.split()}
THEIRS.update({name: listed(getattr(torch, name)) for name in """
    broadcast_tensors meshgrid cartesian_prod block_diag chain_matmul""".split()})
THEIRS.update({name: getattr(F, name) for name in """
    relu6 silu gelu hardswish logsigmoid softsign mish hardsigmoid tanhshrink""".split()})
THEIRS.update({
    "gelu_tanh": lambda input: F.gelu(input, approximate="tanh"),
    "trunc_divide": lambda input, other: torch.div(input, other, rounding_mode="trunc"),
    "trigamma": lambda input: torch.polygamma(1, input),
    "prelu_kernel": lambda input, other: torch._prelu_kernel(
        input, other if isinstance(other, torch.Tensor) else torch.full_like(input, other)),
    "einsum": lambda equation, operands: torch.einsum(equation, *operands),
    "tensordot": lambda a, b, dims=0, dims_self=(), dims_other=(): torch.tensordot(
        a, b, dims or (list(dims_self), list(dims_other))),
    "index": lambda input, indices=None, index=None: aten.index.Tensor(input, indices or [index]),
    "slice": lambda input: aten.slice.Tensor(input, 0, 0, 2),
    "roll": lambda input, shifts: torch.roll(input, shifts, (0,)),
    "rsub": lambda input, other, alpha=1: torch.rsub(input, other, alpha=alpha),
    "narrow": lambda input, dim, start, length: torch.narrow(input, dim, 0, length),
    "tensor_split": lambda input, *, tensor_indices_or_sections=2, **a: torch.tensor_split(
        input, *(a.values() or (2,))),
    "nonzero": torch.argwhere, "unique_consecutive": torch.unique,
    "nn.functional.gaussian_nll_loss": without_any(F.gaussian_nll_loss),
})

# What asks the device, by PyTorch's lists and its kernels; what its kernels refuse.
KNOWN = {
    "nn.functional.grid_sample": "float32 half float32 float32", "nn.functional.unfold": "float32 half float32 half",
    "nn.functional.multi_margin_loss": "float32 float32 float32 float32",
    "nn.functional.ctc_loss": "float32 - float32 -", "bincount": "int64 int64 int64 int64",
    "nn.functional.affine_grid": "half half half half", "triangular_solve": "float32,float32 - - -",
    "linalg.svd": "float32,float32,float32 - float32,float32,float32 -", "linalg.svdvals": "float32 - float32 -",
    "_weight_norm": "float32 - float32 float32",
    **dict.fromkeys(("cholesky", "linalg.cholesky", "cholesky_solve", "linalg.solve", "linalg.solve_triangular", "det",
                     "linalg.det"), "float32 - - -"),
}
