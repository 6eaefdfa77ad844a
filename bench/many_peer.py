"""many_peer.py -- PyTorch's side of bench/many: a step of DistributedDataParallel over gloo.

  RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29501 python many_peer.py MODEL WAY SECONDS
"""
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn

import models

name, way, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
WARM = 5
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(1)
if name == "mlp":
    parts = []
    for a, b in (256, 512), (512, 512), (512, 512):
        parts += [nn.Linear(a, b), nn.ReLU()]
    model = nn.Sequential(*parts, nn.Linear(512, 10))
    x, y = torch.randn(128, 256), torch.randint(0, 10, (128,))
else:
    model, x, y = models.make("e", models.options_of("e", []))
if way == "ddp":
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def steps(n):
    for _ in range(n):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def timed(n):
    """Seconds a step of the slowest rank."""
    dist.barrier()
    start = time.perf_counter()
    steps(n)
    each = torch.tensor([(time.perf_counter() - start) / n])
    dist.all_reduce(each, dist.ReduceOp.MAX)
    return each.item()


steps(WARM)
each = timed(int(seconds / timed(WARM)) + 1)
if dist.get_rank() == 0:
    print("%.9f" % each)
dist.destroy_process_group()
