"""torch_tern.step: recorded steps have the results of the function, bit for bit."""
import concurrent.futures
import copy
import functools
import os
import pickle
import unittest
import warnings

os.environ.setdefault("TERN_TORCH_DEVICES", "opencl:0,cpu")

import torch
import torch_tern
from torch import nn
from torch.nn import functional as F

DEVICES = [f"tern:{i}" for i in range(torch.tern.device_count())]


def network(device, dropout=0.3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 8), nn.LayerNorm(8),
                         nn.GELU(), nn.Dropout(dropout), nn.Linear(8, 3)).to(device)


def batches(n, device, rows=4):
    generator = torch.Generator().manual_seed(3)
    return [(torch.randn(rows, 2, 6, 6, generator=generator).to(device),
             torch.randint(0, 3, (rows,), generator=generator).to(device)) for _ in range(n)]


OPTIMIZERS = {"adamw": lambda p: torch.optim.AdamW(p, 0.01, amsgrad=True),
              "adam": lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1),
              "sgd": lambda p: torch.optim.SGD(p, 0.1),
              "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, dampening=0.1),
              "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True)}


def training(model, optimizer):
    def train(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return train


def everything(model, optimizer):
    """All that a step changes."""
    state = [v for p in optimizer.state.values() for v in p.values() if torch.is_tensor(v)]
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    return [x.detach().cpu() for x in [*model.state_dict().values(), *state, *grads]]


class Case(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")

    def compare(self, device, make_optimizer, make_function, data, between=None, dropout=0.3):
        """Runs a function plainly and as a step on the same data; the step's stats()."""
        ends = []
        for wrap in (lambda f: f, torch_tern.step):
            model = network(device, dropout)
            optimizer = make_optimizer(model.parameters())
            function = wrap(make_function(model, optimizer))
            torch.tern.manual_seed(7)
            losses = []
            for i, (x, y) in enumerate(data):
                losses.append(function(x, y))
                if between:
                    between(i, model, optimizer)
            ends.append(([x.cpu() for x in losses], everything(model, optimizer)))
        for (want_losses, want), (losses, got) in [ends]:
            self.assertEqual([x.item() for x in want_losses], [x.item() for x in losses])
            self.assertEqual(len(want), len(got))
            for a, b in zip(want, got):
                self.assertTrue(torch.equal(a, b))
        return function.stats()


class Doubler:
    def __init__(self, n):
        self.n = torch.full((), float(n), device=DEVICES[0])

    @torch_tern.step
    def add(self, x):
        self.n += 1
        return self.n * x


class Results(Case):
    def test_are_those_of_the_function(self):
        for device in DEVICES:
            for name, make in OPTIMIZERS.items():
                with self.subTest(device=device, optimizer=name):
                    stats = self.compare(device, make, training, batches(8, device))
                    self.assertEqual((stats["ran"], stats["replayed"], stats["reason"]),
                                     (2, 6, None))
                    self.assertGreater(stats["launches"], 10)

    def test_other_shapes_are_recorded_anew(self):
        d = DEVICES[0]
        data = batches(4, d) + batches(4, d, rows=3) + batches(3, d) + batches(2, d, rows=3)
        stats = self.compare(d, OPTIMIZERS["adamw"], training, data)
        self.assertEqual((stats["recordings"], stats["replayed"]), (2, len(data) - 4))

    def test_schedules_and_options_are_read_in_each_call(self):
        def between(i, model, optimizer):
            for group in optimizer.param_groups:
                group["lr"] *= 0.7
                group["weight_decay"] = 0.01 * i
        for name in ("adamw", "momentum"):
            stats = self.compare(DEVICES[0], OPTIMIZERS[name], training, batches(8, DEVICES[0]),
                                 between)
            self.assertEqual(stats["recordings"], 1)

    def test_modes(self):
        def between(i, model, optimizer):
            model.train(i not in (3, 5, 6, 7))
        stats = self.compare(DEVICES[0], OPTIMIZERS["sgd"], training, batches(12, DEVICES[0]),
                             between)
        self.assertEqual(stats["recordings"], 2)

    def test_what_is_written_between_calls(self):
        def between(i, model, optimizer):
            with torch.no_grad():
                for p in model.parameters():
                    p.mul_(0.9)
                    p.lerp_(torch.ones_like(p), 0.05)
                    torch.clamp(p, -1, 1, out=p)
                    p.grad.lerp_(p, 0.5)
                for state in optimizer.state.values():
                    state["exp_avg"].lerp_(state["exp_avg_sq"], 0.5)
            if i == 5:
                optimizer.load_state_dict(optimizer.state_dict())
            if i == 8:
                model.load_state_dict({k: v * 1.1 if v.is_floating_point() else v
                                       for k, v in model.state_dict().items()})
        stats = self.compare(DEVICES[0], OPTIMIZERS["adam"], training, batches(12, DEVICES[0]),
                             between)
        self.assertGreater(stats["replayed"], 3)

    def test_operations_that_have_no_form_in_place(self):
        def make(model, optimizer):
            average = [torch.zeros_like(p) for p in model.parameters()]
            total = torch.zeros(3, device=DEVICES[0])
            train = training(model, optimizer)

            def function(x, y):
                loss = train(x, y)
                with torch.no_grad():
                    for a, p in zip(average, model.parameters()):
                        a.lerp_(p, 0.1)
                    torch.lerp(total, torch.ones_like(total), 0.5, out=total)
                    total[1:].lerp_(total[:2], 0.5)
                return loss + total.sum() + sum(a.sum() for a in average)
            return function
        stats = self.compare(DEVICES[0], OPTIMIZERS["adamw"], make, batches(7, DEVICES[0]))
        self.assertEqual(stats["replayed"], 5)

    def test_gradients_for_the_program(self):
        """The function computes gradients, and the program zeroes them and steps."""
        def make(model, optimizer):
            def function(x, y):
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss
            return function
        for zero in (lambda o: o.zero_grad(), lambda o: o.zero_grad(set_to_none=False),
                     lambda o: None):
            def between(i, model, optimizer):
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimizer.step()
                zero(optimizer)
            stats = self.compare(DEVICES[0], OPTIMIZERS["adamw"], make, batches(9, DEVICES[0]),
                                 between)
            self.assertGreater(stats["replayed"], 4)

    def test_clipping_and_micro_batches(self):
        def make(model, optimizer):
            def function(x, y):
                optimizer.zero_grad()
                total = 0
                for part, labels in zip(x.chunk(2), y.chunk(2)):
                    loss = F.cross_entropy(model(part), labels) / 2
                    loss.backward()
                    total = total + loss.detach()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                return total
            return function
        stats = self.compare(DEVICES[0], OPTIMIZERS["adamw"], make, batches(6, DEVICES[0]))
        self.assertEqual(stats["replayed"], 4)

    def test_autocast(self):
        def make(model, optimizer):
            def function(x, y):
                optimizer.zero_grad()
                with torch.amp.autocast("tern", dtype=torch.bfloat16):
                    loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                return loss
            return function
        stats = self.compare(DEVICES[0], OPTIMIZERS["adamw"], make, batches(6, DEVICES[0]))
        self.assertEqual(stats["replayed"], 4)

    def test_memory_formats(self):
        function = torch_tern.step(lambda x: x * 2)
        x = torch.arange(48.0).view(1, 3, 4, 4).to(DEVICES[0])
        y = (x + 100).contiguous(memory_format=torch.channels_last)
        for i in range(5):
            for z in (x + i, y + i, (x + i).transpose(2, 3)):
                self.assertEqual(function(z).tolist(), (z * 2).tolist())
        self.assertGreater(function.stats()["replayed"], 6)

    def test_structures(self):
        @torch_tern.step
        def function(batch, factor, *, pair):
            return {"sum": batch["x"] * factor + pair[0], "rest": (pair[1], "text", 3)}
        x = torch.arange(3.0, device=DEVICES[0])
        for i in range(6):
            got = function({"x": x + i, "n": 1}, 2, pair=(x, [x * i]))
            self.assertEqual(got["sum"].tolist(), (3 * x + 2 * i).tolist())
            self.assertEqual(got["rest"][0][0].tolist(), (x * i).tolist())
            self.assertEqual(got["rest"][1:], ("text", 3))
        self.assertEqual(function({"x": x, "n": 1}, 3, pair=(x, [x]))["sum"].tolist(), [0, 4, 8])
        self.assertEqual(function({"x": x, "n": 1}, 2.0, pair=(x, [x]))["sum"].tolist(), [0, 3, 6])
        self.assertEqual(function.stats()["replayed"], 4)

    def test_results_of_calls_are_their_own(self):
        function = torch_tern.step(lambda x: (x, x + 1))
        x = torch.zeros(2, device=DEVICES[0])
        kept = [function(x + i) for i in range(6)]
        self.assertEqual([b.tolist() for _, b in kept], [[i + 1] * 2 for i in range(6)])
        self.assertEqual([a.tolist() for a, _ in kept], [[i] * 2 for i in range(6)])
        kept[-1][1].fill_(9)
        self.assertEqual(function(x)[1].tolist(), [1, 1])

    def test_methods(self):
        one, two = Doubler(1), Doubler(10)
        x = torch.ones(2, device=DEVICES[0])
        for i in range(5):
            self.assertEqual(one.add(x).tolist(), [2 + i] * 2)
            self.assertEqual(two.add(x).tolist(), [11 + i] * 2)
        self.assertEqual(one.add.stats()["replayed"], 3)
        for other in (copy.deepcopy(one), pickle.loads(pickle.dumps(two))):
            before = other.n.item()
            for i in range(5):
                self.assertEqual(other.add(x).tolist(), [before + 1 + i] * 2)
            self.assertEqual(other.add.stats()["replayed"], 3)
        self.assertEqual(one.add(x).tolist(), [7, 7])

    def test_options_and_names_of_methods(self):
        class Trainer:
            factor = functools.partial(torch_tern.step, max_recordings=1)(lambda self, x, n: x * n)
        trainer, x = Trainer(), torch.ones(2, device=DEVICES[0])
        for _ in range(4):
            for n in range(3):
                self.assertEqual(trainer.factor(x, n).tolist(), [n, n])
        self.assertEqual(trainer.factor.stats()["recordings"], 1)

        class Bare:
            __slots__ = ()
            factor = torch_tern.step(lambda self, x: x)
        with self.assertRaisesRegex(TypeError, "Bare have no __dict__"):
            Bare().factor(x)

    def test_threads(self):
        function = torch_tern.step(lambda x: (x @ x) / 256)

        def run(k):
            x = torch.full((256, 256), k, device=DEVICES[0])
            return {function(x)[0, 0].item() for _ in range(60)}
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            self.assertEqual(list(pool.map(run, (1.0, 2.0, 3.0))), [{1.0}, {4.0}, {9.0}])
        self.assertGreater(function.stats()["replayed"], 100)


class NotRecorded(Case):
    """The function runs in every call, and the reason is said once."""

    def refused(self, make, reason, make_optimizer=OPTIMIZERS["adamw"]):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stats = self.compare(DEVICES[0], make_optimizer, make, batches(6, DEVICES[0]))
        self.assertEqual(stats["replayed"], 0)
        self.assertRegex(stats["reason"], reason)
        told = [w for w in caught if "runs in every call" in str(w.message)]
        self.assertEqual(len(told), 1, [str(w.message) for w in caught])

    def test_values_on_the_host(self):
        def make(model, optimizer):
            train = training(model, optimizer)

            def function(x, y):
                loss = train(x, y)
                return loss * 2 if loss.item() > 1 else loss
            return function
        self.refused(make, "item")

    def test_other_optimizers(self):
        self.refused(training, "RMSprop", lambda p: torch.optim.RMSprop(p, 0.001))
        self.refused(training, "NAdam", lambda p: torch.optim.NAdam(p, 0.001))
        self.refused(training, "fused", lambda p: torch.optim.AdamW(p, 0.001, foreach=False))

    def test_copies_from_the_host(self):
        def make(model, optimizer):
            train = training(model, optimizer)
            return lambda x, y: train(x + torch.ones(6).to(x.device), y)
        self.refused(make, "record")

    def test_what_runs_on_the_cpu(self):
        def make(model, optimizer):
            train = training(model, optimizer)
            return lambda x, y: train(torch.special.airy_ai(x), y)
        self.refused(make, "airy_ai")

    def test_gradients_are_those_of_before(self):
        """A recording that fails leaves no gradients behind."""
        def make(model, optimizer):
            def function(x, y):
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss * 2 if loss.item() > 1 else loss
            return function
        self.refused(make, "item")

    def test_arguments(self):
        function = torch_tern.step(lambda *x: x[0] * 2)
        x = torch.ones(2, device=DEVICES[0])
        for arguments, reason in (((torch.ones(2),), "is on cpu"), ((x, x.cpu()), "is on cpu"),
                                  ((x.clone().requires_grad_(),), "requires a gradient"),
                                  ((x, {1, 2}), "can't tell"), ((x,) * 65, "65 tensors")):
            for _ in range(4):
                self.assertEqual(function(*arguments).tolist(), [2, 2])
            self.assertRegex(function.stats()["reason"], reason)
        self.assertEqual(function.stats()["replayed"], 0)

    def test_arguments_that_are_new_in_each_call(self):
        x = torch.ones(2, device=DEVICES[0])
        for call, change in ((lambda f, i: f(x, i), r"args\[1\] was 15 and is 16"),
                             (lambda f, i: f(x, n={"a": (2, i)}),
                              r"kwargs\['n'\]\['a'\]\[1\] was 15 and is 16"),
                             (lambda f, i: f(x, n={str(i): 0}), "keys of kwargs.* was '15' and is '16'"),
                             (lambda f, i: f(x, None if i % 2 else -i), "args.* was None and is -16"),
                             (lambda f, i: f(x, x if i % 2 else -i), "args.* was a tensor and is -16"),
                             (lambda f, i: f(x, [0] * i), "was 15 items of list and is 16 items"),
                             (lambda f, i: f(x[:1].expand(i + 1)), r"tensor 0 was \(16,\).*is \(17,\)")):
            function = torch_tern.step(lambda x, n=0: x * 2)
            seen = 0
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for i in range(40):
                    self.assertEqual(set(call(function, i).tolist()), {2})
                    if i == 16:
                        seen = [str(w.message) for w in caught]
            if "None" in change or "a tensor" in change:  # every other call has known arguments
                self.assertEqual([str(w.message) for w in caught], [])
                continue
            self.assertEqual(len(seen), 1, change)
            self.assertRegex(seen[0], "runs in every call: .*" + change + ".*as a tensor")
            self.assertEqual(len(caught), 1)
            self.assertRegex(function.stats()["reason"], "were new each time")
            for _ in range(6):
                function(x)
            self.assertEqual(function.stats()["reason"], None)
            self.assertGreater(function.stats()["replayed"], 0)

    def test_more_kinds_than_recordings(self):
        function = torch_tern.step(lambda x, n: x * n, max_recordings=2)
        x = torch.ones(2, device=DEVICES[0])
        for _ in range(4):
            for n in range(4):
                self.assertEqual(function(x, n).tolist(), [n, n])
        self.assertEqual(function.stats()["recordings"], 2)


class Errors(Case):
    def test_are_those_of_the_function(self):
        calls = []

        @torch_tern.step
        def function(x, y):
            calls.append(1)
            if len(calls) in (2, 4):
                raise KeyError("mine")
            return x @ y
        x, y = torch.ones(2, 3, device=DEVICES[0]), torch.ones(3, 2, device=DEVICES[0])
        results = []
        for _ in range(8):
            try:
                results.append(function(x, y).sum().item())
            except KeyError as error:
                results.append(error.args[0])
        self.assertEqual(results, [12, "mine", 12, 12, 12, 12, 12, 12])
        for _ in range(4):
            with self.assertRaisesRegex(RuntimeError, "shapes cannot be multiplied"):
                function(x, x)

    def test_an_interrupt_ends_the_call(self):
        for interrupted in (1, 2, 3):  # a first call, a second, and the one that records
            calls = []

            @torch_tern.step
            def function(x):
                calls.append(1)
                if len(calls) == interrupted:
                    raise KeyboardInterrupt
                return x * 2
            x = torch.ones(2, device=DEVICES[0])
            for i in range(5):
                if i == interrupted - 1:
                    with self.assertRaises(KeyboardInterrupt):
                        function(x)
                else:
                    self.assertEqual(function(x).tolist(), [2, 2])

    def test_a_reset_in_the_function(self):
        for where in range(1, 7):
            calls = []

            @torch_tern.step
            def function(x):
                calls.append(1)
                if len(calls) == where:
                    function.reset()
                return x * 2
            for i in range(6):
                x = torch.full((2,), i + 0.0, device=DEVICES[0])
                self.assertEqual(function(x).tolist(), [2 * i] * 2)

    def test_wrong_calls(self):
        with self.assertRaisesRegex(TypeError, "torch_tern.step"):
            torch_tern.step(3)
        for options in (dict(warmup=1), dict(max_recordings=0)):
            with self.assertRaisesRegex(ValueError, "torch_tern.step"):
                torch_tern.step(len, **options)

    def test_results_have_no_graph(self):
        w = torch.ones(2, device=DEVICES[0], requires_grad=True)
        function = torch_tern.step(lambda x: (x * w).sum())
        for _ in range(4):
            self.assertFalse(function(torch.ones(2, device=DEVICES[0])).requires_grad)

    def test_memory(self):
        import gc
        def used():
            gc.collect()
            torch.tern.synchronize()
            return torch.tern.memory_allocated()
        def once():
            model = nn.Linear(256, 256).to(DEVICES[0])
            optimizer = torch.optim.AdamW(model.parameters())
            train = torch_tern.step(lambda x: training(model, optimizer)(x, x))
            for _ in range(5):
                train(torch.ones(4, 256, device=DEVICES[0]))
        once()
        before = used()
        for _ in range(3):
            once()
        self.assertLess(used() - before, 1 << 17)


if __name__ == "__main__":
    unittest.main()
