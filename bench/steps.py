"""steps.py -- rows of training steps: every way of tern's beside every way of PyTorch's."""
import os
import subprocess
import sys

from sides import ROOT, Side, measured, ratio, say, torch_side, unit, wrong

MODELS = {
    "add": "add, one element, forward",
    "a": "a: linear 10-1, batch 100, SGD",
    "b": "b: MLP 784-128-64-10, batch 64, SGD",
    "c": "c: LeNet, batch 64, Adam",
    "d": "d: ResNet 16-32-64, batch 32, SGD",
    "e": "e: GPT 4 x 128, T 64, batch 16, AdamW",
    "f": "f: LSTM 128, T 32, batch 32, Adam",
    "gpt2": "gpt2: 12 x 768, T 1024, batch 16, bf16",
    "resnet50": "resnet50: 224 x 224, batch 128, f16",
}
# These fill a GPU, and take minutes of a cpu, where --tiny has them in a second.
LARGE = {
    "gpt2": ["layers=2", "width=64", "heads=2", "vocabulary=101", "context=32", "batch=2",
             "dtype=f32"],
    "resnet50": ["width=8", "blocks=1-2", "classes=10", "side=32", "batch=8", "dtype=f32"],
}
CPU_WAYS = {"eager": "PyTorch", "compile": "torch.compile", "jax": "JAX"}
WAYS = {"eager": "eager", "compile": "torch.compile", "graphs": "CUDA graphs"}


def changes_of(name, options):
    """What of the model is not as its row's title says."""
    changes = LARGE.get(name, []) if options.tiny else []
    changes = changes + [x.split(".", 1)[1] for x in options.set if x.split(".", 1)[0] == name]
    return ["=".join(x) for x in dict(c.split("=") for c in changes).items()]


def agree(losses, reference, tolerance):
    pairs = list(zip(losses, reference))
    return len(pairs) == 5 and all(abs(a - b) <= tolerance * max(abs(b), 1e-3) for a, b in pairs)


def tolerance_of(device, chosen):
    if chosen.get("dtype", "f32") != "f32":
        return 2e-2
    return 1e-4 if device.startswith("cpu") else 1e-3


def cpu_peers(name, stem, options):
    """PyTorch as it is and compiled, with each number of threads, and JAX, which takes all."""
    command = [options.python, "-B", os.path.join(ROOT, "bench", "peer.py"), "serve", name, stem]
    jax = [options.python, "-B", os.path.join(ROOT, "bench", "jax_peer.py"), "serve", name, stem]
    sides = []
    for way in options.cpu_ways:
        if way == "compile" and (name == "add" or name in LARGE) or way == "jax" and name in LARGE:
            continue
        if way == "jax":
            sides.append(Side("", jax, JAX_PLATFORMS="cpu"))
        else:
            sides += [torch_side("%d" % n, command + ["%d" % n, "cpu", way], "cpu", n) for n in (1, 2)]
        for side in sides:
            side.kind = side.kind or CPU_WAYS[way]
    return sides


def gpu_ways(options):
    return [w for w in options.ways.split(",") if w in WAYS]


def peers_of(name, stem, options):
    """Ways of others to do the same."""
    command = [options.python, "-B", os.path.join(ROOT, "bench", "peer.py"), "serve", name, stem]
    if options.peer == "cpu":
        return cpu_peers(name, stem, options)
    ways = [w for w in gpu_ways(options) if name != "add" or w == "eager"]
    return [torch_side(WAYS[w], command + ["1", options.peer, w], options.peer) for w in ways]


def tern_sides(name, stem, devices, chosen, options):
    steps = os.path.join(options.build, "bench", "bench_steps")
    fixed = name != "add" and not float(chosen.get("clip", 0))  # clipping waits for the norm
    modes = [[], ["replay"]] if fixed and not options.no_replay else [[]]
    return [Side(" ".join([d] + m), [steps, name, stem, d] + m) for d in devices for m in modes]


def measure(sides, options):
    """One group of sides turn by turn: losses first, warm, then rounds."""
    for s in sides:
        s.start()  # unless it has
    for s in sides:
        s.losses = [float(x) for x in s.read()[1:]]
    for s in sides:  # warm
        s.ask("time %g" % (options.seconds / 2))
    for _ in range(options.rounds):
        for s in sides:
            answer = s.ask("time %g" % options.seconds)
            s.turns.append(float(answer[0]) if answer else float("nan"))
    for s in sides:
        s.memory = "".join(s.ask("memory"))
        s.close()


def compare(title, tern, columns, tolerance, key, options):
    """A row: what tern takes, then each column's time and the ratio; memory in the same order."""
    words = "%-38s %-15s %10s" % (title, tern.name, unit(tern.median()))
    reference = next(s for s in columns if s.memory)
    same = agree(tern.losses, reference.losses, tolerance)
    for s in columns:
        if not s.memory:
            words += " %14s %7s" % ("failed", "")
            continue
        over = ratio(s.turns, tern.turns)
        threads = " (%s)" % s.name if s.kind and s.name else ""
        words += " %14s %7.2f" % (unit(s.median()) + threads, over)
        if same and agree(s.losses, reference.losses, tolerance):
            measured[key, tern.name, s.kind or s.name] = over
        elif same:
            words += " (other losses)"
    if not same:
        wrong.append(key)
        return say(words + "  DOES NOT COUNT: losses %s, not %s" % (tern.losses, reference.losses))
    say(words + "  " + " / ".join([tern.memory] + [s.memory or "-" for s in columns]) + " MiB")


def header(options):
    names = [CPU_WAYS[w] for w in options.cpu_ways]
    if options.peer != "cpu":
        names = [WAYS[w] for w in gpu_ways(options)]
    say("\n%-38s %-15s %10s%s  peak memory of each" % (
        "one step", "device", "tern", "".join(" %14s   ratio" % n for n in names)))


def model_rows(name, devices, work, options):
    """A generator: once it has begun to write, and once what fits beside each other has started."""
    stem, changes = os.path.join(work, name), changes_of(name, options)
    title = name + ", changed" if changes else MODELS[name]
    peer = os.path.join(ROOT, "bench", "peer.py")
    write = subprocess.Popen([options.python, "-B", peer, "write", name, stem] + changes)
    yield
    if write.wait():
        sys.exit("bench/run: peer.py write %s ended with %d" % (name, write.returncode))
    with open(stem + ".txt") as index:
        chosen = dict(line.strip().split(" = ") for line in index if " = " in line)
    tern, peers = tern_sides(name, stem, devices, chosen, options), peers_of(name, stem, options)
    # The large ones do not fit into a GPU's memory beside each other.
    apart = name in LARGE and not options.tiny
    for s in [] if apart else tern + peers:
        s.start()
    yield
    if changes:
        say("%s with %s" % (name, " ".join(changes)))
    for group in [[s] for s in tern + peers] if apart else [tern + peers]:
        measure(group, options)
    os.remove(stem + ".raw")
    for s in [s for s in peers if not s.memory]:
        wrong.append(name)
        say("%-38s %-15s failed" % (title, "PyTorch, " + s.name))
    columns = peers if any(s.memory for s in peers) else []
    if columns and options.peer == "cpu":  # each at its best number of threads
        kinds = dict.fromkeys(s.kind for s in peers if s.memory)
        columns = [min([s for s in peers if s.memory and s.kind == k], key=Side.median) for k in kinds]
    elif columns and name == "add":  # which has one way
        columns = columns[:1]
    for s in tern:
        if s.memory and columns:
            compare(title, s, columns, tolerance_of(s.name, chosen), title if changes else name,
                    options)
        else:
            wrong.append(name)
            say("%-38s %-15s %s" % (title, s.name, "alone" if s.memory else "failed"))
