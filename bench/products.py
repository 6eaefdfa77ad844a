"""products.py -- rows of matrix products, beside OpenBLAS."""
import os
import statistics

from sides import Side, ratio, say, wrong

SHAPES = """32x32x32 NN  64x64x64 NN  128x128x128 NN  256x256x256 NN  512x512x512 NN
1024x1024x1024 NN  2048x2048x2048 NN  64x128x784 NT  64x784x128 NN  128x784x64 TN
128x128x784 NT  128x10x128 NT  128x128x10 NN  10x128x128 TN  512x1536x384 NT
512x384x1536 NN  1536x384x512 TN  1024x384x128 NT  1x1024x1024 NN"""


def gemm_rows(device, options):
    folder = os.path.join(options.build, "bench")
    sides = [Side("tern", [os.path.join(folder, "bench_gemm"), device]).start(),
             Side("OpenBLAS", [os.path.join(folder, "bench_openblas")],
                  OPENBLAS_THREAD_TIMEOUT="18").start()]
    words = SHAPES.split()
    say("\nsgemm, GFLOP/s, eight in a row   %9s %9s   ratio" % (device, "OpenBLAS"))
    for shape, form in zip(words[::2], words[1::2]):
        request = "%s %d %d " % (shape.replace("x", " "), form[0] == "T", form[1] == "T")
        turns = {s: [] for s in sides}
        for _ in range(min(options.rounds, 5) + 1):
            for s in sides:
                turns[s].append([float(x) for x in s.ask(request + "%g" % (options.seconds / 4))
                                 if x != "none"])
        mine, other = [[t for t in turns[s][1:] if t] for s in sides]
        wrong.extend([] if mine else [shape])
        row = "%-32s %9.1f" % (shape + " " + form, statistics.median(t[0] for t in mine)) if mine \
            else "%-32s    failed" % (shape + " " + form)
        if mine and other:
            right = abs(mine[0][1] - other[0][1]) <= 1e-4 * other[0][2]
            wrong.extend([] if right else [shape])
            row += " %9.1f %7.2f%s" % (statistics.median(t[0] for t in other),
                                       ratio([t[0] for t in mine], [t[0] for t in other]),
                                       "" if right else "  WRONG RESULT")
        say(row)
    for s in sides:
        s.close()
