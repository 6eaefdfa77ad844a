"""data_peer.py -- the same as bench/data.c with torch.utils.data and torchvision; prints one number.

    data_peer.py items|tensors WORKERS SECONDS    data_peer.py jpeg FOLDER WORKERS SECONDS
    data_peer.py make FOLDER                      writes JPEGs of 500 x 375 into FOLDER/a
"""
import os
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.set_num_threads(1)
N, BATCH = 60000, 64


class Items(Dataset):
    def __init__(self):
        # Written, as tern's: zeros that nobody wrote are one page, which the cache keeps.
        self.pixels = np.random.default_rng(0).integers(0, 256, (N, 1, 28, 28), dtype=np.uint8)

    def __len__(self):
        return N

    def __getitem__(self, i):
        return torch.from_numpy(self.pixels[i]), i % 10


def jpegs(folder):
    from torchvision.io import ImageReadMode, decode_image, read_file
    from torchvision.transforms import v2
    names = [os.path.join(folder, "a", n) for n in sorted(os.listdir(os.path.join(folder, "a")))]
    change = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(),
                         v2.ToDtype(torch.float32, scale=True),
                         v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])

    class Images(Dataset):
        def __len__(self):
            return len(names)

        def __getitem__(self, i):
            return change(decode_image(read_file(names[i]), mode=ImageReadMode.RGB)), 0
    return Images()


def make(folder):
    from PIL import Image
    os.makedirs(os.path.join(folder, "a"))
    rng = np.random.default_rng(0)
    for i in range(256):
        small = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
        image = Image.fromarray(small).resize((500, 375), Image.BICUBIC)
        noise = rng.integers(-12, 13, (375, 500, 3))
        image = Image.fromarray(np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8))
        image.save(os.path.join(folder, "a", "%03d.jpg" % i), quality=90)


def rate(data, workers, seconds):
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers,
                        persistent_workers=workers > 0)
    began, n, spent = None, 0, 0.0
    while spent < seconds:
        for batch in loader:
            if began is None:
                began = time.monotonic()
            else:
                n += len(batch[0])
            spent = time.monotonic() - began
            if spent >= seconds:
                break
    return n / spent


what = sys.argv[1]
if what == "make":
    make(sys.argv[2])
elif what == "jpeg":
    print("%.1f" % rate(jpegs(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
else:
    tensors = TensorDataset(torch.ones(N, 1, 28, 28, dtype=torch.uint8), torch.arange(N) % 10)
    print("%.1f" % rate(Items() if what == "items" else tensors, int(sys.argv[2]), float(sys.argv[3])))
