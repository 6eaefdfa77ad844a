"""PyTorch's own lists of modules and optimizers (torch.testing's module_db and optim_db), instantiated
for the device by PyTorch's harness, so that what its lists skip for every device is skipped here.

    databases.py [--only TEXT] [--count N] [--table FILE]

A module's forward, gradients, second gradients, arguments that are not contiguous, pickles, dtypes
and wrong arguments, and an optimizer's steps in each form, closures, states and wrong options are
compared with the cpu. PyTorch's test files are not in its wheel; the names of its tests are kept,
because the lists skip by them. Fails where a test fails that `databases_known.txt` does not list, or
where a listed one passes. --count N takes every k-th test so that there are N."""
import argparse
import copy
import fnmatch
import inspect
import pathlib
import pickle
import re
import sys
import unittest

import torch
import torch_tern  # noqa: F401
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db, modules
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db, optims
from torch.testing._internal.common_utils import TestCase, freeze_rng_state

HERE = pathlib.Path(__file__).resolve().parent
CLOSE = {torch.float64: (1e-6, 1e-6), torch.complex128: (1e-6, 1e-6), torch.float16: (1e-2, 1e-2),
         torch.complex32: (1e-2, 1e-2), torch.bfloat16: (5e-2, 5e-2)}  # rtol, atol


def assert_close(x, y):
    rtol, atol = CLOSE.get(y.dtype, (1e-3, 1e-4))
    torch.testing.assert_close(x, y, rtol=rtol, atol=atol, equal_nan=True)


def tree(x, change):
    """A copy of lists, tuples and dicts with each tensor changed."""
    if isinstance(x, torch.Tensor):
        return change(x)
    if isinstance(x, (list, tuple)):
        items = [tree(y, change) for y in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if isinstance(x, dict):
        return {k: tree(v, change) for k, v in x.items()}
    return x


def tensors(x):
    found = []
    tree(x, lambda y: found.append(y) or y)
    return found


def on(device):
    return lambda x: x.detach().to(device).requires_grad_(x.requires_grad)


class TestModule(TestCase):
    def samples(self, module_info, dtype, training, grad=False):
        """(module, positional and named arguments), on the cpu, of each sample."""
        with freeze_rng_state():
            torch.manual_seed(1)
            inputs = module_info.module_inputs_func(module_info, device="cpu", dtype=dtype,
                                                    requires_grad=grad, training=training)
        for sample in inputs:
            if sample.forward_input is None:
                continue
            given = sample.constructor_input
            with freeze_rng_state():
                torch.manual_seed(2)
                module = module_info.module_cls(*given.args, **given.kwargs).to(dtype)
                module.train(training)
                if module_info.is_lazy:
                    module(*sample.forward_input.args, **sample.forward_input.kwargs)
            for part in module.modules():  # two devices draw other numbers
                if "Dropout" in type(part).__name__ or isinstance(part, torch.nn.RReLU):
                    part.eval()
            if module.training and isinstance(getattr(module, "dropout", None), float):
                module.dropout = 0.0
            yield module, sample.forward_input.args, sample.forward_input.kwargs

    def result(self, module, args, kwargs, device, second=False):
        """The outputs, the gradients of parameters and inputs, or the second gradients."""
        module = copy.deepcopy(module).to(device)
        args, kwargs = tree(args, on(device)), tree(kwargs, on(device))
        torch.manual_seed(3)
        out = module(*args, **kwargs)
        ends = [y for y in tensors(out) if y.requires_grad]
        leaves = [x for x in [*tensors(args), *tensors(kwargs), *module.parameters()]
                  if x.requires_grad]
        grads = []
        if ends and leaves:
            weights = [torch.linspace(-1, 1, y.numel()).view(y.shape).to(y.device, y.dtype)
                       for y in ends]
            grads = torch.autograd.grad(ends, leaves, weights, allow_unused=True,
                                        create_graph=second)
            again = [g for g in grads if g is not None and g.requires_grad]
            if second and again:
                grads = torch.autograd.grad([(g * g).sum() for g in again], leaves,
                                            allow_unused=True)
        return tree(out, lambda y: y.detach().cpu()), [None if g is None else g.detach().cpu()
                                                       for g in grads]

    def compare(self, got, want):
        a, b = [*tensors(got[0]), *got[1]], [*tensors(want[0]), *want[1]]
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertEqual(x is None, y is None)
            if x is not None:
                assert_close(x, y)

    @modules(module_db)
    def test_forward(self, device, dtype, module_info, training):
        for sample in self.samples(module_info, dtype, training):
            with torch.no_grad():
                self.compare(self.result(*sample, device), self.result(*sample, "cpu"))

    @modules(module_db)
    def test_cpu_gpu_parity(self, device, dtype, module_info, training):
        for sample in self.samples(module_info, dtype, training, grad=True):
            self.compare(self.result(*sample, device), self.result(*sample, "cpu"))

    @modules([info for info in module_db if info.supports_gradgrad], allowed_dtypes=[torch.double])
    def test_gradgrad(self, device, dtype, module_info, training):
        for sample in self.samples(module_info, dtype, training, grad=True):
            try:
                want = self.result(*sample, "cpu", second=True)
            except RuntimeError:
                continue  # PyTorch has no second gradient there
            self.compare(self.result(*sample, device, second=True), want)

    @modules(module_db)
    def test_non_contiguous_tensors(self, device, dtype, module_info, training):
        def spread(x):
            wide = x.detach().to(device).unsqueeze(-1).repeat(*[1] * x.dim(), 2)
            y = wide[..., 0].requires_grad_(x.requires_grad)
            return y.detach().requires_grad_(x.requires_grad)
        for module, args, kwargs in self.samples(module_info, dtype, training):
            if any(x.is_sparse for x in tensors(args)):
                continue
            there = copy.deepcopy(module).to(device)
            with torch.no_grad():
                torch.manual_seed(3)
                got = there(*tree(args, spread), **tree(kwargs, spread))
                self.compare((tree(got, torch.Tensor.cpu), []),
                             self.result(module, args, kwargs, "cpu"))

    @modules(module_db)
    def test_pickle(self, device, dtype, module_info, training):
        for module, args, kwargs in self.samples(module_info, dtype, training):
            there = pickle.loads(pickle.dumps(copy.deepcopy(module).to(device)))
            for p in [*there.parameters(), *there.buffers()]:
                self.assertEqual(p.device.type, "tern")
            with torch.no_grad():
                torch.manual_seed(3)
                got = there(*tree(args, on(device)), **tree(kwargs, on(device)))
                self.compare((tree(got, torch.Tensor.cpu), []),
                             self.result(module, args, kwargs, "cpu"))

    @modules(module_db)
    def test_factory_kwargs(self, device, dtype, module_info, training):
        """A module that is made on the device has its parameters there, of the dtype asked for."""
        if "device" not in inspect.signature(module_info.module_cls).parameters:
            self.skipTest("it takes no device")
        for sample in module_info.module_inputs_func(module_info, device="cpu", dtype=dtype,
                                                     requires_grad=False, training=training):
            given = sample.constructor_input
            args, kwargs = tree(given.args, on(device)), tree(given.kwargs, on(device))
            module = module_info.module_cls(*args, **{**kwargs, "device": device, "dtype": dtype})
            for p in [*module.parameters(), *module.buffers()]:
                if not isinstance(p, (torch.nn.parameter.UninitializedParameter,
                                      torch.nn.parameter.UninitializedBuffer)):
                    self.assertEqual(p.device, torch.device(device))
                    self.assertTrue(not p.is_floating_point() or p.dtype == dtype)

    @modules([info for info in module_db if info.module_error_inputs_func],
             allowed_dtypes=[torch.float32])
    def test_errors(self, device, dtype, module_info, training):
        for wrong in module_info.module_error_inputs_func(module_info, device=device, dtype=dtype,
                                                          requires_grad=False, training=training):
            sample = wrong.module_error_input
            make, given = sample.constructor_input, sample.forward_input
            if wrong.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR:
                with self.assertRaisesRegex(wrong.error_type, wrong.error_regex):
                    module_info.module_cls(*make.args, **make.kwargs)
            else:
                module = module_info.module_cls(*make.args, **make.kwargs).to(device, dtype)
                with self.assertRaisesRegex(wrong.error_type, wrong.error_regex):
                    module(*given.args, **given.kwargs)


class TestOptimRenewed(TestCase):
    def train(self, optim_info, options, device, dtype, steps=5, between=None):
        """Parameters after some steps, and the optimizer."""
        torch.manual_seed(1)
        shapes = ((5, 6), (3, 5)) if optim_info.name == "Muon" else ((5, 6), (5,), (3, 5), (3,))
        parameters = [torch.nn.Parameter(x.mul(0.4).to(device, dtype)) for x in
                      (torch.randn(*s, dtype=torch.double) for s in shapes)]
        x = torch.randn(4, 6, generator=torch.Generator().manual_seed(2)).to(device, dtype)
        options = tree(options, lambda v: v.detach().clone().to(device))
        optimizer = optim_info.optim_cls(parameters, **options)

        def closure():
            optimizer.zero_grad()
            matrices = [p for p in parameters if p.dim() == 2]
            biases = [p for p in parameters if p.dim() == 1] or [0, 0]
            if optim_info.step_requires_closure:  # a search needs something to find
                loss = sum((i + 1) * (p - 0.1).pow(2).sum() for i, p in enumerate(parameters))
                loss = -loss if options.get("maximize") else loss
            else:
                y = torch.tanh(x @ matrices[0].T + biases[0]) @ matrices[1].T + biases[1]
                loss = y.pow(2).mean()
            loss.backward()
            return loss
        for i in range(steps):
            if optim_info.step_requires_closure:
                optimizer.step(closure)
            else:
                closure()
                if options.get("differentiable"):
                    with torch.no_grad():  # as a leaf is written to
                        optimizer.step()
                else:
                    optimizer.step()
            if between and i == steps // 2:
                optimizer = between(optimizer, parameters)
        return [p.detach().cpu() for p in parameters], optimizer

    def forms(self, optim_info):
        """Options of each sample: PyTorch's loop, its foreach and fused and differentiable forms."""
        for sample in optim_info.optim_inputs_func(device="cpu"):
            for form in ({}, *({name: True} for name in optim_info.supported_impls)):
                options = {**sample.kwargs, **form}
                if form == {} and "foreach" in optim_info.supported_impls:
                    options["foreach"] = False
                yield options

    def compare(self, optim_info, options, device, dtype, **more):
        try:
            want, _ = self.train(optim_info, options, "cpu", dtype, **more)
        except (RuntimeError, ValueError, TypeError) as error:
            with self.assertRaises(type(error)):
                self.train(optim_info, options, device, dtype, **more)
            return
        got, _ = self.train(optim_info, options, device, dtype, **more)
        for a, b in zip(got, want):
            assert_close(a, b)

    @optims([info for info in optim_db if not info.only_supports_sparse_grads],
            dtypes=[torch.float32, torch.float64])
    def test_forloop_goes_right_direction(self, device, dtype, optim_info):
        for sample in optim_info.optim_inputs_func(device="cpu"):
            self.compare(optim_info, sample.kwargs, device, dtype)

    @optims([info for info in optim_db if not info.only_supports_sparse_grads],
            dtypes=[torch.float32, torch.float64])
    def test_all_forms(self, device, dtype, optim_info):
        for options in self.forms(optim_info):
            with self.subTest(options=str(options)):
                self.compare(optim_info, options, device, dtype)

    @optims([info for info in optim_db if info.has_capturable_arg], dtypes=[torch.float32])
    def test_capturable(self, device, dtype, optim_info):
        """Steps that are counted on the device, as those of CUDA's graphs are."""
        for sample in optim_info.optim_inputs_func(device="cpu"):
            want, _ = self.train(optim_info, {**sample.kwargs, "foreach": False}, "cpu", dtype)
            for form in (False, True):
                with self.subTest(options=str(sample.kwargs), foreach=form):
                    got, _ = self.train(optim_info, {**sample.kwargs, "capturable": True,
                                                     "foreach": form}, device, dtype)
                    for a, b in zip(got, want):
                        assert_close(a, b)

    @optims([info for info in optim_db if not info.only_supports_sparse_grads],
            dtypes=[torch.float32])
    def test_can_load_older_state_dict(self, device, dtype, optim_info):
        """A state that went through another device and a copy goes on where it was."""
        def again(optimizer, parameters):
            other = type(optimizer)(parameters, **{k: v for k, v in optimizer.defaults.items()
                                                   if k in kept})
            state = copy.deepcopy(optimizer.state_dict())
            other.load_state_dict(tree(state, lambda x: x.cpu() if x.dim() else x))
            return other
        for sample in optim_info.optim_inputs_func(device="cpu"):
            kept = set(sample.kwargs)
            self.compare(optim_info, sample.kwargs, device, dtype, between=again)

    @optims([info for info in optim_db if info.optim_error_inputs_func], dtypes=[torch.float32])
    def test_errors(self, device, dtype, optim_info):
        for wrong in optim_info.optim_error_inputs_func(device=device, dtype=dtype):
            given = wrong.optimizer_error_input
            if wrong.error_on == OptimizerErrorEnum.CONSTRUCTION_ERROR:
                with self.assertRaisesRegex(wrong.error_type, wrong.error_regex):
                    optim_info.optim_cls(given.params, **given.kwargs)
            else:
                optimizer = optim_info.optim_cls(given.params, **given.kwargs)
                with self.assertRaisesRegex(wrong.error_type, wrong.error_regex):
                    optimizer.step()


def known():
    """Patterns of tests that are expected to fail, with the reasons."""
    path = HERE / "databases_known.txt"
    return dict(line.split(None, 1) for line in path.read_text().splitlines()
                if line.strip() and not line.startswith("#"))


def write_table(path, counts, failures, listed):
    lines = ["| tests | passed | failed | skipped by PyTorch's lists |", "|---|---|---|---|"]
    lines += [f"| {name} | {c['passed']} | {c['failed']} | {c['skipped']} |"
              for name, c in sorted(counts.items())]
    lines += ["", "| fails | reason |", "|---|---|"]
    lines += [f"| {name} | {listed.get(name, why)[:200].replace('|', '/')} |"
              for name, why in sorted(failures.items())]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--table")
    arguments = parser.parse_args(words)
    space = {"__name__": __name__}
    families = [m for case in (TestModule, TestOptimRenewed) for m in dir(case)
                if m.startswith("test_")]
    for case in (TestModule, TestOptimRenewed):
        space[case.__name__] = case
        instantiate_device_type_tests(case, space, only_for=("tern",))
    tests = [test for name, case in sorted(space.items()) if isinstance(case, type)
             for test in unittest.defaultTestLoader.loadTestsFromTestCase(case)
             if arguments.only in test.id()]
    if arguments.count and arguments.count < len(tests):
        tests = [tests[i * len(tests) // arguments.count] for i in range(arguments.count)]
    result = unittest.TestResult()
    counts, failures, listed, reasons, wrong = {}, {}, known(), {}, 0
    for test in tests:
        before = len(result.failures) + len(result.errors), len(result.skipped)
        test.run(result)
        bad = [*result.failures, *result.errors]
        name = test._testMethodName
        what = "failed" if len(bad) > before[0] else \
            "skipped" if len(result.skipped) > before[1] else "passed"
        case = "optimizers" if "Optim" in type(test).__name__ else "modules"
        family = next(m for m in families if name.startswith(m))
        row = counts.setdefault(f"{case}: {family}",
                                {"passed": 0, "failed": 0, "skipped": 0})
        row[what] += 1
        if what == "failed":
            text = next(t for c, t in [*result.errors, *result.failures]
                        if c is test or getattr(c, "test_case", None) is test)
            failures[name] = [line for line in text.split("\n")
                              if re.match(r"[\w.]*(Error|Exception)\b", line)][-1]
            if "Mismatch" in text:
                failures[name] = " ".join(l for l in text.split("\n") if "difference" in l)[:300]
            pattern = next((p for p in listed if fnmatch.fnmatch(name, p)), None)
            if pattern:
                reasons[name] = listed[pattern]
            else:
                wrong += 1
                print(f"  {name}: FAILED {failures[name]}", flush=True)
    if not arguments.only and not arguments.count:
        for pattern in listed:
            if not any(fnmatch.fnmatch(name, pattern) for name in failures):
                wrong += 1
                print(f"  {pattern}: passes, and databases_known.txt says that it fails")
    of = {what: sum(c[what] for c in counts.values()) for what in ("passed", "failed", "skipped")}
    print(f"databases on tern: {of['passed']} passed, {of['failed']} failed, {of['skipped']} "
          f"skipped of {len(tests)} tests")
    for name, c in sorted(counts.items()):
        print(f"  {name}: {c['passed']} passed, {c['failed']} failed, {c['skipped']} skipped")
    if arguments.table:
        write_table(arguments.table, counts, failures, reasons)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
