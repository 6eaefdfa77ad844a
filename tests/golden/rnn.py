#!/usr/bin/env python3
"""rnn.py -- PyTorch's recurrent networks with gradients: prints rnn.txt.

For each network: x, h0, c0 and parameters, the results, and gradients of the sum of the results times
`weight_of` their shapes, as "<network>.<name>" and "<network>.<name>.d". Made with PyTorch 2.15."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from golden import weight_of

torch.manual_seed(11)
torch.set_default_dtype(torch.float64)


def show(name, value):
    value = value.detach().double().contiguous()
    print(name, "float64", value.dim(), *value.shape)
    print(*["%.15g" % v for v in value.flatten().tolist()])


def run(name, model, x, states, lengths=None):
    leaves = dict(x=x, **states)
    for leaf in leaves.values():
        leaf.requires_grad_(True)
    hx = list(states.values())
    hx = None if not hx else tuple(hx) if len(hx) == 2 else hx[0]
    if lengths:
        packed = pack_padded_sequence(x, lengths, model.batch_first, enforce_sorted=False)
        y, last = model(packed, hx)
        y, _ = pad_packed_sequence(y, model.batch_first, padding_value=0.5)
    else:
        y, last = model(x, hx)
    results = dict(zip(("y", "hn", "cn"), (y, *last) if isinstance(last, tuple) else (y, last)))
    sum((r * weight_of(r)).sum() for r in results.values()).backward()
    for key, value in results.items():
        show(f"{name}.{key}", value)
    for key, value in {**leaves, **dict(model.named_parameters())}.items():
        show(f"{name}.{key}", value)
        show(f"{name}.{key}.d", value.grad)


def states(model, n, cell):
    d = model.num_layers * (2 if model.bidirectional else 1)
    found = dict(h0=torch.randn(d, n, model.proj_size or model.hidden_size))
    return dict(**found, c0=torch.randn(d, n, model.hidden_size)) if cell else found


print("# made by rnn.py with PyTorch", torch.__version__)
for name, kind, more in (("tanh", nn.RNN, {}), ("relu", nn.RNN, dict(nonlinearity="relu")),
                         ("gru", nn.GRU, {}), ("lstm", nn.LSTM, {})):
    cell = kind is nn.LSTM
    run(name, kind(3, 2, **more), torch.randn(3, 2, 3), {})
    m = kind(2, 2, 2, bidirectional=True, batch_first=True, bias=False, **more)
    run(name + "_deep", m, torch.randn(2, 3, 2), states(m, 2, cell))
    m = kind(2, 3, bidirectional=True, **more)
    run(name + "_packed", m, torch.randn(4, 3, 2), states(m, 3, cell), [2, 4, 1])
m = nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2)
run("projected", m, torch.randn(4, 2, 2), states(m, 2, True), [2, 4])
