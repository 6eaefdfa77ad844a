"""products.py -- rows of matrix products, beside OpenBLAS and PyTorch."""
import os
import statistics

from sides import ROOT, Side, measured, ratio, say, torch_side, wrong

SHAPES = """32x32x32 NN  64x64x64 NN  128x128x128 NN  256x256x256 NN  512x512x512 NN
1024x1024x1024 NN  2048x2048x2048 NN  64x128x784 NT  64x784x128 NN  128x784x64 TN
128x128x784 NT  128x10x128 NT  128x128x10 NN  10x128x128 TN  512x1536x384 NT
512x384x1536 NN  1536x384x512 TN  1024x384x128 NT  1x1024x1024 NN"""


def shapes():
    """Pairs of a shape and a form."""
    words = SHAPES.split()
    return list(zip(words[::2], words[1::2]))


def request(shape, form, options):
    return "%s %d %d %f" % (shape.replace("x", " "), form[0] == "T", form[1] == "T", options.seconds / 4)


def tern_side(device, dtype, options):
    return Side(device, [os.path.join(options.build, "bench", "bench_gemm"), device, dtype])


def openblas(options):
    return Side("OpenBLAS", [os.path.join(options.build, "bench", "bench_openblas")],
                OPENBLAS_THREAD_TIMEOUT="18")


def pytorch(dtype, options):
    return torch_side("PyTorch", [
        options.python, "-B", os.path.join(ROOT, "bench", "peer_arrays.py"), "products",
        options.peer, dtype], options.peer, os.cpu_count())


def row(name, shape, form, sides, tolerance, options):
    """Each side's speed, and the first one's over the second's, whose results must agree."""
    turns = {s: [] for s in sides}
    for _ in range(min(options.rounds, 5) + 1):
        for s in sides:
            turns[s].append([float(x) for x in s.ask(request(shape, form, options))
                             if x != "none"])
    mine, other = [[t for t in turns[s][1:] if t] for s in sides]
    title = " ".join(x for x in (name, shape, form) if x)
    if not mine:
        wrong.append(title)
        return say("%-32s    failed" % title)
    text = "%-32s %9.1f" % (title, statistics.median(t[0] for t in mine))
    if other:
        over = ratio([t[0] for t in mine], [t[0] for t in other])
        right = abs(mine[0][1] - other[0][1]) <= tolerance * other[0][2]
        text += " %9.1f %7.2f%s" % (statistics.median(t[0] for t in other), over,
                                    "" if right else "  WRONG RESULT")
        if right:
            measured["product", sides[0].name, title] = over
        else:
            wrong.append(title)
    say(text)


def gemm_rows(device, version, options):
    """The shapes of small models in float32."""
    on_gpu = options.peer != "cpu" and version
    peer = pytorch("f32", options) if on_gpu else openblas(options)
    sides = [tern_side(device, "f32", options).start(), peer.start()]
    say("\nsgemm, GFLOP/s, eight in a row   %9s %9s   ratio" % (device, peer.name))
    for shape, form in shapes():
        row("", shape, form, sides, 1e-4, options)
    for s in sides:
        s.close()


def large_rows(device, options):
    """One large product in each type."""
    shape = "x".join(["%d" % options.product] * 3)
    say("\nproducts, GFLOP/s, eight in a row%9s %9s   ratio" % (device, "PyTorch"))
    for dtype in "f32", "f16", "bf16":
        sides = [tern_side(device, dtype, options).start(), pytorch(dtype, options).start()]
        row(dtype, shape, "NN", sides, 1e-4 if dtype == "f32" else 1e-3, options)
        for s in sides:
            s.close()
