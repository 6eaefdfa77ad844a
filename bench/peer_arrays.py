#!/usr/bin/python3
"""peer_arrays.py -- PyTorch's side of bandwidth.c and gemm.c, with their requests and answers.

  peer_arrays.py bandwidth DEVICE
"""
import sys
import time

import torch
import torch.nn.functional as F

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


def turn(act, seconds, wait):
    """Seconds for one; as many of them as take half of `seconds` at least."""
    act()
    wait()
    n = 1
    while True:
        start = time.perf_counter()
        for _ in range(n):
            act()
        wait()
        spent = time.perf_counter() - start
        if spent >= 0.5 * seconds:
            return spent / n
        n = min(int(seconds / max(spent, 1e-9) * n) + 1, 32 * n)


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
        print("%.5g" % (1e-9 * size * passes / turn(lambda: act(x, y), float(seconds), wait)),
              flush=True)


torch.set_grad_enabled(False)
bandwidth(sys.argv[2], torch.cuda.synchronize if sys.argv[2] != "cpu" else lambda: None)
