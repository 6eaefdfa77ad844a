"""models.py -- PyTorch's side of the models: the same as steps.c builds."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from models_options import options_of  # for who imports the models


class Attention(nn.Module):
    """Causal; written out as it was before PyTorch 2, or its fused function."""

    def __init__(self, width, heads, context, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        mask = torch.ones(context, context).triu(1).bool()
        self.register_buffer("mask", None if fused else mask, persistent=False)

    def forward(self, x):
        n, length, width = x.shape
        parts = self.qkv(x).split(width, 2)
        each = width // self.heads
        q, k, v = [p.view(n, length, self.heads, each).transpose(1, 2) for p in parts]
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * each**-0.5
            scores = scores.masked_fill(self.mask[:length, :length], float("-inf"))
            y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(n, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, context, fused):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, context, fused)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, o):
        super().__init__()
        tied = bool(o.get("tied"))
        fused = tied and hasattr(F, "scaled_dot_product_attention")
        width = o["width"]
        self.token = nn.Embedding(o["vocabulary"], width)
        self.position = nn.Embedding(o["context"], width)
        self.blocks = nn.Sequential(*[Block(width, o["heads"], o["context"], fused)
                                      for _ in range(o["layers"])])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, o["vocabulary"], bias=False)
        if tied:
            self.head.weight = self.token.weight
            for p in self.parameters():  # as GPT-2 begins; else its first losses are too large
                if p.dim() == 2:
                    nn.init.normal_(p, 0, 0.02)

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


def conv(i, o, size, stride):
    return nn.Conv2d(i, o, size, stride, size // 2, bias=False)


def shortcut(i, o, stride):
    if stride == 1 and i == o:
        return nn.Identity()
    return nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o))


class Residual(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.norm1 = conv(i, o, 3, stride), nn.BatchNorm2d(o)
        self.conv2, self.norm2 = conv(o, o, 3, 1), nn.BatchNorm2d(o)
        self.shortcut = shortcut(i, o, stride)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet():
    return nn.Sequential(conv(3, 16, 3, 1), nn.BatchNorm2d(16), nn.ReLU(),
                         Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride):
        super().__init__()
        self.conv1, self.norm1 = conv(i, width, 1, 1), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = conv(width, 4 * width, 1, 1), nn.BatchNorm2d(4 * width)
        self.shortcut = shortcut(i, 4 * width, stride)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


def resnet50(o):
    width = i = o["width"]
    parts = [conv(3, width, 7, 2), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for stage, count in enumerate(int(n) for n in o["blocks"].split("-")):
        for k in range(count):
            parts.append(Bottleneck(i, width, 2 if stage > 0 and k == 0 else 1))
            i = 4 * width
        width *= 2
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, o["classes"]))


def make(name, o):
    """The model (None for add), x and y; the same each time."""
    torch.manual_seed(0)
    if name == "add":
        return None, torch.randn(1), torch.randn(1)
    if name == "a":
        return nn.Linear(10, 1), torch.randn(100, 10), torch.randn(100, 1)
    if name == "b":
        return mlp(), torch.randn(64, 784), torch.randint(0, 10, (64,))
    if name == "c":
        return lenet(), torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    if name == "d":
        return resnet(), torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    if name == "f":
        return CharLSTM(), torch.randint(0, 65, (32, 32)), torch.randint(0, 65, (32 * 32,))
    if name == "resnet50":
        return (resnet50(o), torch.randn(o["batch"], 3, o["side"], o["side"]),
                torch.randint(0, o["classes"], (o["batch"],)))
    shape = o["batch"], o["context"]
    return (GPT(o), torch.randint(0, o["vocabulary"], shape),
            torch.randint(0, o["vocabulary"], (shape[0] * shape[1],)))


def optimizer_of(name, o, model, on_gpu):
    parameters, lr = model.parameters(), o["lr"]
    if name in ("c", "f"):
        return torch.optim.Adam(parameters, lr=lr)
    if name in ("d", "resnet50"):
        return torch.optim.SGD(parameters, lr=lr, momentum=0.9)
    if name == "e":
        return torch.optim.AdamW(parameters, lr=lr)
    if name == "gpt2":
        return torch.optim.AdamW(parameters, lr=lr, **({"fused": True} if on_gpu else {}))
    return torch.optim.SGD(parameters, lr=lr)
