"""images.py -- torchvision's functions of images: python3 images.py > images.txt"""
import torch
import torchvision.transforms.v2.functional as F

torch.manual_seed(0)


def show(name, x):
    dtype = {torch.uint8: "uint8", torch.float32: "float32"}[x.dtype]
    sizes = " ".join(str(n) for n in x.shape)
    print(name, dtype, x.dim(), sizes)
    print(" ".join(repr(v) if x.is_floating_point() else str(v) for v in x.contiguous().flatten().tolist()))


colour = torch.randint(0, 256, (3, 9, 12), dtype=torch.uint8)
grey = torch.randint(0, 200, (1, 7, 6), dtype=torch.uint8) + 20
flat = torch.full((3, 4, 5), 77, dtype=torch.uint8)
inputs = {"colour": colour, "grey": grey, "flat": flat,
          "real": torch.rand(3, 6, 5)}
calls = {
    "brightness": lambda x: F.adjust_brightness(x, 1.4),
    "darkness": lambda x: F.adjust_brightness(x, 0.3),
    "contrast": lambda x: F.adjust_contrast(x, 1.7),
    "no_contrast": lambda x: F.adjust_contrast(x, 0.0),
    "saturation": lambda x: F.adjust_saturation(x, 0.4),
    "more_saturation": lambda x: F.adjust_saturation(x, 1.9),
    "hue": lambda x: F.adjust_hue(x, 0.2),
    "other_hue": lambda x: F.adjust_hue(x, -0.4),
    "sharpness": lambda x: F.adjust_sharpness(x, 2.0),
    "no_sharpness": lambda x: F.adjust_sharpness(x, 0.0),
    "posterize": lambda x: F.posterize(x, 3),
    "solarize": lambda x: F.solarize(x, 0.5 if x.is_floating_point() else 128),
    "autocontrast": F.autocontrast,
    "equalize": F.equalize,
    "invert": F.invert,
    "gray": lambda x: F.rgb_to_grayscale(x, 3) if x.shape[0] == 3 else x,
    "blur": lambda x: F.gaussian_blur(x, [3, 3], [0.8, 0.8]),
    "resize": lambda x: F.resize(x, [4, 7], antialias=True),
    "larger": lambda x: F.resize(x, [13, 8], antialias=True),
    "center": lambda x: F.center_crop(x, [5, 3]),
    "around": lambda x: F.center_crop(x, [12, 15]),
    "crop": lambda x: F.crop(x, -1, 2, 6, 5),
    "to_float": lambda x: F.to_dtype(x, torch.float32, scale=True),
    "to_byte": lambda x: F.to_dtype(x, torch.uint8, scale=True),
    "shear": lambda x: F.affine(x, 0.0, [0, 0], 1.0, [12.0, 0.0], center=[0, 0], fill=0),
    "move": lambda x: F.affine(x, 0.0, [2, -1], 1.0, [0.0, 0.0], fill=9 if not x.is_floating_point() else 0.5),
    "rotate": lambda x: F.rotate(x, 30.0),
    "all_of_it": lambda x: F.affine(x, 20.0, [1, 2], 0.7, [5.0, -8.0]),
}
for name, x in inputs.items():
    show(name, x)
    for call, f in calls.items():
        show(f"{name}.{call}", f(x))
