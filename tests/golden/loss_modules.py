#!/usr/bin/env python3
"""loss_modules.py -- PyTorch's modules of losses and distances with gradients: prints loss_modules.txt.

Each line is "<name> <dtype> <ndim> <sizes>", then the elements. Gradients are those of the sum of the
result times `weight_of` its shape, with respect to the inputs in order. Made with PyTorch 2.15."""
import torch
from torch import nn

from golden import randn, show, weight_of

torch.manual_seed(11)


def show_call(name, function, *inputs):
    leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    y = function(*leaves)
    show(name, y)
    (y * weight_of(y)).sum().backward()
    for i, leaf in enumerate(leaves):
        if leaf.grad is not None:
            show(f"{name}.d{i}", leaf.grad)


print("# made by loss_modules.py with PyTorch", torch.__version__)
tensors = dict(
    x=randn(4, 5), y=randn(4, 5), z=randn(4, 5), p=randn(4, 5).sigmoid(), t=randn(4, 5).sigmoid(),
    counts=randn(4, 5).square() * 3, var=randn(4, 5).square(), log_p=randn(4, 5).log_softmax(1),
    log_q=randn(4, 5).log_softmax(1), weight=randn(5).sigmoid(), pos_weight=randn(5).exp(),
    classes=torch.tensor([1, 4, 2, 0]), sign=torch.tensor([1, -1, -1, 1]),
    signs=torch.tensor([[1, -1, 1, 1, -1]] * 4), yes=torch.tensor([[1.0, 0, 1, 1, 0]] * 4).double(),
    several=torch.tensor([[3, 0, -1, 1, -1], [-1, 0, 1, 2, 3], [0, 1, 2, 3, 4], [4, -1, -1, -1, 2]]))
for key, value in tensors.items():
    show(key, value)
weight, pos_weight = tensors["weight"], tensors["pos_weight"]
modules = {  # test_loss_modules.c has the same options
    "l1_loss": (nn.L1Loss(reduction="none"), "x y"),
    "smooth_l1_loss": (nn.SmoothL1Loss(reduction="sum", beta=0.5), "x y"),
    "huber_loss": (nn.HuberLoss(delta=0.75), "x y"),
    "poisson_nll_loss": (nn.PoissonNLLLoss(log_input=False, full=True, eps=0.125), "p counts"),
    "gaussian_nll_loss": (nn.GaussianNLLLoss(full=True, eps=0.5, reduction="none"), "x y var"),
    "kl_div_loss": (nn.KLDivLoss(reduction="batchmean"), "log_p t"),
    "kl_div_loss_of_logarithms": (nn.KLDivLoss(reduction="sum", log_target=True), "log_p log_q"),
    "bce_loss": (nn.BCELoss(weight=weight, reduction="sum"), "p t"),
    "bce_with_logits_loss": (nn.BCEWithLogitsLoss(weight, reduction="none", pos_weight=pos_weight), "x t"),
    "nll_loss": (nn.NLLLoss(weight, ignore_index=2), "log_p classes"),
    "soft_margin_loss": (nn.SoftMarginLoss(), "x signs"),
    "margin_ranking_loss": (nn.MarginRankingLoss(margin=0.25), "x y signs"),
    "hinge_embedding_loss": (nn.HingeEmbeddingLoss(margin=0.5, reduction="none"), "x signs"),
    "cosine_embedding_loss": (nn.CosineEmbeddingLoss(margin=0.125, reduction="none"), "x y sign"),
    "triplet_margin_loss": (nn.TripletMarginLoss(margin=0.5, p=3, swap=True), "x y z"),
    "triplet_margin_with_distance_loss": (nn.TripletMarginWithDistanceLoss(
        distance_function=lambda a, b: (a - b).abs().sum(-1), margin=2.0, reduction="none"), "x y z"),
    "multi_margin_loss": (nn.MultiMarginLoss(p=2, margin=0.75, weight=weight), "x classes"),
    "multi_label_margin_loss": (nn.MultiLabelMarginLoss(reduction="none"), "x several"),
    "multi_label_soft_margin_loss": (nn.MultiLabelSoftMarginLoss(weight, reduction="none"), "x yes"),
    "cosine_similarity": (nn.CosineSimilarity(dim=0, eps=1.5), "x y"),
    "pairwise_distance": (nn.PairwiseDistance(p=1, eps=0.125, keepdim=True), "x y"),
}
for name, (module, inputs) in modules.items():
    show_call(name, module, *[tensors[key] for key in inputs.split()])

# The third target does not fit into its input, for there must be a blank between equal classes.
logits = randn(6, 3, 4) * 2
targets = torch.tensor([[1, 2, 2], [3, 0, 0], [1, 1, 1]])
y_lengths = torch.tensor([3, 1, 3])
show("logits", logits)
for tag, x_lengths, zero in ("fits", [6, 5, 5], False), ("zeroed", [6, 5, 4], True):
    for reduction in "mean", "sum", "none":
        module = nn.CTCLoss(reduction=reduction, zero_infinity=zero)
        show_call(f"ctc_loss_{tag}_{reduction}",
                  lambda x: module(x.log_softmax(2), targets, torch.tensor(x_lengths), y_lengths), logits)
module = nn.CTCLoss(blank=3, reduction="none")
show_call("ctc_loss_blank", lambda x: module(x.log_softmax(1), torch.tensor([0, 2]), torch.tensor(5),
                                             torch.tensor(2)), logits[:, 1])
module = nn.CTCLoss(reduction="none")
show_call("ctc_loss_nothing", lambda x: module(x.log_softmax(2), torch.zeros(3, 0, dtype=torch.int64),
                                               torch.tensor([6, 1, 3]), torch.tensor([0, 0, 0])), logits)
# cdist: a has a point of b's.
a, b = randn(2, 3, 4), randn(2, 5, 4)
b[1, 2] = a[1, 0]
show("a", a)
show("b", b)
for p in 0, 0.5, 1, 2, 3, float("inf"):
    show_call(f"cdist_{p:g}", lambda a, b: torch.cdist(a, b, p), a, b)
