"""bandwidth.py -- rows of elementwise and row operations against a copy within the device."""
import os
import statistics

from sides import ROOT, Side, measured, ratio, say, torch_side, wrong

# Elementwise; then by rows, of the length that models have and of a short one.
ROWS = [("neg", 1024), ("add", 1024), ("gelu", 1024), ("cast", 1024), ("softmax", 1024),
        ("softmax", 64), ("layer_norm", 1024), ("layer_norm", 64), ("sum", 1024), ("sum", 64),
        ("transpose", 1024)]


def turn(side, request):
    answer = side.ask(request)
    return float(answer[0]) if answer else float("nan")


def title_of(dtype, name, columns):
    return "%s %s, rows of %d" % (dtype, name, columns)


def request(dtype, name, columns, options):
    return "%s %s %d %d %g" % (name, dtype, options.megabytes, columns, options.seconds / 4)


def row(device, dtype, name, columns, sides, options):
    """Each turn the copy first, then the operation on every side."""
    title = title_of(dtype, name, columns)
    copies, turns = [], {s: [] for s in sides}
    for _ in range(min(options.rounds, 5)):
        copies.append(turn(sides[0], request(dtype, "copy", columns, options)))
        for s in sides:
            turns[s].append(turn(s, request(dtype, name, columns, options)))
    medians = [statistics.median(turns[s]) for s in sides]
    if medians[0] != medians[0]:
        wrong.append("bandwidth")
        return say("%-32s    failed" % title)
    of_copy = ratio(turns[sides[0]], copies)
    measured["bandwidth of %d MiB" % options.megabytes, device, title] = of_copy
    say("%-32s %9.1f %9.1f %7.2f" % (title, statistics.median(copies), medians[0], of_copy) +
        "".join(" %9.1f" % m for m in medians[1:]))


def bandwidth_rows(device, version, options):
    sides = [Side("tern", [os.path.join(options.build, "bench", "bench_bandwidth"), device])]
    if version:
        sides.append(torch_side("PyTorch", [
            options.python, "-B", os.path.join(ROOT, "bench", "peer_arrays.py"), "bandwidth",
            options.peer], options.peer, os.cpu_count()))
    for s in sides:
        s.start()
    say("\n%-32s %9s %9s   ratio%s" % (
        "GB/s, arrays of %d MiB, %s" % (options.megabytes, device), "copy", "tern",
        "   PyTorch" if version else ""))
    for dtype in "f32", "bf16":
        for name, columns in ROWS:
            row(device, dtype, name, columns, sides, options)
    for s in sides:
        s.close()
