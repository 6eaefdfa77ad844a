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
    "adam_decoupled": (torch.optim.Adam, dict(lr=0.01, weight_decay=0.5, decoupled_weight_decay=True)),
    "adamw": (torch.optim.AdamW, dict(lr=0.01)),
    "adamw_decay": (torch.optim.AdamW, dict(lr=0.01, weight_decay=0.5)),
    "adamw_amsgrad": (torch.optim.AdamW, dict(lr=0.01, amsgrad=True, maximize=True)),
    "adamax": (torch.optim.Adamax, dict(lr=0.02)),
    "adamax_decay": (torch.optim.Adamax, dict(lr=0.02, betas=(0.5, 0.9), weight_decay=0.1, maximize=True)),
    "nadam": (torch.optim.NAdam, dict(lr=0.02)),
    "nadam_decay": (torch.optim.NAdam, dict(lr=0.02, betas=(0.8, 0.9), weight_decay=0.1, momentum_decay=0.5)),
    "nadam_steady": (torch.optim.NAdam, dict(lr=0.02, momentum_decay=0)),
    "nadam_decoupled": (torch.optim.NAdam, dict(lr=0.02, weight_decay=0.2, decoupled_weight_decay=True, maximize=True)),
    "radam_decoupled": (torch.optim.RAdam, dict(lr=0.05, betas=(0.5, 0.9), weight_decay=0.2, decoupled_weight_decay=True, maximize=True)),
    "rprop_maximize": (torch.optim.Rprop, dict(lr=0.01, maximize=True)),
    "radam": (torch.optim.RAdam, dict(lr=0.05)),
    "radam_early": (torch.optim.RAdam, dict(lr=0.05, betas=(0.5, 0.9), weight_decay=0.1)),
    "rmsprop": (torch.optim.RMSprop, dict(lr=0.01)),
    "rmsprop_momentum": (torch.optim.RMSprop, dict(lr=0.01, alpha=0.9, momentum=0.9, weight_decay=0.1)),
    "rmsprop_centered": (torch.optim.RMSprop, dict(lr=0.01, alpha=0.5, centered=True, maximize=True)),
    "rmsprop_both": (torch.optim.RMSprop, dict(lr=0.01, alpha=0.5, centered=True, momentum=0.5)),
    "adagrad": (torch.optim.Adagrad, dict(lr=0.1)),
    "adagrad_decay": (torch.optim.Adagrad, dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5)),
    "adadelta": (torch.optim.Adadelta, dict(lr=1.0)),
    "adadelta_decay": (torch.optim.Adadelta, dict(lr=0.5, rho=0.5, eps=1e-3, weight_decay=0.1, maximize=True)),
    "rprop": (torch.optim.Rprop, dict(lr=0.01)),
    "rprop_steps": (torch.optim.Rprop, dict(lr=0.1, etas=(0.2, 2.0), step_sizes=(0.05, 0.3))),
    "asgd": (torch.optim.ASGD, dict(lr=0.1, lambd=0.1)),
    "asgd_average": (torch.optim.ASGD, dict(lr=0.1, lambd=0.1, alpha=0.5, t0=1, weight_decay=0.1)),
}


class Plain(torch.optim.Optimizer):
    """One whose rule, update(p, g, state, t), is written out here from the paper."""

    def __init__(self, params, foreach=False, **options):
        super().__init__(params, options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state[p]
                    state["t"] = state.get("t", 0) + 1
                    self.update(p, p.grad, state, group)


class LAMB(Plain):
    """You et al. 2020, algorithm 2."""

    def update(self, p, g, state, o):
        m = state.setdefault("m", torch.zeros_like(p))
        v = state.setdefault("v", torch.zeros_like(p))
        b1, b2 = o.get("betas", (0.9, 0.999))
        m.mul_(b1).add_(g, alpha=1 - b1)
        v.mul_(b2).addcmul_(g, g, value=1 - b2)
        r = m / (1 - b1 ** state["t"]) / ((v / (1 - b2 ** state["t"])).sqrt() + o.get("eps", 1e-6))
        u = r + o.get("weight_decay", 0) * p
        p.sub_(o["lr"] * p.norm() / u.norm() * u)


class Muon(Plain):
    """Jordan et al. 2024, with torch.optim.Muon's defaults; vectors are left alone."""

    def update(self, p, g, state, o):
        if p.dim() != 2:
            return
        mu = o.get("momentum", 0.95)
        buf = state.setdefault("buf", torch.zeros_like(p))
        buf.lerp_(g, 1 - mu)
        x = g.lerp(buf, mu) if o.get("nesterov", True) else buf.clone()
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        x = x / x.norm().clamp(min=1e-7)
        for _ in range(5):
            gram = x @ x.T
            x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
        x = x.T if tall else x
        ratio = max(1, p.shape[0] / p.shape[1]) ** 0.5
        if o.get("match", False):
            ratio = 0.2 * max(p.shape) ** 0.5
        p.mul_(1 - o["lr"] * o.get("weight_decay", 0.1)).sub_(o["lr"] * ratio * x)


VARIANTS["lamb"] = (LAMB, dict(lr=0.02))
VARIANTS["lamb_decay"] = (LAMB, dict(lr=0.02, betas=(0.5, 0.9), weight_decay=0.3))
VARIANTS["muon"] = (Muon, dict(lr=0.02))
VARIANTS["muon_adjust"] = (Muon, dict(lr=0.02, momentum=0.5, nesterov=False, match=True, weight_decay=0.0))


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

# Rosenbrock's valley by L-BFGS, from the first start (float64).
def valley(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


for name, options in {
    "lbfgs": dict(lr=1e-3),
    "lbfgs_wolfe": dict(lr=1, line_search_fn="strong_wolfe"),
    "lbfgs_short": dict(lr=0.5, max_iter=7, history_size=3, line_search_fn="strong_wolfe"),
    "lbfgs_capped": dict(lr=1, max_eval=9, line_search_fn="strong_wolfe", maximize=True),
}.items():
    params = [x.clone().requires_grad_() for x in start]
    optimizer = torch.optim.LBFGS(params, **options)
    sign = -1 if options.get("maximize") else 1

    def closure():
        optimizer.zero_grad()
        loss = sign * valley(torch.cat([x.view(-1) for x in params]))
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(3)]
    show(name + "_losses", torch.tensor(losses, dtype=torch.float64))
    for i, x in enumerate(params):
        show("%s_%d_f64" % (name, i), x)
