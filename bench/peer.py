#!/usr/bin/python3
"""peer.py -- PyTorch's side of the comparison: the same models, weights and data as steps.c.

  peer.py write MODEL STEM [KEY=VALUE...]          write weights, data and options for both sides
  peer.py serve MODEL STEM THREADS DEVICE WAY      DEVICE: cpu or cuda:N; WAY: eager, compile (with
                                                   torch.compile) or graphs (and with CUDA graphs)
"""
import resource
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

import models
from turn import turn

FIRST_STEPS = 5
HALVES = {"f16": torch.float16, "bf16": torch.bfloat16}


def write(name, stem, changes):
    options = models.options_of(name, changes)
    model, x, y = models.make(name, options)
    tensors = dict(model.named_parameters()) if model else {}
    tensors.update(x=x, y=y)
    with open(stem + ".raw", "wb") as raw, open(stem + ".txt", "w") as index:
        for key, value in options.items():
            print(key, "=", value, file=index)
        for key, t in tensors.items():
            kind = "i64" if t.dtype == torch.int64 else "f32"
            print(key, kind, raw.tell(), *t.shape, file=index)
            raw.write(t.detach().contiguous().numpy().tobytes())


def options_written(name, stem):
    with open(stem + ".txt") as index:
        pairs = [line.split(" = ") for line in index if " = " in line]
    return models.options_of(name, ["%s=%s" % (key, value.strip()) for key, value in pairs])


def scaler_of(half, on_gpu):
    """Of gradients, where f16 needs it; there is none for the cpu."""
    if half != torch.float16 or not on_gpu:
        return None
    return torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else \
        torch.cuda.amp.GradScaler()


def stepper(name, stem, device, way):
    """A function that does one step and returns its loss."""
    options = options_written(name, stem)
    model, x, y = models.make(name, options)
    x, y = x.to(device), y.to(device)
    if model is None:
        return lambda: torch.add(x, y)
    model, on_gpu = model.to(device), device != "cpu"
    if name == "resnet50":
        model, x = (t.to(memory_format=torch.channels_last) for t in (model, x))
    loss_of = F.mse_loss if name == "a" else F.cross_entropy
    optimizer = models.optimizer_of(name, options, model, on_gpu)
    half, clip = HALVES.get(options.get("dtype")), options.get("clip", 0)
    if half == torch.float16 and not on_gpu:
        half = None  # PyTorch 1's is for GPUs
    scaler = scaler_of(half, on_gpu)

    def forward():
        return loss_of(model(x), y)

    run = forward
    if way != "eager":
        run = torch.compile(forward, mode="reduce-overhead" if way == "graphs" else None)

    def mixed():
        if half is None:
            return run()
        with torch.autocast(device.split(":")[0], dtype=half):
            return run()

    def step():
        optimizer.zero_grad()
        loss = mixed()
        (scaler.scale(loss) if scaler else loss).backward()
        if clip:
            if scaler:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        return loss

    return step


def serve(name, stem, threads, device, way):
    torch.set_num_threads(int(threads))
    torch.set_grad_enabled(name != "add")
    on_gpu = device != "cpu"
    if on_gpu:
        torch.cuda.set_device(device)
    step = stepper(name, stem, device, way)
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    print("losses", *["%.7g" % step().item() for _ in range(FIRST_STEPS)], flush=True)
    for line in sys.stdin:
        if line.startswith("time "):
            print("%.9g" % turn(step, float(line[5:]), wait), flush=True)
        else:
            peak = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else \
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print("%.1f" % peak, flush=True)


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3], sys.argv[4:])
else:
    serve(*sys.argv[2:])
