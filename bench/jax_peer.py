"""jax_peer.py -- JAX's side of the comparison, on the cpu: jax_peer.py serve MODEL STEM. The models of
models.py in JAX's own style: one jitted function is the whole step, and gives its buffers away. Weights,
data and options are those that peer.py wrote; the requests are peer.py's too."""
import resource
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import models_options
from turn import turn

FIRST_STEPS = 5


def read(name, stem):
    """The options, and the tensors by name."""
    raw, changes, tensors = open(stem + ".raw", "rb").read(), [], {}
    for line in open(stem + ".txt"):
        if " = " in line:
            changes.append("=".join(line.strip().split(" = ")))
            continue
        key, kind, at, *shape = line.split()
        shape = tuple(int(n) for n in shape)
        dtype = np.int64 if kind == "i64" else np.float32
        array = np.frombuffer(raw, dtype, int(np.prod(shape)), int(at)).reshape(shape)
        tensors[key] = jnp.asarray(array.astype(np.int32) if kind == "i64" else array)
    return models_options.options_of(name, changes), tensors


# ---- layers: p are the parameters, n is a layer's name as PyTorch has it --------------------------

def linear(p, n, x):
    x = x @ p[n + ".weight"].T
    return x + p[n + ".bias"] if n + ".bias" in p else x


def convolution(p, n, x, stride=1, padding=0):
    y = jax.lax.conv_general_dilated(x, p[n + ".weight"], (stride, stride), [(padding, padding)] * 2)
    return y + p[n + ".bias"][:, None, None] if n + ".bias" in p else y


def max_pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def normalized(p, n, x, axes, shape):
    mean = x.mean(axes, keepdims=True)
    variance = jnp.square(x - mean).mean(axes, keepdims=True)
    weight, bias = p[n + ".weight"].reshape(shape), p[n + ".bias"].reshape(shape)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * weight + bias


def layer_norm(p, n, x):
    return normalized(p, n, x, -1, -1)


def batch_norm(p, n, x):
    return normalized(p, n, x, (0, 2, 3), (1, -1, 1, 1))


def cross_entropy(logits, target):
    logs = jax.nn.log_softmax(logits, -1)
    return -jnp.take_along_axis(logs, target[:, None], 1).mean()


# ---- models: the loss of parameters p on the data -------------------------------------------------

def loss_a(p, x, y, o):
    return jnp.square(x @ p["weight"].T + p["bias"] - y).mean()


def loss_b(p, x, y, o):
    x = jax.nn.relu(linear(p, "0", x))
    return cross_entropy(linear(p, "4", jax.nn.relu(linear(p, "2", x))), y)


def loss_c(p, x, y, o):
    x = max_pool(jax.nn.relu(convolution(p, "0", x, padding=2)))
    x = max_pool(jax.nn.relu(convolution(p, "3", x)))
    x = jax.nn.relu(linear(p, "7", x.reshape(x.shape[0], -1)))
    return cross_entropy(linear(p, "11", jax.nn.relu(linear(p, "9", x))), y)


def residual(p, n, x, stride):
    y = jax.nn.relu(batch_norm(p, n + ".norm1", convolution(p, n + ".conv1", x, stride, 1)))
    y = batch_norm(p, n + ".norm2", convolution(p, n + ".conv2", y, 1, 1))
    if n + ".shortcut.0.weight" in p:
        x = batch_norm(p, n + ".shortcut.1", convolution(p, n + ".shortcut.0", x, stride))
    return jax.nn.relu(y + x)


def loss_d(p, x, y, o):  # without running statistics, which do not change the losses
    x = jax.nn.relu(batch_norm(p, "1", convolution(p, "0", x, padding=1)))
    x = residual(p, "5", residual(p, "4", residual(p, "3", x, 1), 2), 2)
    return cross_entropy(linear(p, "8", x.mean((2, 3))), y)


def attention(p, n, x, heads):
    batch, length, width = x.shape
    q, k, v = (t.reshape(batch, length, heads, -1).swapaxes(1, 2)
               for t in jnp.split(linear(p, n + ".qkv", x), 3, -1))
    scores = q @ k.swapaxes(-1, -2) * (width // heads) ** -0.5
    seen = jnp.tril(jnp.ones((length, length), bool))
    y = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1) @ v
    return linear(p, n + ".out", y.swapaxes(1, 2).reshape(x.shape))


def loss_e(p, x, y, o):
    h = p["token.weight"][x] + p["position.weight"][:x.shape[1]]
    for i in range(o["layers"]):
        n = "blocks.%d." % i
        h = h + attention(p, n + "attention", layer_norm(p, n + "norm1", h), o["heads"])
        inner = jax.nn.gelu(linear(p, n + "mlp.0", layer_norm(p, n + "norm2", h)), approximate=False)
        h = h + linear(p, n + "mlp.2", inner)
    logits = linear(p, "head", layer_norm(p, "norm", h))
    return cross_entropy(logits.reshape(-1, logits.shape[-1]), y)


def loss_f(p, x, y, o):
    inputs = p["embedding.weight"][x] @ p["lstm.weight_ih_l0"].T
    inputs = inputs + p["lstm.bias_ih_l0"] + p["lstm.bias_hh_l0"]

    def cell(state, now):
        h, c = state
        i, f, g, o = jnp.split(now + h @ p["lstm.weight_hh_l0"].T, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[0], p["lstm.weight_hh_l0"].shape[1]))
    hidden = jax.lax.scan(cell, (zeros, zeros), inputs.swapaxes(0, 1))[1].swapaxes(0, 1)
    return cross_entropy(linear(p, "head", hidden).reshape(-1, 65), y)


# ---- optimizers: (p, s, g, t) to the new p and s ---------------------------------------------------

def sgd(lr, momentum=0.0):
    def update(p, s, g, t):
        s = jax.tree.map(lambda b, d: momentum * b + d, s, g) if momentum else s
        return jax.tree.map(lambda w, d: w - lr * d, p, s if momentum else g), s
    return update


def adam(lr, decay=0.0):
    def update(p, s, g, t):
        new_p, new_s = {}, {}
        for k, d in g.items():
            m, v = 0.9 * s[k][0] + 0.1 * d, 0.999 * s[k][1] + 0.001 * jnp.square(d)
            way = (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
            new_p[k], new_s[k] = p[k] * (1 - lr * decay) - lr * way, (m, v)
        return new_p, new_s
    return update


def stepper(name, stem):
    """A function that does one step and returns its loss."""
    options, p = read(name, stem)
    x, y = p.pop("x"), p.pop("y")
    lr = options.get("lr")
    if name == "add":
        add = jax.jit(jnp.add)
        return lambda: add(x, y)
    with_adam = name in ("c", "e", "f")
    update = adam(lr, 0.01 if name == "e" else 0.0) if with_adam else sgd(lr, 0.9 if name == "d" else 0.0)
    state = {k: (jnp.zeros_like(w),) * 2 if with_adam else jnp.zeros_like(w) for k, w in p.items()}
    state = jax.tree.map(jnp.copy, state)  # buffers that are given away are each their own
    loss_of = globals()["loss_" + name]

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(p, s, t):
        loss, g = jax.value_and_grad(loss_of)(p, x, y, options)
        return (*update(p, s, g, t + 1), t + 1, loss)

    held = [p, state, jnp.float32(0)]

    def one():
        *held[:], loss = step(*held)
        return loss
    return one


def serve(name, stem):
    step, last = stepper(name, stem), [None]

    def one():
        last[0] = step()
    print("losses", *["%.7g" % float(jnp.ravel(step())[0]) for _ in range(FIRST_STEPS)], flush=True)
    for line in sys.stdin:
        if line.startswith("time "):
            seconds = turn(one, float(line[5:]), lambda: last[0].block_until_ready())
            print("%.9g" % seconds, flush=True)
        else:
            print("%.1f" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024), flush=True)


serve(*sys.argv[2:])
