#!/usr/bin/env python3
"""functional.py -- PyTorch's softmax, layer norm and losses with gradients: prints functional.txt.

Each line is "<name> float64 <ndim> <sizes>", then the elements. Gradients are those of the sum of the
result times `weight_of` its shape. Made with PyTorch 2.15."""
import itertools
import torch
import torch.nn.functional as f

from golden import show, show_with_gradients, weight_of

torch.manual_seed(3)


print("# made by functional.py with PyTorch", torch.__version__)
x = torch.randn(2, 3, 4, dtype=torch.float64) * 2
show("x", x)
for dim in range(3):
    show_with_gradients(f"softmax{dim}", lambda x: x.softmax(dim), x=x)
    show_with_gradients(f"log_softmax{dim}", lambda x: x.log_softmax(dim), x=x)

w, b = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
show("w", w)
show("b", b)
show_with_gradients("layer_norm", lambda x, w, b: f.layer_norm(x, (3, 4), w, b, 1e-3), x=x, w=w, b=b)
show_with_gradients("layer_norm_plain", lambda x: f.layer_norm(x, (4,), eps=1e-3), x=x)

logits = torch.randn(4, 5, dtype=torch.float64) * 2
weight = torch.rand(5, dtype=torch.float64) + 0.1
target = torch.tensor([1, 4, 2, 0])  # test_loss.c has the same; 2 is ignored there and here
probabilities = torch.rand(4, 5, dtype=torch.float64)
show("logits", logits)
show("weight", weight)
show("probabilities", probabilities)
for reduction, weighted, smoothing in itertools.product(("mean", "sum", "none"), (0, 1), (0, 0.125)):
    options = dict(weight=weight if weighted else None, reduction=reduction, label_smoothing=smoothing)
    tag = f"{reduction}{weighted}{int(smoothing > 0)}"
    show_with_gradients("classes_" + tag, lambda x: f.cross_entropy(x, target, ignore_index=2, **options),
                        x=logits)
    show_with_gradients("probabilities_" + tag, lambda x: f.cross_entropy(x, probabilities, **options),
                        x=logits)
images = torch.randn(2, 3, 2, 2, dtype=torch.float64)
show("images", images)
show_with_gradients("images_none", lambda x: f.cross_entropy(
    x, torch.tensor([[[0, 1], [2, 0]], [[1, 1], [0, 2]]]), reduction="none"), x=images)
