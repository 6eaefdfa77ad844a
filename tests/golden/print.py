#!/usr/bin/env python3
"""print.py -- how PyTorch prints tensors: prints print.txt.

Each case is a line "== <name>", then the text."""
import math
import torch

inf, nan = math.inf, math.nan
f16, bf16, f64 = torch.float16, torch.bfloat16, torch.float64


def numbers(*shape):
    n = math.prod(shape)
    return (torch.arange(float(n)) - n // 3).view(*shape)


def grad(x):
    return x.requires_grad_()


cases = {
    "scalar": torch.tensor(3.0),
    "scalar_fraction": torch.tensor(-0.125),
    "scalar_int": torch.tensor(7),
    "scalar_bool": torch.tensor(True),
    "scalar_nan": torch.tensor(nan),
    "scalar_large": torch.tensor(1e9),
    "whole": torch.tensor([1.0, 2.0, -30.0]),
    "fixed": torch.tensor([1.5, -20.25, 300.0]),
    "zeros": torch.zeros(2, 2),
    "minus_zero": torch.tensor([-0.0, 0.0, 1.0]),
    "ratio_1000": torch.tensor([1.0, 1000.0]),
    "ratio_1001": torch.tensor([1.0, 1001.0]),
    "scientific": torch.tensor([1e-5, 1.0, 0.0, -2.5]),
    "scientific_wide": torch.tensor([1e-20, 1e20, -3e38]),
    "f64_exponents": torch.tensor([1e-300, 1e300], dtype=f64),
    "large_whole": torch.tensor([123456789.0, 123456790.0]),
    "at_1e8": torch.tensor([1e8, 5e7]),
    "least_1e-4": torch.tensor([1e-4, 2e-4]),
    "least_below_1e-4": torch.tensor([0.99e-4, 2e-4]),
    "not_finite": torch.tensor([nan, inf, -inf, 1.0]),
    "not_finite_fixed": torch.tensor([nan, inf, -inf, 0.5]),
    "only_not_finite": torch.tensor([nan, -inf, 0.0]),
    "not_finite_scientific": torch.tensor([nan, 1e-8, -inf]),
    "halves": torch.tensor([1.0, 0.1, 65504.0], dtype=f16),
    "bfloats": torch.tensor([1.0, 0.1, -2.0], dtype=bf16),
    "doubles": torch.tensor([[0.1, 0.2], [1.0 / 3, -7.0]], dtype=f64),
    "ints": torch.tensor([[1, -20], [300, 4]]),
    "int_ends": torch.tensor([-2**63, 2**63 - 1, 0]),
    "int32": torch.tensor([1, 2], dtype=torch.int32),
    "bytes": torch.tensor([0, 255], dtype=torch.uint8),
    "bools": torch.tensor([[True, False], [False, False]]),
    "empty": torch.zeros(0),
    "empty_2d": torch.zeros(0, 3),
    "empty_int": torch.zeros(2, 0, dtype=torch.int64),
    "empty_bool": torch.zeros(0, dtype=torch.bool),
    "empty_double": torch.zeros(1, 0, 2, dtype=f64),
    "lines": numbers(40),
    "lines_fixed": numbers(3, 25) / 8,
    "lines_int": torch.arange(100),
    "threshold": numbers(1000),
    "summary": numbers(1001),
    "summary_2d": numbers(40, 40),
    "summary_3d": numbers(10, 2, 60) / 4,
    "summary_rows": numbers(300, 4),
    "summary_columns": numbers(4, 300),
    "summary_7d": numbers(2, 7, 1, 1, 9, 1, 9),
    "summary_hides_extremes": torch.cat([torch.ones(600), torch.tensor([1e-9]), torch.ones(600)]),
    "summary_int": torch.arange(5000),
    "dims_3": numbers(2, 3, 2),
    "dims_4": numbers(2, 2, 1, 3),
    "transposed": numbers(3, 4).t(),
    "leaf": grad(torch.tensor([1.0, 2.0])),
    "mul": grad(torch.tensor([1.0, 2.0])) * 2,
    "as_strided": grad(torch.tensor([1.0, 2.0])).as_strided((1,), (1,), 1),
    "copy_slices": None,
    "leaf_double": grad(torch.tensor(2.0, dtype=f64)),
    "suffix_wraps": grad(torch.arange(19.0)) * 1,
    "suffix_fits": grad(torch.arange(13.0)) * 1,
    "suffix_wraps_twice": grad(torch.arange(18.0, dtype=f64) + 10) * 1,
    "suffix_after_lines": grad(torch.arange(40.0)),
}
y = grad(torch.zeros(2)) * 1
y[0] = 5
cases["copy_slices"] = y
print("# made by print.py with PyTorch", torch.__version__)
for name, x in cases.items():
    print("==", name)
    print(x)
