"""optim.py -- five steps of PyTorch's optimizers: python3 optim.py > optim.txt"""
import torch

VARIANTS = {
    "sgd": (torch.optim.SGD, dict(lr=0.1)),
    "sgd_decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.05)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9)),
    "sgd_dampening": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.8, nesterov=True)),
    "sgd_maximize": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.1, maximize=True)),
    "adam": (torch.optim.Adam, dict(lr=0.01)),
    "adam_decay": (torch.optim.Adam, dict(lr=0.01, weight_decay=0.1)),
    "adam_betas": (torch.optim.Adam, dict(lr=0.02, betas=(0.5, 0.9), eps=1e-3)),
    "adam_zero_betas": (torch.optim.Adam, dict(lr=0.02, betas=(0.0, 0.0))),
    "adam_amsgrad": (torch.optim.Adam, dict(lr=0.01, amsgrad=True)),
    "adam_maximize": (torch.optim.Adam, dict(lr=0.01, maximize=True, weight_decay=0.1)),
    "adamw": (torch.optim.AdamW, dict(lr=0.01)),
    "adamw_decay": (torch.optim.AdamW, dict(lr=0.01, weight_decay=0.5)),
    "adamw_amsgrad": (torch.optim.AdamW, dict(lr=0.01, amsgrad=True, maximize=True)),
}


def show(name, x):
    kind = str(x.dtype).replace("torch.", "")
    print(name, kind, x.dim(), *x.shape)
    print(*("%.17g" % v for v in x.detach().double().flatten().tolist()))


print("# made by optim.py with PyTorch " + torch.__version__)
for dtype in (torch.float32, torch.float64):
    torch.manual_seed(1)
    ending = "_f32" if dtype == torch.float32 else "_f64"
    start = [torch.randn(2, 3).to(dtype), torch.randn(3).to(dtype)]
    grads = [[torch.randn(2, 3).to(dtype), torch.randn(3).to(dtype)] for _ in range(5)]
    for i, x in enumerate(start):
        show("start%d%s" % (i, ending), x)
    for t, pair in enumerate(grads):
        for i, g in enumerate(pair):
            show("grad%d_%d%s" % (t, i, ending), g)
    for name, (make, options) in VARIANTS.items():
        params = [x.clone().requires_grad_() for x in start]
        optimizer = make(params, foreach=False, **options)
        for t in range(5):
            params[0].grad = grads[t][0].clone()
            params[1].grad = None if t == 1 else grads[t][1].clone()  # left out of step 1
            optimizer.step()
        for i, x in enumerate(params):
            show("%s_%d%s" % (name, i, ending), x)
