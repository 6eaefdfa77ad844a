"""PyTorch's own samples (torch.testing's OpInfo) on a device beside the cpu: values, and gradients
where there are any.

    opinfo.py [--count N] [--dtype float32] [--samples 4] [--device tern:0] [--table FILE] [--here]

Prints the counts of operations that passed, of those that needed the cpu, of failed and skipped
ones, and fails where one fails that `opinfo_known.txt` does not list, or where a listed one passes.
--count N takes every k-th operation so that there are N. --table writes them as a document's table.
A process that dies is started again behind the operation that ended it, which counts as failed;
--here examines the operations in this process."""
import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest.mock
import warnings

HERE = pathlib.Path(__file__).resolve().parent
CLOSE = {"float32": dict(rtol=1e-3, atol=1e-4), "float64": dict(rtol=1e-6, atol=1e-6),
         "float16": dict(rtol=1e-2, atol=1e-2), "bfloat16": dict(rtol=5e-2, atol=5e-2)}
# The values of these are whatever the memory holds: shapes and dtypes are compared.
UNINITIALIZED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty",
                 "new_empty_strided")


def name_of(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def tensor_on(x, device):
    """A copy of x with its strides, on a copy of its whole storage."""
    import torch
    x = x.detach()
    if x.layout != torch.strided or x.is_conj() or x.is_neg() or not x.numel():
        return x.to(device)
    whole = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
    return whole.to(device, copy=True).as_strided(x.shape, x.stride(), x.storage_offset()).detach()


def moved(x, device, grad, stays=None):
    """x with its tensors on a device, as leaves; those stay on the cpu for which stays, an iterator
    over all of them, has True."""
    import torch
    if isinstance(x, torch.Tensor):
        y = tensor_on(x, "cpu" if stays and next(stays) else device)
        return y.requires_grad_(grad and x.requires_grad) if y.is_leaf else y
    if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size):
        items = [moved(y, device, grad, stays) for y in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if isinstance(x, dict):
        return {k: moved(v, device, grad, stays) for k, v in x.items()}
    if isinstance(x, torch.device):
        return torch.device(device)
    return device if isinstance(x, str) and x == "cpu" else x


def tensors(x):
    import torch
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [z for y in x for z in tensors(y)] if isinstance(x, (list, tuple)) else []


def evaluate(op, sample, device, grad, stays=None):
    """The results of an operation, and the gradients of its inputs, on the cpu."""
    import torch
    x, args, kwargs = (moved(v, device, grad, stays)
                       for v in (sample.input, sample.args, sample.kwargs))
    torch.manual_seed(1)
    result = op(x, *args, **kwargs)
    if sample.output_process_fn_grad:
        result = sample.output_process_fn_grad(result)
    grads = []
    leaves = [z for z in tensors([x, args, kwargs]) if z.requires_grad]
    ends = [z for z in tensors(result) if z.requires_grad and z.dtype.is_floating_point]
    if grad and leaves and ends:
        torch.manual_seed(2)
        incoming = [torch.linspace(-1, 1, z.numel()).reshape(z.shape).to(z.device, z.dtype)
                    for z in ends]
        grads = torch.autograd.grad(ends, leaves, incoming, allow_unused=True)
    return ([z.detach().cpu() for z in tensors(result)],
            [None if z is None else z.detach().cpu() for z in grads])


def on_the_device(op, dtype, sample, index, arguments, grad):
    """What the device gives. Where it wants an argument on the cpu, the operation's own samples for
    a device say which one (tensor_split's indices)."""
    try:
        return evaluate(op, sample, arguments.device, grad)
    except RuntimeError as error:
        if "cpu" not in str(error).lower():
            raise
        own = next(itertools.islice(op.sample_inputs(arguments.device, dtype, requires_grad=grad),
                                    index, None))
        stays = [x.device.type == "cpu" for x in tensors([own.input, own.args, own.kwargs])]
        if not any(stays):
            raise
        return evaluate(op, sample, arguments.device, grad, stays=iter(stays))


def is_same(a, b):
    """Bit for bit, and NaN where the other has NaN."""
    import torch
    return a.shape == b.shape and a.dtype == b.dtype and \
        (torch.equal(a, b) or bool(((a == b) | (a.isnan() & b.isnan())).all()))


def draws(op, sample, grad, want):
    """Whether other seeds have other results on the cpu itself: a sample with dropout, or random
    numbers. (Some operations of PyTorch's list begin with a seed of their own.)"""
    import torch
    set_seed = torch.manual_seed
    for more in (5, 11, 23):  # a few numbers of a small range may be the same for two seeds
        with unittest.mock.patch("torch.manual_seed", lambda seed: set_seed(seed + more)):
            other = evaluate(op, sample, "cpu", grad)
        if not all(map(is_same, want[0], other[0])):
            return True
    return False


def compare(want, got, close, is_random):
    import torch
    assert len(want[0]) == len(got[0]), "number of results"
    assert len(want[1]) == len(got[1]), "number of gradients"
    if is_random:
        for a, b in zip(want[0], got[0]):
            assert a.shape == b.shape and a.dtype == b.dtype, "shape or dtype of random numbers"
        return
    for kind, a_list, b_list in (("value", want[0], got[0]), ("gradient", want[1], got[1])):
        for a, b in zip(a_list, b_list):
            assert (a is None) == (b is None), "a gradient is missing"
            if a is not None:
                try:
                    torch.testing.assert_close(b, a, **close, equal_nan=True)
                except AssertionError as error:
                    raise AssertionError(f"{kind}: {error}") from None


def examine(op, dtype, arguments):
    """One line of the results: what happened with the samples of an operation."""
    import torch
    name = name_of(op)
    close = CLOSE.get(arguments.dtype, dict(rtol=0, atol=0))
    row = {"op": name, "what": "passed", "samples": 0, "why": ""}
    torch.tern.reset_counts()
    start = time.process_time()
    try:
        grad = op.supports_autograd and dtype.is_floating_point
        samples = op.sample_inputs("cpu", dtype, requires_grad=grad)
        for index, sample in enumerate(itertools.islice(samples, arguments.samples)):
            if time.process_time() - start > 20:
                break
            try:
                want = evaluate(op, sample, "cpu", grad)
            except Exception:
                continue  # PyTorch's cpu does not take it either
            got = on_the_device(op, dtype, sample, index, arguments, grad)
            try:
                compare(want, got, close, name in UNINITIALIZED)
            except AssertionError:
                if not draws(op, sample, grad, want):
                    raise
                compare(want, got, close, True)
            row["samples"] += 1
        if not row["samples"]:
            row["what"] = "skipped"
    except Exception as error:
        row["what"] = "failed"
        row["why"] = f"{type(error).__name__}: {error}".replace("\n", " ")[:240]
    row["fallbacks"] = {k: v[1][:100] for k, v in torch.tern.fallbacks().items()}
    return row


def chosen(arguments):
    """The operations that --count and --only choose, and the dtype."""
    warnings.filterwarnings("ignore")
    import torch
    import torch_tern  # noqa: F401
    from torch.testing._internal.common_methods_invocations import op_db
    dtype = getattr(torch, arguments.dtype)
    ops = [op for op in op_db if dtype in op.dtypes]
    if arguments.count and arguments.count < len(ops):
        ops = [ops[i * len(ops) // arguments.count] for i in range(arguments.count)]
    if arguments.only:
        ops = [op for op in ops if name_of(op) in arguments.only.split(",")]
    return ops, dtype


def work(arguments):
    """Examines what is not in the file yet, line by line."""
    ops, dtype = chosen(arguments)
    with open(arguments.work) as file:
        done = {json.loads(line)["op"] for line in file}
    with open(arguments.work, "a", buffering=1) as file:
        for op in ops:
            if name_of(op) not in done:
                file.write(json.dumps({"op": name_of(op), "what": "failed",
                                       "why": "the process ended", "fallbacks": {}}) + "\n")
                file.write(json.dumps(examine(op, dtype, arguments)) + "\n")
        file.write(json.dumps({"op": "", "what": "end"}) + "\n")


def run(arguments):
    """The rows of all operations, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows")
        open(path, "w").close()
        rows = {}
        while "" not in rows:
            before = len(rows)
            subprocess.run([sys.executable, "-W", "ignore", __file__, "--work", path,
                            *arguments.passed_on], stderr=None if arguments.verbose else
                           subprocess.DEVNULL)
            with open(path) as file:
                rows = {row["op"]: row for row in map(json.loads, file)}
            if len(rows) == before:
                sys.exit("opinfo: the process ends before it examines an operation")
        del rows[""]
        return rows


def known(dtype):
    """Operations that are expected to fail with a dtype, with the reasons."""
    path = HERE / "opinfo_known.txt"
    listed = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            names, name, reason = line.split(None, 2)
            if dtype in names.split(","):
                listed[name] = reason
    return listed


def write_table(path, rows, arguments):
    by_cpu = {}
    for row in rows.values():
        for operation, reason in row.get("fallbacks", {}).items():
            by_cpu.setdefault(operation, reason)
    lines = [f"| {row['op']} | {row['why'][:160].replace('|', '/')} |" for row in rows.values()
             if row["what"] == "failed"]
    count = {what: sum(row["what"] == what for row in rows.values())
             for what in ("passed", "failed", "skipped")}
    alone = sum(row["what"] == "passed" and not row["fallbacks"] for row in rows.values())
    text = [f"{arguments.dtype}, {len(rows)} operations: {count['passed']} pass, {alone} of them "
            f"without the cpu; {count['failed']} fail; {count['skipped']} take no samples", "",
            "| operation | how it differs |", "|---|---|", *lines, "",
            "Operations of PyTorch's that ran on the cpu in these tests: " +
            ", ".join(f"`{name.replace('aten::', '')}`" for name in sorted(by_cpu)) + ".", ""]
    pathlib.Path(path).write_text("\n".join(text))


def report(rows, arguments):
    """Prints the counts and what failed; how many operations did not do what was expected."""
    of = {what: [r for r in rows.values() if r["what"] == what]
          for what in ("passed", "failed", "skipped")}
    by_cpu = [row for row in of["passed"] if row["fallbacks"]]
    print(f"opinfo {arguments.dtype} on {arguments.device}: {len(of['passed'])} passed, of which "
          f"{len(by_cpu)} with a fallback to the cpu, {len(of['failed'])} failed, "
          f"{len(of['skipped'])} skipped")
    listed = known(arguments.dtype)
    wrong = 0
    for row in rows.values():
        if row["what"] == "failed" and row["op"] in listed:
            print(f"  {row['op']}: known ({listed[row['op']]})")
        elif row["what"] == "failed":
            wrong += 1
            print(f"  {row['op']}: FAILED {row['why']}")
        elif row["what"] == "passed" and row["op"] in listed:
            wrong += 1
            print(f"  {row['op']}: passes, and opinfo_known.txt says that it fails")
    return wrong


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--device", default="tern:0")
    parser.add_argument("--only", default="")
    parser.add_argument("--table")
    parser.add_argument("--rows")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--work")
    parser.add_argument("--here", action="store_true")
    arguments = parser.parse_args(words)
    if arguments.work:
        return work(arguments)
    arguments.passed_on = ["--count", str(arguments.count), "--dtype", arguments.dtype,
                           "--samples", str(arguments.samples), "--device", arguments.device,
                           "--only", arguments.only]
    if arguments.here:
        ops, dtype = chosen(arguments)
        rows = {name_of(op): examine(op, dtype, arguments) for op in ops}
    else:
        rows = run(arguments)
    wrong = report(rows, arguments)
    if arguments.table:
        write_table(arguments.table, rows, arguments)
    if arguments.rows:
        pathlib.Path(arguments.rows).write_text(json.dumps(rows))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
