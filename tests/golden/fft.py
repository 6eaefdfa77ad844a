#!/usr/bin/env python3
"""fft.py -- PyTorch's Fourier transforms, spectra of signals and windows: prints fft.txt.

Complex numbers are pairs. Inputs are pattern(shape, 5, 11); gradients are of the sum of the result times weight_of its
shape. Made with PyTorch 2.15."""
import torch

from golden import pattern, show, show_with_gradients

NORMS = ("backward", "ortho", "forward")
# name, shape of what goes in (pairs with their last dim), n, dim, norm
ALONG = (
    ("fft", (3, 6, 2), None, -1, 0),
    ("fft", (6, 3, 2), None, 0, 1),
    ("fft", (2, 7, 2), 10, 1, 2),
    ("fft", (2, 7, 2), 5, -1, 0),
    ("fft", (1, 2), None, 0, 0),
    ("ifft", (3, 12, 2), None, -1, 0),
    ("ifft", (4, 5, 2), 8, 0, 1),
    ("ifft", (2, 9, 2), None, -1, 2),
    ("rfft", (2, 8), None, -1, 0),
    ("rfft", (9, 2), None, 0, 1),
    ("rfft", (2, 5), 12, -1, 2),
    ("rfft", (2, 11), 4, 1, 0),
    ("irfft", (2, 5, 2), None, -1, 0),
    ("irfft", (2, 5, 2), 9, -1, 1),
    ("irfft", (5, 2, 2), 12, 0, 2),
    ("irfft", (2, 6, 2), 5, -1, 0),
    ("hfft", (2, 5, 2), None, -1, 0),
    ("hfft", (2, 4, 2), 7, -1, 1),
    ("ihfft", (2, 8), None, -1, 0),
    ("ihfft", (2, 7), None, -1, 2),
    ("fft", (2, 103, 2), None, -1, 0),
    ("ifft", (103, 2), 101, -1, 1),
    ("rfft", (101,), 103, -1, 0),
    ("irfft", (52, 2), 103, -1, 0),
    ("hfft", (30, 2), 101, -1, 0),
)
# name, shape, s, dims, norm
SEVERAL = (
    ("fft2", (2, 3, 4, 2), None, None, 0),
    ("ifft2", (3, 4, 2), (4, 3), None, 1),
    ("rfft2", (2, 3, 4), None, None, 0),
    ("irfft2", (3, 4, 2), None, None, 0),
    ("hfft2", (3, 4, 2), None, None, 2),
    ("ihfft2", (3, 4), None, None, 0),
    ("fftn", (2, 3, 4, 2), None, None, 1),
    ("fftn", (2, 3, 4, 2), (5, -1), (2, 0), 0),
    ("ifftn", (2, 3, 4, 2), (4, 2), None, 0),
    ("rfftn", (2, 3, 4), None, (2, 0), 0),
    ("irfftn", (2, 3, 4, 2), (3, 7), (0, 2), 1),
    ("hfftn", (2, 3, 4, 2), None, None, 0),
    ("ihfftn", (2, 3, 4), None, (0, 1), 2),
)
# signal's shape, n_fft, hop, win_length, window?, center, pad_mode, normalized, onesided
STFT = (
    ((40,), 8, None, None, True, True, "reflect", False, True),
    ((2, 33), 9, 4, 6, True, True, "constant", True, True),
    ((2, 30), 10, 5, None, False, False, "reflect", False, True),
    ((2, 24), 8, 3, 7, True, True, "circular", False, False),
)


def is_pairs(name):
    return name not in ("rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn")


def on_pairs(name, function):
    def run(x):
        y = function(torch.view_as_complex(x) if is_pairs(name) else x)
        return torch.view_as_real(y.resolve_conj()) if y.is_complex() else y
    return run


print("# made by fft.py with PyTorch", torch.__version__)
for i, (name, shape, n, dim, norm) in enumerate(ALONG):
    run = on_pairs(name, lambda x: getattr(torch.fft, name)(x, n, dim, NORMS[norm]))
    show_with_gradients(f"along{i}", run, x=pattern(shape, 5, 11))
for i, (name, shape, s, dims, norm) in enumerate(SEVERAL):
    more = {} if dims is None else {"dim": dims}
    run = on_pairs(name, lambda x: getattr(torch.fft, name)(x, s, norm=NORMS[norm], **more))
    show_with_gradients(f"several{i}", run, x=pattern(shape, 5, 11))
for i, (shape, n_fft, hop, length, window, center, mode, normalized, onesided) in enumerate(STFT):
    w = torch.hann_window(length or n_fft, dtype=torch.float64) + 0.125 if window else None
    options = dict(hop_length=hop, win_length=length, window=w, center=center, normalized=normalized,
                   onesided=onesided)
    show_with_gradients(f"stft{i}", lambda x: torch.view_as_real(torch.stft(
        x, n_fft, pad_mode=mode, return_complex=True, **options)), x=pattern(shape, 5, 11))
    y = torch.stft(pattern(shape, 5, 11), n_fft, pad_mode=mode, return_complex=True, **options)
    y = torch.view_as_real(y) + pattern(torch.view_as_real(y).shape, 3, 7)
    show_with_gradients(f"istft{i}", lambda x: torch.istft(
        torch.view_as_complex(x), n_fft, length=(shape[-1] if i % 2 else None), **options), x=y)
for n in (6, 7):
    show(f"fftfreq{n}", torch.fft.fftfreq(n, 0.3, dtype=torch.float64))
    show(f"rfftfreq{n}", torch.fft.rfftfreq(n, 0.3, dtype=torch.float64))
    x = pattern((2, n, 3), 5, 11)
    show(f"fftshift{n}", torch.fft.fftshift(x))
    show(f"ifftshift{n}", torch.fft.ifftshift(x, (1,)))

f64 = dict(dtype=torch.float64)
for n in (1, 6, 7):
    for periodic in (False, True):
        tail = f"{n}{'_periodic' if periodic else ''}"
        windows = torch.signal.windows
        sym = dict(sym=not periodic, **f64)
        show("hann" + tail, torch.hann_window(n, periodic, **f64))
        show("blackman" + tail, torch.blackman_window(n, periodic, **f64))
        show("bartlett" + tail, torch.bartlett_window(n, periodic, **f64))
        show("hamming" + tail, torch.hamming_window(n, periodic, 0.6, 0.3, **f64))
        show("kaiser" + tail, torch.kaiser_window(n, periodic, 5.0, **f64))
        for name in ("hann", "hamming", "blackman", "bartlett", "cosine", "nuttall"):
            show("windows_" + name + tail, getattr(windows, name)(n, **sym))
        show("windows_kaiser" + tail, windows.kaiser(n, beta=12.0, **sym))
        show("windows_general_cosine" + tail, windows.general_cosine(n, a=[0.5, 0.3, 0.2], **sym))
        show("windows_general_hamming" + tail, windows.general_hamming(n, alpha=0.6, **sym))
        show("windows_exponential" + tail, windows.exponential(n, tau=2.0, **sym))
        show("windows_gaussian" + tail, windows.gaussian(n, std=1.5, **sym))
