"""graphs.py FOLDER [SEEDS] -- small ONNX graphs of operations with onnxruntime's results, for test_onnx_operators.

Needs onnx, onnxruntime and numpy (1.23.2, 1.32.0, 2.4.6 made what is here). NAME.onnx, and NAME.npz with its inputs i0, i1, ... and
results o0, o1, ... With SEEDS the models of a few KiB go there too, as fuzz_onnx reads them: types and sizes of the inputs in front.
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(7)
TYPES = {np.dtype("float32"): T.FLOAT, np.dtype("int64"): T.INT64, np.dtype("bool"): T.BOOL, np.dtype("uint8"): T.UINT8,
         np.dtype("int8"): T.INT8, np.dtype("int32"): T.INT32}


def reals(*shape):
    return R.standard_normal(shape).astype("float32")


def bytes_of(kind, *shape):
    low = -128 if kind == "int8" else 0
    return R.integers(low, low + 256, shape).astype(kind)


def value(name, array=None, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind if array is None else TYPES[array.dtype], None if array is None else list(array.shape))


def write(name, nodes, inputs, outputs, constants=None, opset=17, microsoft=False):
    """outputs: names with types. The graph's inputs are the keys of inputs."""
    constants = constants or {}
    graph = h.make_graph(nodes, name, [value(k, x) for k, x in inputs.items()], [value(k, kind=t) for k, t in outputs.items()],
                         [nh.from_array(x, k) for k, x in constants.items()])
    sets = [h.make_opsetid("", opset)] + ([h.make_opsetid("com.microsoft", 1)] if microsoft else [])
    model = h.make_model(graph, opset_imports=sets, ir_version=8)
    onnx.save(model, name + ".onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(name + ".onnx", options, providers=["CPUExecutionProvider"])
    results = session.run(None, inputs)
    arrays = {"i%d" % i: x for i, x in enumerate(inputs.values())}
    arrays.update({"o%d" % i: x for i, x in enumerate(results)})
    np.savez(name + ".npz", **arrays)
    kinds = {"float32": 0, "int64": 1, "bool": 2, "uint8": 3}
    text = model.SerializeToString()
    if SEEDS and len(text) < 4096 and all(x.dtype.name in kinds and max(x.shape, default=0) <= 16 for x in inputs.values()):
        front = [len(inputs)] + [b for x in inputs.values() for b in (kinds[x.dtype.name], x.ndim, *x.shape)]
        with open(os.path.join(SEEDS, "operator_" + name), "wb") as file:
            file.write(bytes(front) + text)


def graph(name, nodes, inputs, outputs, constants=None):
    """A body; its numbers of turns and truth values are scalars, which onnxruntime wants to be told."""
    info = lambda k, t: h.make_tensor_value_info(k, t, [] if t == T.BOOL or k in ("i", "j") else None)
    return h.make_graph(nodes, name, [info(k, t) for k, t in inputs.items()], [info(k, t) for k, t in outputs.items()],
                        [nh.from_array(x, k) for k, x in (constants or {}).items()])


def i64(*x):
    return np.array(x, "int64")


def number(x):
    return np.array(x, "int64")


def control_flow():
    # The branch that is never taken has an operation that nobody has.
    yes = graph("yes", [h.make_node("Mul", ["x", "w"], ["r"])], {}, {"r": T.FLOAT}, {"w": reals(5)})
    no = graph("no", [h.make_node("Neg", ["x"], ["r"])], {}, {"r": T.FLOAT})
    write("if_constant", [h.make_node("Equal", ["one", "one"], ["c"]), h.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)],
          {"x": reals(2, 5)}, {"y": T.FLOAT}, {"one": i64(1)})
    # Both branches have names of their own that are the same, and one has an If inside, which reads of both bodies around.
    inner = graph("inner", [h.make_node("Add", ["t", "x"], ["q"])], {}, {"q": T.FLOAT})
    other = graph("other", [h.make_node("Sub", ["t", "x"], ["q"])], {}, {"q": T.FLOAT})
    yes = graph("yes", [h.make_node("Mul", ["x", "w"], ["t"]), h.make_node("If", ["d"], ["r"], then_branch=inner, else_branch=other)],
                {}, {"r": T.FLOAT, "t": T.FLOAT}, {"w": reals(5)})
    no = graph("no", [h.make_node("Add", ["x", "w"], ["t"]), h.make_node("Tanh", ["t"], ["r"]), h.make_node("Identity", ["x"], ["e"])], {},
               {"r": T.FLOAT, "e": T.FLOAT}, {"w": reals(5)})
    for c, d in ((True, True), (True, False), (False, True)):
        write("if_%d%d" % (c, d), [h.make_node("If", ["c"], ["y", "z"], then_branch=yes, else_branch=no)],
              {"x": reals(2, 5), "c": np.array(c), "d": np.array(d)}, {"y": T.FLOAT, "z": T.FLOAT})
    # A state, results that are stacked, a number of turns and no condition; a weight of the graph around.
    nodes = [h.make_node("MatMul", ["s", "w"], ["m"]), h.make_node("Tanh", ["m"], ["s2"]), h.make_node("Cast", ["i"], ["f"], to=T.FLOAT),
             h.make_node("Add", ["s2", "f"], ["row"]), h.make_node("Identity", ["go"], ["go2"])]
    body = graph("body", nodes, {"i": T.INT64, "go": T.BOOL, "s": T.FLOAT}, {"go2": T.BOOL, "s2": T.FLOAT, "row": T.FLOAT})
    for turns in (5, 1):
        write("loop_%d" % turns, [h.make_node("Loop", ["n", "", "x"], ["y", "rows"], body=body)],
              {"x": reals(2, 4), "n": number(turns)}, {"y": T.FLOAT, "rows": T.FLOAT}, {"w": reals(4, 4)})
    # While the sum is small; no number of turns.
    nodes = [h.make_node("Add", ["s", "x"], ["s2"]), h.make_node("ReduceSum", ["s2"], ["all"], keepdims=0),
             h.make_node("Less", ["all", "limit"], ["go2"])]
    body = graph("body", nodes, {"i": T.INT64, "go": T.BOOL, "s": T.FLOAT}, {"go2": T.BOOL, "s2": T.FLOAT})
    write("loop_while", [h.make_node("Loop", ["", "yes", "x"], ["y"], body=body)], {"x": np.abs(reals(3))}, {"y": T.FLOAT},
          {"limit": np.array(20, "float32"), "yes": np.array(True)})
    # A loop in a loop, which reads the number of the outer turn, and an If in it.
    then = graph("then", [h.make_node("Mul", ["a", "two"], ["r"])], {}, {"r": T.INT64})
    other = graph("other", [h.make_node("Add", ["a", "j"], ["r"])], {}, {"r": T.INT64})
    inner = graph("inner", [h.make_node("Greater", ["i", "k"], ["big"]), h.make_node("If", ["big"], ["a2"], then_branch=then, else_branch=other),
                            h.make_node("Identity", ["g"], ["g2"])],
                  {"j": T.INT64, "g": T.BOOL, "a": T.INT64}, {"g2": T.BOOL, "a2": T.INT64}, {"k": number(1)})
    nodes = [h.make_node("Loop", ["i", "", "s"], ["s2"], body=inner), h.make_node("Identity", ["go"], ["go2"])]
    body = graph("body", nodes, {"i": T.INT64, "go": T.BOOL, "s": T.INT64}, {"go2": T.BOOL, "s2": T.INT64})
    write("loop_nested", [h.make_node("Loop", ["n", "", "x"], ["y"], body=body)], {"x": i64(3, 4), "n": number(5)}, {"y": T.INT64},
          {"two": number(2)})
    # Scan: two inputs of other axes, one backwards, one result backwards.
    nodes = [h.make_node("Mul", ["s", "a"], ["t"]), h.make_node("Add", ["t", "b"], ["s2"]), h.make_node("Neg", ["s2"], ["r"]),
             h.make_node("Identity", ["b"], ["q"])]
    body = graph("body", nodes, {"s": T.FLOAT, "a": T.FLOAT, "b": T.FLOAT}, {"s2": T.FLOAT, "r": T.FLOAT, "q": T.FLOAT})
    write("scan", [h.make_node("Scan", ["s", "a", "b"], ["y", "rows", "other"], body=body, num_scan_inputs=2, scan_input_axes=[0, 1],
                               scan_input_directions=[0, 1], scan_output_axes=[0, 1], scan_output_directions=[1, 0])],
          {"s": reals(3), "a": reals(6, 3), "b": reals(3, 6)}, {"y": T.FLOAT, "rows": T.FLOAT, "other": T.FLOAT})


def spectra():
    step, n = number(4), number(16)
    for name, x, window, attributes in (("stft", reals(2, 50, 1), True, {}), ("stft_two_sided", reals(2, 50, 1), True, {"onesided": 0}),
                                        ("stft_plain", reals(1, 40, 1), False, {}), ("stft_pairs", reals(2, 32, 2), True, {"onesided": 0})):
        write(name, [h.make_node("STFT", ["x", "step", "window" if window else "", "n"], ["y"], **attributes)], {"x": x}, {"y": T.FLOAT},
              {"step": step, "n": n, **({"window": np.hanning(16).astype("float32")} if window else {})})
    for name, x, length, attributes in (("dft", reals(2, 12, 1), None, {}), ("dft_half", reals(2, 12, 1), None, {"onesided": 1}),
                                        ("dft_longer", reals(2, 12, 1), 16, {}), ("dft_shorter", reals(2, 12, 2), 7, {}),
                                        ("dft_pairs", reals(2, 3, 9, 2), None, {"axis": 2}),
                                        ("dft_inverse", reals(2, 12, 2), None, {"inverse": 1})):
        write(name, [h.make_node("DFT", ["x"] + (["n"] if length else []), ["y"], **attributes)], {"x": x}, {"y": T.FLOAT},
              {"n": number(length)} if length else {})
    write("dft_axis_input", [h.make_node("DFT", ["x", "", "axis"], ["y"])], {"x": reals(2, 8, 5, 1)}, {"y": T.FLOAT}, {"axis": i64(-3)[0]}, 20)
    for kind in ("Hann", "Hamming", "Blackman"):
        for periodic in (0, 1):
            write("%s_%d" % (kind.lower(), periodic), [h.make_node(kind + "Window", ["n"], ["y"], periodic=periodic)], {"n": number(9)},
                  {"y": T.FLOAT})
    write("mel", [h.make_node("MelWeightMatrix", ["bands", "n", "rate", "low", "high"], ["y"])], {"n": number(64)}, {"y": T.FLOAT},
          {"bands": number(6), "rate": number(8000), "low": np.array(20, "float32"), "high": np.array(3900, "float32")})


def quantized():
    u8, i8 = lambda *s: bytes_of("uint8", *s), lambda *s: bytes_of("int8", *s)
    scale = lambda n: R.uniform(0.01, 0.1, n).astype("float32")
    zero = np.array(7, "uint8")
    for name, x in (("dynamic_quantize", reals(3, 5)), ("dynamic_quantize_above", 1 + np.abs(reals(4))), ("dynamic_quantize_zeros", 0 * reals(3))):
        write(name, [h.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])], {"x": x}, {"y": T.UINT8, "s": T.FLOAT, "z": T.UINT8})
    write("quantize", [h.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])], {"x": 3 * reals(3, 9)}, {"y": T.UINT8},
          {"s": np.array(0.03, "float32"), "z": np.array(120, "uint8")})
    write("quantize_axis", [h.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], axis=1)], {"x": reals(2, 3, 4)}, {"y": T.INT8},
          {"s": scale(3), "z": np.array([0, -5, 9], "int8")})
    write("dequantize_axis", [h.make_node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=1)], {"x": i8(2, 3, 4)}, {"y": T.FLOAT},
          {"s": scale(3), "z": np.array([0, -5, 9], "int8")})
    write("dequantize_int32", [h.make_node("DequantizeLinear", ["x", "s"], ["y"])], {"x": R.integers(-9999, 9999, (3, 4)).astype("int32")},
          {"y": T.FLOAT}, {"s": np.array(0.01, "float32")})
    write("dequantize_blocks", [h.make_node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=1, block_size=4)], {"x": u8(3, 8)},
          {"y": T.FLOAT}, {"s": scale((3, 2)), "z": u8(3, 2)}, 21)
    for name, k, b in (("", 6, u8), ("_signed", 6, i8), ("_300", 300, u8), ("_5000", 5000, u8)):
        write("matmul_integer" + name, [h.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])], {"a": u8(4, k), "b": b(k, 3)},
              {"y": T.INT32}, {"za": zero, "zb": np.array(3, b(1).dtype)})
    write("matmul_integer_columns", [h.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])], {"a": u8(2, 4, 6), "b": u8(6, 3)},
          {"y": T.INT32}, {"za": zero, "zb": u8(3)})
    for name, x, w, attributes in (("", u8(1, 3, 6, 7), u8(4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
                                   ("_parted", u8(1, 64, 5, 5), u8(3, 64, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
                                   ("_groups", u8(1, 4, 6, 6), u8(4, 1, 3, 3), {"group": 4, "dilations": [2, 2]}),
                                   ("_same", u8(1, 2, 5, 5), u8(3, 2, 2, 2), {"auto_pad": "SAME_UPPER"})):
        write("conv_integer" + name, [h.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], **attributes)], {"x": x}, {"y": T.INT32},
              {"w": w, "zx": zero, "zw": np.array(130, "uint8")})
    write("qlinear_conv", [h.make_node("QLinearConv", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"], ["y"], pads=[1, 1, 1, 1])],
          {"x": u8(1, 3, 6, 6)}, {"y": T.UINT8},
          {"sx": np.array(0.02, "float32"), "zx": zero, "w": i8(4, 3, 3, 3), "sw": scale(4), "zw": np.zeros(4, "int8"),
           "sy": np.array(0.9, "float32"), "zy": np.array(128, "uint8"), "b": R.integers(-900, 900, 4).astype("int32")})
    write("qlinear_matmul", [h.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["y"])], {"a": u8(2, 4, 6)},
          {"y": T.UINT8}, {"sa": np.array(0.02, "float32"), "za": zero, "b": u8(6, 3), "sb": np.array(0.05, "float32"),
                           "zb": np.array(120, "uint8"), "sy": np.array(0.6, "float32"), "zy": np.array(100, "uint8")})
    units, steps, batch, size = 8, 5, 1, 6  # of a larger batch onnxruntime quantizes the parts that its threads have
    for directions in (1, 2):
        names = ["x", "w", "r", "b", "", "h", "c", "", "sw", "zw", "sr", "zr"]
        write("quantized_lstm_%d" % directions,
              [h.make_node("DynamicQuantizeLSTM", names, ["y", "yh", "yc"], domain="com.microsoft", hidden_size=units,
                           direction="forward" if directions == 1 else "bidirectional")],
              {"x": reals(steps, batch, size), "h": reals(directions, batch, units), "c": reals(directions, batch, units)},
              {"y": T.FLOAT, "yh": T.FLOAT, "yc": T.FLOAT},
              {"w": u8(directions, size, 4 * units), "r": u8(directions, units, 4 * units), "b": reals(directions, 8 * units),
               "sw": np.full(directions, 0.01, "float32"), "zw": np.full(directions, 128, "uint8"),
               "sr": np.full(directions, 0.01, "float32"), "zr": np.full(directions, 127, "uint8")}, microsoft=True)


def sequences():
    x, y, z = reals(6, 3), reals(2, 3), reals(4, 3)
    node, i64 = h.make_node, lambda *n: np.array(n, "int64")
    one = lambda n: np.array(n, "int64")
    write("sequence_split", [node("SplitToSequence", ["x", "parts"], ["s"], axis=0), node("SequenceAt", ["s", "one"], ["a"]),
                             node("SequenceLength", ["s"], ["n"]), node("ConcatFromSequence", ["s"], ["c"], axis=0)],
          {"x": x}, {"a": T.FLOAT, "n": T.INT64, "c": T.FLOAT}, {"parts": i64(1, 3, 2), "one": one(-2)})
    write("sequence_split_each", [node("SplitToSequence", ["x", "four"], ["s"], axis=0), node("SequenceAt", ["s", "one"], ["a"])],
          {"x": x}, {"a": T.FLOAT}, {"four": one(4), "one": one(1)})
    write("sequence_split_ones", [node("SplitToSequence", ["x"], ["s"], axis=1, keepdims=0),
                                  node("ConcatFromSequence", ["s"], ["c"], axis=-1, new_axis=1),
                                  node("SplitToSequence", ["x"], ["k"], axis=1), node("SequenceAt", ["k", "two"], ["a"])],
          {"x": x}, {"c": T.FLOAT, "a": T.FLOAT}, {"two": one(2)})
    write("sequence_changed", [node("SequenceConstruct", ["x", "y"], ["s"]), node("SequenceInsert", ["s", "z", "at"], ["s2"]),
                               node("SequenceInsert", ["s2", "y"], ["s3"]), node("SequenceErase", ["s3", "minus"], ["s4"]),
                               node("SequenceErase", ["s4"], ["s5"]), node("Identity", ["s5"], ["s6"]),
                               node("ConcatFromSequence", ["s6"], ["c"], axis=0), node("SequenceLength", ["s3"], ["n"])],
          {"x": x, "y": y, "z": z}, {"c": T.FLOAT, "n": T.INT64}, {"at": one(1), "minus": one(-4)})
    write("sequence_empty", [node("SequenceEmpty", [], ["s"]), node("SequenceLength", ["s"], ["n"]),
                             node("SequenceInsert", ["s", "x"], ["s1"]), node("SequenceAt", ["s1", "zero"], ["a"])],
          {"x": x}, {"n": T.INT64, "a": T.FLOAT}, {"zero": one(0)})
    step = graph("collect", [node("Mul", ["x", "two"], ["t"]), node("SequenceInsert", ["s", "t"], ["s2"]),
                             node("Identity", ["go"], ["go2"])], {"i": T.INT64, "go": T.BOOL}, {"go2": T.BOOL}, {"two": np.float32(2)})
    step.input.append(h.make_tensor_sequence_value_info("s", T.FLOAT, None))
    step.output.append(h.make_tensor_sequence_value_info("s2", T.FLOAT, None))
    write("sequence_loop", [node("SequenceEmpty", [], ["e"]), node("Loop", ["turns", "", "e"], ["s"], body=step),
                            node("ConcatFromSequence", ["s"], ["c"], axis=0, new_axis=1)],
          {"x": x}, {"c": T.FLOAT}, {"turns": one(3)})
    each = h.make_graph([node("Add", ["item", "other"], ["sum"]), node("ReduceSum", ["sum"], ["total"], keepdims=1)], "each",
                        [h.make_tensor_value_info(k, T.FLOAT, None) for k in ("item", "other")],
                        [h.make_tensor_value_info(k, T.FLOAT, None) for k in ("sum", "total")])
    write("sequence_map", [node("SplitToSequence", ["x", "two"], ["s"], axis=0), node("SequenceMap", ["s", "y"], ["a", "b"], body=each),
                           node("ConcatFromSequence", ["a"], ["c"], axis=0), node("ConcatFromSequence", ["b"], ["d"], axis=0)],
          {"x": x, "y": y}, {"c": T.FLOAT, "d": T.FLOAT}, {"two": one(2)})


def main(folder):
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    control_flow()
    spectra()
    quantized()
    sequences()


SEEDS = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
main(sys.argv[1])
