#!/usr/bin/python3
"""peer_arrays.py -- PyTorch's side of bandwidth.c and gemm.c, with their requests and answers.

  peer_arrays.py bandwidth DEVICE
  peer_arrays.py products DEVICE DTYPE
"""
import sys

import torch
import torch.nn.functional as F

from turn import turn

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
PASSES = {
    "copy": (2, lambda x, y: y.copy_(x)),
    "neg": (2, lambda x, y: torch.neg(x)),
    "add": (3, torch.add),
    "gelu": (2, lambda x, y: F.gelu(x)),
    "cast": (1, lambda x, y: x.to(torch.bfloat16 if x.dtype == torch.float32 else torch.float32)),
    "softmax": (2, lambda x, y: x.softmax(-1)),
    "layer_norm": (2, lambda x, y: F.layer_norm(x, x.shape[1:])),
    "sum": (1, lambda x, y: x.sum(1)),
    "transpose": (2, lambda x, y: x.t().contiguous()),
}


def bandwidth(device, wait):
    for line in sys.stdin:
        name, dtype, megabytes, columns, seconds = line.split()
        passes, act = PASSES[name]
        kind, size = TYPES[dtype], int(megabytes) << 20
        if name == "cast":
            passes = 1.5 if dtype == "f32" else 3
        count = size // torch.tensor([], dtype=kind).element_size()
        x, y = [torch.rand(count // int(columns), int(columns), device=device).to(kind)
                for _ in range(2)]
        act(x, y)
        wait()
        print("%.5g" % (1e-9 * size * passes / turn(lambda: act(x, y), float(seconds), wait)),
              flush=True)


def numbers(n, seed):
    """gemm.h's: the generator's first numbers, twice as many each time around."""
    step, add = 1664525, 1013904223
    x = torch.tensor([(seed * step + add) % 2**32])
    while len(x) < n:  # step and add: of len(x) numbers at once
        x = torch.cat([x, (x * step + add) & 0xFFFFFFFF])
        step, add = step * step % 2**32, (add * step + add) % 2**32
    return (x[:n] >> 8).float() * 2.0**-23 - 1


def matrix(rows, columns, transposed, seed, kind, device):
    shape = (columns, rows) if transposed else (rows, columns)
    x = numbers(rows * columns, seed).view(shape).to(device).to(kind)
    return x.t() if transposed else x


def products(device, wait, dtype):
    """Says none where this PyTorch has no such product."""
    kind, held = TYPES[dtype], None
    for line in sys.stdin:
        m, n, k, ta, tb, seconds = [float(w) if "." in w else int(w) for w in line.split()]
        if held != (m, n, k, ta, tb):  # the same request comes in every round
            a, b = matrix(m, k, ta, 1, kind, device), matrix(k, n, tb, 2, kind, device)
            held = m, n, k, ta, tb
        try:
            c = torch.matmul(a, b)
        except RuntimeError:
            print("none", flush=True)
            continue

        def eight():
            for _ in range(8):
                torch.matmul(a, b)

        eight()
        wait()
        spent = turn(eight, seconds, wait) / 8
        print("%.4g %.9g %.9g" % (2e-9 * m * n * k / spent, c.double().sum().item(),
                                  c.double().abs().sum().item()), flush=True)


torch.set_grad_enabled(False)
device = sys.argv[2]
wait = lambda: None
if device != "cpu":
    torch.cuda.set_device(device)
    wait = torch.cuda.synchronize
if sys.argv[1] == "bandwidth":
    bandwidth(device, wait)
else:
    products(device, wait, sys.argv[3])
