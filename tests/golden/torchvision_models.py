#!/usr/bin/env python3
"""golden/models/torchvision_*: tiny random MobileNets and EfficientNets with torchvision's names in their files, and the logits that
it computes. Weights are bfloat16 in files and computed with in float32.

    torchvision_models.py

Needs torch and torchvision (0.29)."""
import functools, json, math, os
import torch
from safetensors.torch import save_file
from torchvision.models import efficientnet, mobilenetv2, mobilenetv3

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")


def eights(x):
    n = max(8, int(x + 4) // 8 * 8)
    return n + 8 if n < 0.9 * x else n


def v2():
    rows = [[1, 16, 1, 1], [6, 24, 1, 2], [6, 32, 1, 2], [6, 64, 1, 2], [6, 96, 1, 1], [6, 160, 1, 2], [6, 320, 1, 1]]
    return mobilenetv2.MobileNetV2(num_classes=5, width_mult=0.1, inverted_residual_setting=rows), "mobilenet_v2", \
        dict(channel_multiplier=0.1)


def v3():
    rows, at = [], 16                                   # kernel, expansion, channels, squeezed, activation, stride
    for kernel, expand, out, se, act, stride in (
            (3, 1, 16, True, "RE", 2), (3, 4.5, 24, False, "RE", 2), (3, 3.67, 24, False, "RE", 1), (5, 4, 40, True, "HS", 2),
            (5, 6, 40, True, "HS", 1), (5, 3, 48, True, "HS", 1), (5, 6, 96, True, "HS", 2)):
        to = eights(out * 0.25)
        rows.append(mobilenetv3.InvertedResidualConfig(at, kernel, eights(at * expand), to, se, act, stride, 1, 1))
        at = to
    return mobilenetv3.MobileNetV3(rows, 24, num_classes=5), "mobilenet_v3_small", dict(channel_multiplier=0.25, num_features=24)


def b5():
    make = functools.partial(efficientnet.MBConvConfig, width_mult=0.1, depth_mult=0.1)
    rows = [make(1, 3, 1, 32, 16, 1), make(6, 3, 2, 16, 24, 2), make(6, 5, 2, 24, 40, 2), make(6, 3, 2, 40, 80, 3),
            make(6, 5, 1, 80, 112, 3), make(6, 5, 2, 112, 192, 4), make(6, 3, 1, 192, 320, 1)]
    return efficientnet.EfficientNet(rows, 0, num_classes=5, last_channel=24, norm_layer=functools.partial(
        torch.nn.BatchNorm2d, eps=0.001, momentum=0.01)), "efficientnet_b5", dict(channel_multiplier=0.1, num_features=24)


def fill(model, seed):
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, x in model.state_dict().items():
            if x.dtype == torch.int64: continue
            r = torch.randn(x.shape, generator=g)
            x.copy_((r * 1.3 / math.sqrt(x[0].numel()) if x.dim() > 1 else 0.05 * r.abs() if name.endswith("running_var")
                     else 0.1 * r + name.endswith("weight")).to(torch.bfloat16).float())
    return model.eval()


for seed, (name, (model, architecture, config)) in enumerate(dict(v2=v2(), v3=v3(), b5=b5()).items()):
    folder = os.path.join(HERE, "torchvision_" + name)
    os.makedirs(folder, exist_ok=True)
    fill(model, seed)
    x = torch.randn(2, 3, 33, 32, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        out = {"input.pixel_values": x, "logits": model(x)}
    save_file({k: v.to(torch.bfloat16) if v.is_floating_point() else v for k, v in model.state_dict().items()},
              os.path.join(folder, "model.safetensors"))
    save_file(out, os.path.join(folder, "reference.safetensors"))
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(dict(architecture=architecture, num_classes=5, depth_multiplier=0.1, **config), f, indent=2)
