#!/usr/bin/python3
"""peer.py -- PyTorch's side of the comparison: the same models, weights and data as steps.c.

  peer.py write MODEL STEM     write weights and data for both sides
  peer.py serve MODEL STEM THREADS [DEVICE [compile]]    DEVICE: cpu or cuda:N; compile: torch.compile
"""
import resource
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

FIRST_STEPS = 5


class Attention(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        mask = torch.ones(context, context).triu(1).bool()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        n, length, width = x.shape
        parts = self.qkv(x).split(width, 2)
        each = width // self.heads
        q, k, v = [p.view(n, length, self.heads, each).transpose(1, 2) for p in parts]
        scores = (q @ k.transpose(-2, -1)) * each**-0.5
        scores = scores.masked_fill(self.mask[:length, :length], float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, width)
        return self.out(y)


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, context)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary=65, layers=4, width=128, heads=4, context=64):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads, context) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)


def mlp():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
                         nn.Linear(64, 10))


class CharLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(65, 128)
        self.lstm = nn.LSTM(128, 128, batch_first=True)
        self.head = nn.Linear(128, 65)

    def forward(self, ids):
        return self.head(self.lstm(self.embedding(ids))[0]).flatten(0, 1)


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


class Residual(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(o)
        self.shortcut = nn.Identity()
        if stride != 1 or i != o:
            self.shortcut = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False),
                                          nn.BatchNorm2d(o))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet():
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                         Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def make(name):
    """The model (None for add), x and y; the same each time."""
    torch.manual_seed(0)
    if name == "add":
        return None, torch.randn(1), torch.randn(1)
    if name == "a":
        return nn.Linear(10, 1), torch.randn(100, 10), torch.randn(100, 1)
    if name == "b":
        return mlp(), torch.randn(64, 784), torch.randint(0, 10, (64,))
    if name == "f":
        return CharLSTM(), torch.randint(0, 65, (32, 32)), torch.randint(0, 65, (32 * 32,))
    if name == "c":
        return lenet(), torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    if name == "d":
        return resnet(), torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    return GPT(), torch.randint(0, 65, (16, 64)), torch.randint(0, 65, (16 * 64,))


def write(name, stem):
    model, x, y = make(name)
    tensors = dict(model.named_parameters()) if model else {}
    tensors.update(x=x, y=y)
    with open(stem + ".raw", "wb") as raw, open(stem + ".txt", "w") as index:
        for key, t in tensors.items():
            kind = "i64" if t.dtype == torch.int64 else "f32"
            print(key, kind, raw.tell(), *t.shape, file=index)
            raw.write(t.detach().contiguous().numpy().tobytes())


def stepper(name, device, compiled):
    """A function that does one step and returns its loss."""
    model, x, y = make(name)
    x, y = x.to(device), y.to(device)
    model = model.to(device) if model else None
    if model is None:
        return lambda: torch.add(x, y)
    loss_of = F.mse_loss if name == "a" else F.cross_entropy
    if name == "e":
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    elif name == "f":
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    elif name == "c":
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    elif name == "d":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    run = torch.compile(model, mode="reduce-overhead") if compiled else model

    def step():
        optimizer.zero_grad()
        loss = loss_of(run(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def turn(step, seconds, wait):
    """Seconds for one step; as many of them as take half of `seconds` at least."""
    n = 1
    while True:
        start = time.perf_counter()
        for _ in range(n):
            step()
        wait()
        spent = time.perf_counter() - start
        if spent >= 0.5 * seconds:
            return spent / n
        n = min(int(seconds / max(spent, 1e-9) * n) + 1, 32 * n)


def serve(name, threads, device="cpu", compiled=False):
    torch.set_num_threads(threads)
    torch.set_grad_enabled(name != "add")
    step = stepper(name, device, compiled)
    on_gpu = device != "cpu"
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
    write(sys.argv[2], sys.argv[3])
else:
    serve(sys.argv[2], int(sys.argv[4]), *sys.argv[5:6], compiled="compile" in sys.argv[6:])
