#!/usr/bin/env python3
"""golden/models/adamw8bit: bitsandbytes' maps of 256 numbers, and steps of its AdamW8bit in pure PyTorch.

    adamw8bit.py

Needs torch and bitsandbytes (0.50)."""
import os
import torch
from safetensors.torch import save_file
from bitsandbytes.backends.triton.kernels_optim import optimizer_update_8bit_blockwise_pytorch as update
from bitsandbytes.functional import create_dynamic_map

N, STEPS, LR, DECAY = 4500, 4, 1e-2, 0.1
g = torch.Generator().manual_seed(3)
p = torch.randn(N, generator=g)
grad = torch.randn(N, generator=g) * 10 ** torch.linspace(-5, 0, N)
out = {"parameter": p.clone(), "grad": grad, "signed": create_dynamic_map(True), "unsigned": create_dynamic_map(False)}
blocks = (N + 255) // 256
states = torch.zeros(N, dtype=torch.uint8), torch.zeros(N, dtype=torch.uint8)
absmax = torch.zeros(blocks), torch.zeros(blocks)
for t in range(1, STEPS + 1):
    update(p, grad if t % 2 else -grad / 2, *states, 0.9, 0.999, 0, 0, 1e-8, t, LR, out["signed"], out["unsigned"], *absmax,
           DECAY, 1.0, False, optimizer_name="adam")
out |= {"after": p, "state1": states[0], "state2": states[1], "absmax1": absmax[0], "absmax2": absmax[1]}
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", "adamw8bit")
os.makedirs(folder, exist_ok=True)
save_file({k: v.contiguous() for k, v in out.items()}, os.path.join(folder, "reference.safetensors"))
