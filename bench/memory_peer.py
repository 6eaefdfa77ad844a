#!/usr/bin/env python3
"""memory_peer.py -- what PyTorch's eager step would hold on a CUDA device, computed without one.

  memory_peer.py [gpt2|resnet50] [BATCH] [--table] [--relu-inplace]

The step of bench/models.py runs on fake tensors (shapes and types, no numbers), with CUDA's autocast
written out: products and convolutions in the half type, casts of weights kept, layer norm and cross
entropy in float32. Each storage is counted from the call that made it until nobody has it, in blocks
of 512 bytes, as torch.cuda.max_memory_allocated counts. What a kernel takes for itself (workspaces of
cuDNN and cuBLAS) is not in it."""
import argparse
import collections
import weakref

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.live, self.now, self.peak, self.at_peak, self.phase, self.peaks = {}, 0, 0, {}, "", {}

    def made(self, t, name):
        s = t.untyped_storage()
        key = s._cdata
        if key in self.live:
            return
        n = (s.nbytes() + 511) // 512 * 512
        self.live[key] = (n, name, str(t.dtype)[6:], tuple(t.shape), self.phase)
        self.now += n
        weakref.finalize(s, self.gone, key)
        self.peaks[self.phase] = max(self.peaks.get(self.phase, 0), self.now)
        if self.now > self.peak:
            self.peak, self.at_peak = self.now, dict(self.live)

    def gone(self, key):
        e = self.live.pop(key, None)
        if e:
            self.now -= e[0]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor):
                self.made(t, func._schema.name.replace("aten::", ""))
        return out


class Cast:
    """CUDA's autocast: casts of weights are made once a step."""
    def __init__(self, half):
        self.half, self.kept = half, {}

    def __call__(self, x):
        if x is None or self.half is None or x.dtype == self.half:
            return x
        if isinstance(x, nn.Parameter):
            if x not in self.kept:
                self.kept[x] = x.to(self.half)
            return self.kept[x]
        return x.to(self.half)


cast = Cast(None)


class Linear(nn.Linear):
    def forward(self, x):
        return F.linear(cast(x), cast(self.weight), cast(self.bias))


class Conv(nn.Conv2d):
    def forward(self, x):
        return F.conv2d(cast(x), cast(self.weight), None, self.stride, self.padding)


class LayerNorm(nn.LayerNorm):
    def forward(self, x):
        return F.layer_norm(x.float(), self.normalized_shape, self.weight, self.bias, self.eps)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, Linear(width, 3 * width), Linear(width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = [p.view(n, length, self.heads, -1).transpose(1, 2)
                   for p in self.qkv(x).split(width, 2)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(n, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention, self.norm2 = LayerNorm(width), Attention(width, heads), LayerNorm(width)
        self.mlp = nn.Sequential(Linear(width, 4 * width), nn.GELU(), Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, o, vocabulary=50257, width=768, layers=12, heads=12, context=1024):
        super().__init__()
        self.o = o
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = LayerNorm(width), Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x)).flatten(0, 1)


def conv(i, o, size, stride):
    return Conv(i, o, size, stride, size // 2, bias=False)


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride, o):
        super().__init__()
        self.o = o
        self.conv1, self.norm1 = conv(i, width, 1, 1), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = conv(width, 4 * width, 1, 1), nn.BatchNorm2d(4 * width)
        same = stride == 1 and i == 4 * width
        self.shortcut = nn.Identity() if same else nn.Sequential(conv(i, 4 * width, 1, stride),
                                                                 nn.BatchNorm2d(4 * width))

    def forward(self, x):
        relu = F.relu_ if self.o.relu_inplace else F.relu
        y = relu(self.norm1(self.conv1(x)))
        y = relu(self.norm2(self.conv2(y)))
        return relu(self.norm3(self.conv3(y)) + self.shortcut(x))


def resnet50(o):
    width = i = 64
    parts = [conv(3, width, 7, 2), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for stage, count in enumerate((3, 4, 6, 3)):
        for k in range(count):
            parts.append(Bottleneck(i, width, 2 if stage > 0 and k == 0 else 1, o))
            i = 4 * width
        width *= 2
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), Linear(i, 1000))


def saved_tensors(run, count):
    """Bytes of what nodes save, each storage once, by type and what made it; parameters apart."""
    seen = {}

    def pack(t):
        s = t.untyped_storage()
        e = count.live.get(s._cdata)
        if e:
            seen[s._cdata] = e
        return t
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = run()
    return out, seen


def step_of(name, batch, o):
    if name == "gpt2":
        model = GPT(o)
        x, y = torch.zeros(batch, 1024, dtype=torch.int64), torch.zeros(batch * 1024, dtype=torch.int64)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)
        half = torch.bfloat16
    else:
        model = resnet50(o)  # how weights lie changes no size
        x = torch.zeros(batch, 3, 224, 224).to(memory_format=torch.channels_last)
        y = torch.zeros(batch, dtype=torch.int64)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)
        half = torch.float16
    return model, x, y, optimizer, half


def main():
    p = argparse.ArgumentParser()
    p.add_argument("name", nargs="?", default="gpt2")
    p.add_argument("batch", nargs="?", type=int, default=0)
    p.add_argument("--table", action="store_true")
    p.add_argument("--relu-inplace", action="store_true")
    o = p.parse_args()
    batch = o.batch or (16 if o.name == "gpt2" else 128)
    with FakeTensorMode(), Count() as count:
        count.phase = "before"
        model, x, y, optimizer, half = step_of(o.name, batch, o)
        for i in range(2):
            count.peak = 0
            count.peaks = {}
            count.phase = "before"
            optimizer.zero_grad()
            cast.half = half
            count.phase = "forward"

            def forward():
                return F.cross_entropy(model(x).float(), y)
            loss, seen = saved_tensors(forward, count)
            cast.kept.clear()
            cast.half = None
            count.phase = "backward"
            loss.backward()
            count.phase = "update"
            optimizer.step()
            del loss
        mb = 1e-6
        by = lambda d: sum(e[0] for e in d) * mb
        saved = [e for e in seen.values() if e[4] == "forward"]
        print("%s, batch %d: peak %.1f MB (%.1f MiB); by phase %s" % (
            o.name, batch, count.peak * mb, count.peak / 2**20,
            ", ".join("%s %.1f" % (k, v * mb) for k, v in count.peaks.items())))
        print("at rest with gradients %.1f MB; saved for backward %.1f MB in %d storages" % (
            count.now * mb, by(saved), len(saved)))
        if o.table:
            for title, entries in (("saved", saved), ("live at the peak", count.at_peak.values())):
                groups = collections.defaultdict(lambda: [0, 0, collections.Counter()])
                for e in entries:
                    g = groups[(e[4], e[1], e[2])]
                    g[0] += e[0]
                    g[1] += 1
                    g[2][e[3]] += 1
                print(title)
                for k, g in sorted(groups.items(), key=lambda kv: -kv[1][0])[:16]:
                    if g[0] > 3e6:
                        print("%10.1f MB %4d  %-9s %-40s %-9s %s" % (g[0] * mb, g[1], *k, "; ".join(
                            "%s*%d" % ("x".join(map(str, s)), n) for s, n in g[2].most_common(2))))


main()
