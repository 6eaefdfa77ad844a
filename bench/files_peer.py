"""files_peer.py WHAT FILE [MIB] [NUMBER] -- what bench_files does, by Python's safetensors (with "torch-" in front of
WHAT: by torch.save and torch.load)."""
import os
import sys
import time

what, path = sys.argv[1:3]
mib = int(sys.argv[3]) if len(sys.argv) > 3 else 64
number = int(sys.argv[4]) if len(sys.argv) > 4 else 3


def sync():
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


if what.startswith("torch-"):
    import torch
    x = {"layers.%d.weight" % i: torch.ones(mib << 18 >> 6) for i in range(64)} if what == "torch-save" else None

    def turn():
        if what == "torch-save":
            torch.save(x, path)
            sync()
        else:
            torch.load(path)
else:
    import numpy
    import safetensors
    from safetensors.numpy import load_file, save_file
    x = {"layers.%d.weight" % i: numpy.ones(mib << 18 >> 6, "f4") for i in range(64)} if what == "save" else None

    def turn():
        if what == "open":
            with safetensors.safe_open(path, "numpy") as f:
                f.keys()
        elif what == "map":
            with safetensors.safe_open(path, "numpy") as f:
                for key in f.keys():
                    numpy.array(f.get_tensor(key))
        elif what == "load":
            load_file(path)
        else:
            save_file(x, path)
            sync()

least = 1e30
for _ in range(number):
    start = time.perf_counter()
    turn()
    least = min(least, time.perf_counter() - start)
print(least)
