"""lr_scheduler.py -- 50 steps of PyTorch's schedulers, of two groups: python3 lr_scheduler.py > lr_scheduler.txt"""
import math
import warnings

import torch
from torch.optim import lr_scheduler as lr
from torch.optim.swa_utils import SWALR

warnings.simplefilter("ignore")
STEPS = 50


def slow(epoch):
    return 1 / (1 + 0.1 * epoch)


def fast(epoch):
    return 1.25 - 0.01 * epoch


def warm_up(o):
    parts = [lr.LinearLR(o, 0.1, 1.0, 8), lr.CosineAnnealingLR(o, 20, 0.001), lr.StepLR(o, 3, 0.5)]
    return lr.SequentialLR(o, parts, [8, 30])


CASES = {
    "step_lr": lambda o: lr.StepLR(o, 7, 0.5),
    "multi_step_lr": lambda o: lr.MultiStepLR(o, [5, 12, 12, 40], 0.3),
    "exponential_lr": lambda o: lr.ExponentialLR(o, 0.9),
    "constant_lr": lambda o: lr.ConstantLR(o, 0.25, 9),
    "linear_lr": lambda o: lr.LinearLR(o, 0.2, 0.9, 20),
    "polynomial_lr": lambda o: lr.PolynomialLR(o, 30, 2.0),
    "cosine_annealing_lr": lambda o: lr.CosineAnnealingLR(o, 12, 0.003),
    "warm_restarts": lambda o: lr.CosineAnnealingWarmRestarts(o, 5, 2, 0.001),
    "lambda_lr": lambda o: lr.LambdaLR(o, slow),
    "multiplicative_lr": lambda o: lr.MultiplicativeLR(o, slow),
    "cyclic_lr": lambda o: lr.CyclicLR(o, 0.01, 0.2, 6, 9),
    "cyclic_lr_2": lambda o: lr.CyclicLR(o, 0.01, 0.2, 5, mode="triangular2", base_momentum=0.7, max_momentum=0.95),
    "cyclic_lr_exp": lambda o: lr.CyclicLR(o, 0.01, 0.2, 5, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "cyclic_lr_scale_fn": lambda o: lr.CyclicLR(o, 0.01, 0.2, 4, 3, mode="none", scale_fn=slow, base_momentum=0.6),
    "cyclic_lr_iterations": lambda o: lr.CyclicLR(o, [0.01, 0.02], [0.2, 0.1], 6, gamma=0.5, scale_fn=slow,
                                                  scale_mode="iterations"),
    "one_cycle_lr": lambda o: lr.OneCycleLR(o, 0.5, STEPS + 1),
    "one_cycle_lr_3": lambda o: lr.OneCycleLR(o, 0.5, STEPS + 1, pct_start=0.4, anneal_strategy="linear",
                                              three_phase=True, div_factor=10, final_div_factor=100),
    "one_cycle_groups": lambda o: lr.OneCycleLR(o, [0.5, 0.1], STEPS + 1, cycle_momentum=False),
    "one_cycle_epochs": lambda o: lr.OneCycleLR(o, 0.5, epochs=3, steps_per_epoch=18),
    "sequential_lr": warm_up,
    "chained_scheduler": lambda o: lr.ChainedScheduler([lr.ConstantLR(o, 0.1, 4), lr.ExponentialLR(o, 0.95)]),
    "swa_lr": lambda o: SWALR(o, [0.03, 0.5], 15),
    "swa_lr_linear": lambda o: SWALR(o, 0.03, 8, "linear"),
    "swa_lr_at_once": lambda o: SWALR(o, 0.03, 0),
    "swa_lr_behind": lambda o: lr.SequentialLR(o, [lr.ExponentialLR(o, 0.9), SWALR(o, 0.05, 10)], [12]),
    "linear_lr_to_zero": lambda o: lr.LinearLR(o, 0.1, 0.0, 5),
    "linear_lr_at_once": lambda o: lr.LinearLR(o, 0.1, 1.0, 0),
    "polynomial_lr_at_once": lambda o: lr.PolynomialLR(o, 0, 2.0),
    "one_cycle_linear": lambda o: lr.OneCycleLR(o, 0.1, STEPS, anneal_strategy="linear"),
    "cosine_above": lambda o: lr.CosineAnnealingLR(o, 7, 0.5),
    "cosine_chained": lambda o: lr.ChainedScheduler([lr.ConstantLR(o, 0.1, 4), lr.CosineAnnealingLR(o, 7, 0.05)]),
    "multiplicative_behind": lambda o: lr.SequentialLR(o, [lr.ConstantLR(o, 0.5, 9), lr.MultiplicativeLR(o, fast)], [4]),
    "behind_nothing": lambda o: lr.SequentialLR(o, [lr.ConstantLR(o, 0.5, 9), lr.ExponentialLR(o, 0.9)], [0]),
    "plateau": lambda o: lr.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=3, min_lr=0.004),
    "plateau_max": lambda o: lr.ReduceLROnPlateau(o, "max", 0.2, 0, 0.05, "abs"),
}


def show(name, values):
    print(name, "float64 2", len(values), len(values[0]))
    print(*("%.17g" % v for row in values for v in row))


print("# made by lr_scheduler.py with PyTorch " + torch.__version__)
for name, make in CASES.items():
    params = [torch.zeros(1, requires_grad=True) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.02}], lr=0.1, momentum=0.5)
    scheduler = make(optimizer)
    rows = []
    for t in range(STEPS + 1):
        rows.append([x for g in optimizer.param_groups for x in (g["lr"], g["momentum"])])
        optimizer.step()
        if t == STEPS:
            break
        if "plateau" in name:
            scheduler.step(math.sin(0.3 * t) + 0.02 * t)
        else:
            scheduler.step()
    show(name, rows)
