"""make.py -- small images of every kind, and what torchvision reads in them, Pillow in those of CMYK: python3 make.py > ../golden/decoded.txt"""
import os
import zlib

import numpy as np
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_image, read_file

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(1)
y, x = np.mgrid[0:10, 0:14]
smooth = np.stack([x * 18, y * 25, (x + y) * 10], -1).astype(np.uint8)
noisy = rng.integers(0, 256, (5, 7, 3), dtype=np.uint8)


def save(name, image, **options):
    image.save(os.path.join(here, name), **options)


save("colour.png", Image.fromarray(noisy))
save("grey.png", Image.fromarray(noisy[..., 0]))
save("palette.png", Image.fromarray(noisy // 64 * 64).quantize(8))
save("alpha.png", Image.fromarray(np.concatenate([noisy, noisy[..., :1]], -1)))
save("deep.png", Image.fromarray(rng.integers(0, 65536, (3, 4)).astype(np.uint16)))
save("colour.jpg", Image.fromarray(smooth), quality=85)
save("grey.jpg", Image.fromarray(smooth[..., 0]), quality=85)
save("cmyk.jpg", Image.fromarray(smooth).convert("CMYK"))
data = open(os.path.join(here, "cmyk.jpg"), "rb").read()
with open(os.path.join(here, "ycck.jpg"), "wb") as f:  # the same numbers, said to be of YCCK
    at = data.index(b"Adobe") + 11
    f.write(data[:at] + b"\2" + data[at + 1:])
save("large.jpg", Image.fromarray(np.kron(smooth, np.ones((4, 4, 1))).astype(np.uint8)), quality=85)
for name in ["colour.png", "grey.png", "palette.png", "colour.jpg", "grey.jpg", "large.jpg"]:
    z = decode_image(read_file(os.path.join(here, name)), mode=ImageReadMode.RGB)
    print(name, "uint8", z.dim(), *z.shape)
    print(*z.contiguous().flatten().tolist())
z = torch.from_numpy(noisy).permute(2, 0, 1)
print("alpha.png uint8 3", *z.shape)
print(*z.contiguous().flatten().tolist())
deep = torch.from_numpy(np.asarray(Image.open(os.path.join(here, "deep.png"))).astype(np.int64))
z = torch.round(deep.double() / 257).long().expand(3, -1, -1)
print("deep.png uint8 3", *z.shape)
print(*z.contiguous().flatten().tolist())
for name in ["cmyk.jpg", "ycck.jpg"]:  # which torchvision does not read
    z = torch.from_numpy(np.asarray(Image.open(os.path.join(here, name)).convert("RGB"))).permute(2, 0, 1)
    print(name, "uint8 3", *z.shape)
    print(*z.contiguous().flatten().tolist())
# WebP and BMP, as Pillow reads them.
other = np.random.default_rng(2).integers(0, 256, (5, 7, 3), dtype=np.uint8)
save("colour.webp", Image.fromarray(other), lossless=True)
save("colour.bmp", Image.fromarray(other))
save("palette.bmp", Image.fromarray(other // 64 * 64).quantize(8))
save("grey.bmp", Image.fromarray(other[..., 0]))
save("bits.bmp", Image.fromarray(other[..., 0] > 127))
save("alpha.bmp", Image.fromarray(np.concatenate([other, other[..., :1]], -1)))
with open(os.path.join(here, "runs.bmp"), "wb") as f:  # runs of 8 bits: 4 x 3, three colours
    colours = bytes([0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 0])
    rows = bytes([3, 1, 1, 2, 0, 0]) + bytes([0, 4, 0, 1, 2, 0, 0, 0]) + bytes([4, 2, 0, 1])
    head = b"BM" + (14 + 40 + 12 + len(rows)).to_bytes(4, "little") + bytes(4) + (14 + 40 + 12).to_bytes(4, "little")
    numbers = [40, 4, 3, 1 | 8 << 16, 1, len(rows), 0, 0, 3, 0]
    f.write(head + b"".join(n.to_bytes(4, "little") for n in numbers) + colours + rows)
for name in ["colour.webp", "colour.bmp", "palette.bmp", "grey.bmp", "bits.bmp", "alpha.bmp", "runs.bmp"]:
    z = torch.from_numpy(np.array(Image.open(os.path.join(here, name)).convert("RGB"))).permute(2, 0, 1)
    print(name, "uint8 3 3", *z.shape[1:])
    print(*z.contiguous().flatten().tolist())


def png(name, colour, numbers, chunks=b"", interlaced=0):
    """16 bits a number: numbers (rows, columns, channels); Pillow writes greys alone."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    h, w = numbers.shape[:2]
    lines = b"".join(b"\0" + row.astype(">u2").tobytes() for row in (adam7(numbers) if interlaced else numbers))
    head = w.to_bytes(4, "big") + h.to_bytes(4, "big") + bytes([16, colour, 0, 0, interlaced])
    with open(os.path.join(here, name), "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunks + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def adam7(numbers):
    """The rows of the seven images that an interlaced one is made of."""
    for y, x, down, right in [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]:
        part = numbers[y::down, x::right]
        if part.size:
            yield from part


deep = np.random.default_rng(3).integers(0, 65536, (6, 9, 4))
gamma = b"\0\0\0\4gAMA" + (45455).to_bytes(4, "big")
gamma += zlib.crc32(gamma[4:]).to_bytes(4, "big")
png("deep_colour.png", 2, deep[..., :3])
png("deep_gamma.png", 2, deep[..., :3], gamma)
png("deep_alpha.png", 6, deep)
png("deep_grey_alpha.png", 4, deep[..., :2])
png("deep_lines.png", 2, deep[..., :3], b"", 1)
for name in ["deep.png", "deep_colour.png", "deep_gamma.png", "deep_alpha.png", "deep_grey_alpha.png", "deep_lines.png"]:
    z = decode_image(read_file(os.path.join(here, name)), mode=ImageReadMode.RGB)
    print("%s/16" % name, "int32", z.dim(), *z.shape)
    print(*z.int().contiguous().flatten().tolist())
