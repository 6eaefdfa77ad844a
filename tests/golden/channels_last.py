#!/usr/bin/env python3
"""channels_last.py -- how PyTorch lays out what it computes of images that are channels_last: prints channels_last.txt.

Each line is "<name> <argument>=<value> ... : <results> | <gradients>": the strides of the results, and those of the gradients
of the tensors that have one, in order, as torch.autograd.grad gives them where what comes in lies as the results do; "-" for none.
Values are those of calls.h: c2,3,4,5 a tensor of float32 that is channels_last (5 dims: channels_last_3d), f2,3 one in rows,
both with gradients; k3 one in rows without; t2,3 bools, all true; i2,3=1 int64. Made without a GPU."""
import sys

import torch

LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
X, D = "c2,5,6,4", "c2,3,4,6,5"

# One line for each call; {x} and {d} stand for the images.
CALLS = """
nn.functional.batch_norm input={x} running_mean=None running_var=None training=True
nn.functional.batch_norm input={x} running_mean=k5 running_var=k5 weight=f5 bias=f5 training=True
nn.functional.batch_norm input={x} running_mean=k5 running_var=k5 weight=f5 bias=f5
nn.functional.batch_norm input={x} running_mean=k5 running_var=k5
nn.functional.batch_norm input=c3,70,6,4 running_mean=k70 running_var=k70 weight=f70 bias=f70 training=True
nn.functional.batch_norm input={d} running_mean=k3 running_var=k3 weight=f3 bias=f3 training=True
nn.functional.batch_norm input={d} running_mean=k3 running_var=k3
nn.functional.instance_norm input={x} weight=f5 bias=f5
nn.functional.group_norm input=c2,6,4,3 num_groups=2 weight=f6 bias=f6
nn.functional.group_norm input=c2,6,4,3,2 num_groups=3
nn.functional.layer_norm input={x} normalized_shape=(4) weight=f4 bias=f4
nn.functional.layer_norm input={x} normalized_shape=(5,6,4)
nn.functional.local_response_norm input={x} size=3
nn.functional.normalize input={x}
nn.functional.max_pool2d input={x} kernel_size=2
nn.functional.max_pool2d input={x} kernel_size=3 stride=2 padding=1
nn.functional.max_pool2d input={x} kernel_size=(3,2) stride=(1,2) padding=(1,0) dilation=(2,1) ceil_mode=True
nn.functional.max_pool2d input={x} kernel_size=3 stride=2 padding=1 return_indices=True
nn.functional.max_pool2d input=c2,70,9,7 kernel_size=3 stride=2 padding=1
nn.functional.max_pool2d input=c5,6,4 kernel_size=2
nn.functional.max_pool3d input={d} kernel_size=2
nn.functional.max_pool3d input={d} kernel_size=3 stride=2 padding=1
nn.functional.avg_pool2d input={x} kernel_size=2
nn.functional.avg_pool2d input={x} kernel_size=3 stride=2 padding=1
nn.functional.avg_pool2d input={x} kernel_size=(3,2) stride=1 padding=(1,0) ceil_mode=True count_include_pad=False
nn.functional.avg_pool2d input={x} kernel_size=3 stride=2 divisor_override=7
nn.functional.avg_pool3d input={d} kernel_size=2
nn.functional.avg_pool3d input={d} kernel_size=3 stride=2 padding=1
nn.functional.adaptive_max_pool2d input={x} output_size=(3,2)
nn.functional.adaptive_max_pool2d input={x} output_size=(4,3) return_indices=True
nn.functional.adaptive_max_pool3d input={d} output_size=(2,3,2)
nn.functional.adaptive_avg_pool2d input={x} output_size=(4,3)
nn.functional.adaptive_avg_pool2d input={x} output_size=(3,2)
nn.functional.adaptive_avg_pool2d input={x} output_size=1
nn.functional.adaptive_avg_pool3d input={d} output_size=(3,2,2)
nn.functional.adaptive_avg_pool3d input={d} output_size=1
nn.functional.lp_pool2d input={x} norm_type=2.0 kernel_size=2
nn.functional.max_unpool2d input={x} indices=i2,5,6,4=3 kernel_size=2
nn.functional.interpolate input={x} size=(9,7)
nn.functional.interpolate input={x} size=(3,2)
nn.functional.interpolate input={x} scale_factor={2.0,2.0} mode='nearest-exact'
nn.functional.interpolate input={x} size=(9,7) mode='bilinear'
nn.functional.interpolate input={x} scale_factor={2.0,2.0} mode='bilinear' align_corners=True
nn.functional.interpolate input={x} size=(3,2) mode='bilinear'
nn.functional.interpolate input={x} size=(9,7) mode='bicubic'
nn.functional.interpolate input={x} size=(4,3) mode='area'
nn.functional.interpolate input={x} size=(9,7) mode='bilinear' antialias=True
nn.functional.interpolate input={x} size=(4,3) mode='bicubic' antialias=True
nn.functional.interpolate input={d} size=(5,7,6)
nn.functional.interpolate input={d} size=(5,7,6) mode='trilinear'
nn.functional.pad input={x} pad=(1,2)
nn.functional.pad input={x} pad=(1,1,2,0) value=0.5
nn.functional.pad input={x} pad=(1,-1,-2,0)
nn.functional.pad input={x} pad=(0,0,0,0,1,1)
nn.functional.pad input={d} pad=(1,1,2,0,1,1)
nn.functional.pad input={x} pad=(1,1,2,0) mode='reflect'
nn.functional.pad input={x} pad=(1,1,2,0) mode='replicate'
nn.functional.pad input={x} pad=(1,1,2,0) mode='circular'
nn.functional.pad input={d} pad=(1,1,2,0,1,1) mode='replicate'
cat tensors=[{x};{x}] dim=1
cat tensors=[{x};c2,3,6,4;c2,1,6,4;c2,2,6,4;c2,4,6,4] dim=1
cat tensors=[{x};f2,3,6,4] dim=1
cat tensors=[f2,3,6,4;{x}] dim=1
cat tensors=[{x};{x}] dim=0
cat tensors=[{x};{x}] dim=-1
cat tensors=[{d};{d}] dim=1
nn.functional.dropout input={x} p=0.5 training=True
nn.functional.dropout2d input={x} p=0.5
nn.functional.alpha_dropout input={x} p=0.5 training=True
nn.functional.dropout input={d} p=0.5 training=True
mean input={x} dim=(2,3)
mean input={x} dim=(2,3) keepdim=True
mean input={d} dim=(2,3,4) keepdim=True
mean input={x} dim=(1) keepdim=True
mean input={x} dim=(0,2,3)
mean input={x} dim=(3)
mean input={x} dim=(2) keepdim=True
sum input={x} dim=(2,3)
sum input={x} dim=(1)
sum input={x} dim=(0) keepdim=True
amax input={x} dim=(2,3) keepdim=True
amax input={x} dim=(1) keepdim=True
relu input={x}
nn.functional.relu6 input={x}
nn.functional.gelu input={x}
nn.functional.gelu input={x} approximate='tanh'
nn.functional.silu input={x}
nn.functional.elu input={x}
nn.functional.leaky_relu input={x}
nn.functional.hardswish input={x}
nn.functional.hardsigmoid input={x}
nn.functional.hardtanh input={x}
nn.functional.softplus input={x}
nn.functional.mish input={x}
nn.functional.logsigmoid input={x}
nn.functional.prelu input={x} weight=f5
nn.functional.prelu input={x} weight=f1
nn.functional.glu input=c2,6,4,3 dim=1
sigmoid input={x}
tanh input={x}
exp input={d}
sqrt input={x}
square input={x}
nn.functional.softmax input={x} dim=1
nn.functional.softmax input={x} dim=3
nn.functional.log_softmax input={x} dim=1
add input={x} other={x}
add input={x} other=f2,5,6,4
add input=f2,5,6,4 other={x}
add input={x} other=f5,1,1
add input=f5,1,1 other={x}
add input={x} other=2.5
sub input={x} other=c2,5,1,1
mul input={x} other=c2,5,1,1
mul input={x} other=f2,1,6,4
mul input=c2,5,1,1 other={x}
mul input={d} other={d}
div input={x} other={x}
pow input={x} exponent=2
pow input={x} exponent={x}
maximum input={x} other={x}
where condition=t2,5,6,4 input={x} other={x}
where condition=t2,5,6,4 input={x} other=f2,5,6,4
where condition=t6,4 input={x} other={x}
clamp input={x} min=0.6 max=0.9
lerp input={x} end={x} weight=0.5
addcmul input={x} tensor1={x} tensor2={x}
masked_fill input={x} mask=t2,5,6,4 value=1.5
nn.functional.pixel_shuffle input=c2,8,3,4 upscale_factor=2
nn.functional.pixel_unshuffle input={x} downscale_factor=2
nn.functional.channel_shuffle input=c2,6,3,4 groups=2
nn.functional.grid_sample input={x} grid=f2,3,7,2 align_corners=False
nn.functional.conv2d input={x} weight=f4,5,3,3 bias=f4
nn.functional.conv2d input={x} weight=c4,5,3,3 bias=f4 padding=1
nn.functional.conv2d input=f2,5,6,4 weight=c4,5,3,3
nn.functional.conv2d input={x} weight=c10,1,3,3 padding=1 groups=5
nn.functional.conv2d input={x} weight=c4,5,1,1
nn.functional.conv_transpose2d input={x} weight=c5,4,3,3 stride=2
nn.functional.conv_transpose2d input={x} weight=f5,4,3,3 bias=f4 stride=2
nn.functional.conv3d input={d} weight=c4,3,2,2,2 bias=f4
nn.functional.conv3d input={d} weight=f4,3,2,2,2
flip input={x} dims=(3)
roll input={x} shifts=(1) dims=(2)
cumsum input={x} dim=1
tril input={x}
repeat input={x} repeats=(1,2,1,1)
index_select input={x} dim=1 index=i3=1
gather input={x} dim=1 index=i2,5,6,4=1
isnan input={x}
eq input={x} other={x}
gt input={x} other=0.7
logical_not input={x}
"""


def tensor_of(text, leaves):
    kind, (shape, _, number) = text[0], text[1:].partition("=")
    shape = [int(n) for n in shape.split(",")]
    if kind == "i":
        return torch.full(shape, int(number), dtype=torch.int64)
    if kind == "t":
        return torch.ones(shape, dtype=torch.bool)
    x = torch.rand(shape) / 2 + 0.5
    if kind == "c" and len(shape) in LAST:
        x = x.to(memory_format=LAST[len(shape)])
    if kind != "k":
        leaves.append(x.requires_grad_())
    return x


def value_of(text, leaves):
    if text[0] == "[":
        return [tensor_of(part, leaves) for part in text[1:-1].split(";")]
    if text[0] in "({":
        return tuple((int if text[0] == "(" else float)(part) for part in text[1:-1].split(","))
    if text[0] == "'":
        return text[1:-1]
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    if text[0].isdigit() or text[0] == "-":
        return float(text) if "." in text else int(text)
    return tensor_of(text, leaves)


def callee(name):
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    return function


def strides(tensors):
    return " ".join("-" if x is None else ",".join(map(str, x.stride())) or "()" for x in tensors) or "-"


def run(name, words):
    leaves = []
    torch.manual_seed(1)
    values = {key: value_of(text, leaves) for key, text in (word.split("=", 1) for word in words)}
    out = torch.Tensor.repeat(values["input"], values["repeats"]) if name == "repeat" else callee(name)(**values)
    out = list(out) if isinstance(out, (tuple, list)) else [out]
    graded = [y for y in out if y.requires_grad]
    dys = [torch.rand_like(y) for y in graded]
    return strides(out), strides(torch.autograd.grad(graded, leaves, dys, allow_unused=True) if graded else [])


print("# made by channels_last.py with PyTorch", torch.__version__.split("+")[0])
for call in CALLS.strip().split("\n"):
    name, *words = call.replace("{x}", X).replace("{d}", D).split()
    print(" ".join([name, *words, ":", *" | ".join(run(name, words)).split()]))
