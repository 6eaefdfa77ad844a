"""Optimizers step all parameters in one launch: torch.optim's own fused forms, chosen where a
program chooses none."""
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

_WITH_FUSED = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)


def _can_fuse(group):
    if group.get("fused") is not None or group.get("foreach") is not None:
        return False
    if group.get("differentiable") or group.get("capturable"):
        return False
    return all(p.device.type == "tern" and p.dtype in (torch.float32, torch.float64)
               for p in group["params"])


def _choose_fused(optimizer, args, kwargs):
    if type(optimizer) not in _WITH_FUSED:
        return
    for group in optimizer.param_groups:
        if not group["params"] or not _can_fuse(group):
            continue
        group["fused"] = True
        for p in group["params"]:
            step = optimizer.state.get(p, {}).get("step")
            if isinstance(step, torch.Tensor) and step.device != p.device:
                optimizer.state[p]["step"] = step.to(p.device, torch.float32)


def install():
    register_optimizer_step_pre_hook(_choose_fused)
