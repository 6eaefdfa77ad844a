"""What scripts ask of a device, on tern:0 (and a second device where there is one)."""
import copy
import io
import os
import pickle
import subprocess
import sys
import unittest
import warnings

import torch
import torch.nn.functional as F
import torch_tern
from torch import nn

D = "tern:0"


def saved(x, **options):
    buffer = io.BytesIO()
    torch.save(x, buffer, **options)
    buffer.seek(0)
    return buffer


class Devices(unittest.TestCase):
    def test_names(self):
        self.assertTrue(torch.tern.is_available())
        self.assertEqual(torch.randn(2, device="tern").device, torch.device(D))
        self.assertEqual(len(torch_tern.devices()), torch.tern.device_count())
        self.assertEqual(torch.accelerator.current_accelerator().type, "tern")
        self.assertTrue(torch.randn(2).to("tern").is_tern)
        self.assertIn(torch.tern.get_device_properties().device, torch_tern.devices())

    def test_a_device_that_is_not_there(self):
        with self.assertRaisesRegex(RuntimeError, "no device tern:77"):
            torch.randn(2, device="tern:77")
        with self.assertRaisesRegex(RuntimeError, "in use already"):
            torch.randn(2, device=D)
            torch_tern.devices("cpu")

    def elsewhere(self, code, **more):
        """What a process prints and warns of that imports torch_tern first."""
        got = subprocess.run([sys.executable, "-W", "default", "-c", "import torch_tern, torch\n" + code],
                             env={**os.environ, **more}, capture_output=True, text=True)
        return got.stdout.strip().split("\n"), got.stderr

    def test_a_process_ends_behind_a_backward_pass(self):
        """PyTorch's thread still drops gradients then, which Python knows."""
        program = """if True:
            import sys
            xs = [torch.ones(4, device="tern", requires_grad=True) for _ in range(100)]
            y = sum((x * x).sum() for x in xs)
            sys.setswitchinterval(100)
            grads = torch.autograd.grad(y, xs)
            print(len(grads))"""
        found, warned = self.elsewhere(program)
        self.assertEqual(found, ["100"])
        self.assertNotIn("terminate called", warned)

    def test_devices_are_chosen(self):
        (refused, chosen), _ = self.elsewhere("""if True:
            try:
                torch_tern.devices("cpu", "opencl:77")
            except ValueError as error:
                print(error)
            print(torch_tern.devices("cpu"), torch.ones(2, device="tern:0").sum().item())""")
        self.assertRegex(refused, "torch_tern.devices: .*opencl:77")
        self.assertEqual(chosen, "['cpu'] 2.0")

    def test_a_named_device_that_is_not_there(self):
        found, warned = self.elsewhere("print(torch_tern.devices())",
                                       TERN_TORCH_DEVICES="opencl:77,cpu")
        self.assertEqual(found, ["['cpu']"])
        self.assertRegex(warned, "TERN_TORCH_DEVICES: left out.*opencl:77")

    def test_current_device(self):
        if torch.tern.device_count() < 2:
            self.skipTest("there is one device")
        with torch.tern.device(1):
            self.assertEqual(torch.randn(2, device="tern").device.index, 1)
        self.assertEqual(torch.tern.current_device(), 0)
        x = torch.randn(3, device="tern:0")
        self.assertTrue((x.to("tern:1") + 1).cpu().equal(x.cpu() + 1))

    def test_memory_is_counted_and_given_back(self):
        torch.tern.synchronize()
        before = torch.tern.memory_allocated()
        x = torch.empty(1 << 20, device=D)
        self.assertGreaterEqual(torch.tern.memory_allocated() - before, 4 << 20)
        self.assertGreaterEqual(torch.tern.max_memory_allocated(), 4 << 20)
        del x
        self.assertLess(torch.tern.memory_allocated() - before, 4 << 20)
        torch.tern.empty_cache()
        free, total = torch.tern.mem_get_info()
        self.assertLessEqual(free, total)

    def test_streams_and_events(self):
        event = torch.Event(D)
        event.record()
        event.synchronize()
        self.assertTrue(event.query())
        torch.tern.current_stream().synchronize()


class Files(unittest.TestCase):
    def test_pickles(self):
        for dtype in (torch.float32, torch.int64, torch.bool, torch.bfloat16):
            x = torch.arange(6, device=D).view(2, 3).to(dtype)
            for got in (pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps([x, x[1:]]))[0],
                        torch.load(saved(x, _use_new_zipfile_serialization=False)),
                        torch.load(saved(x.cpu(), _use_new_zipfile_serialization=False),
                                   map_location=D)):
                self.assertEqual((got.device.type, got.dtype, got.tolist()),
                                 ("tern", dtype, x.tolist()))

    def test_memory_that_was_given_back(self):
        x = torch.ones(3, device=D)
        x.untyped_storage().resize_(0)
        with self.assertRaisesRegex(RuntimeError, "given back"):
            x + 1

    def test_save_and_load(self):
        x = torch.randn(3, 4, device=D)
        y = torch.load(saved({"x": x, "y": x[1:]}))
        self.assertEqual(y["x"].device.type, "tern")
        self.assertTrue(y["x"].cpu().equal(x.cpu()))
        self.assertEqual(y["y"].untyped_storage().data_ptr(), y["x"].untyped_storage().data_ptr())
        self.assertEqual(torch.load(saved(x), map_location="cpu").device.type, "cpu")
        self.assertEqual(torch.load(saved(x.cpu()), map_location=D).device.type, "tern")

    def test_state_dict(self):
        m = nn.Linear(3, 4).to(D)
        n = nn.Linear(3, 4).to(D)
        n.load_state_dict(torch.load(saved(m.state_dict()), map_location="cpu"))
        self.assertTrue(n.weight.cpu().equal(m.weight.cpu()))

    def test_copies(self):
        m = nn.Linear(3, 4).to(D)
        n = copy.deepcopy(m)
        with torch.no_grad():
            n.weight.add_(1)
        self.assertFalse(n.weight.cpu().equal(m.weight.cpu()))

    def test_pinned_memory_and_loaders(self):
        from torch.utils.data import DataLoader, TensorDataset
        x = torch.arange(12.0).reshape(6, 2)
        got = [batch[0].to(D, non_blocking=True).cpu() for batch in
               DataLoader(TensorDataset(x), 2, pin_memory=True, num_workers=2)]
        self.assertTrue(torch.cat(got).equal(x))

    def test_a_forked_process_is_told(self):
        torch.randn(2, device=D)
        child = os.fork()
        if child == 0:
            try:
                torch.manual_seed(1)
                good = torch.ones(3).sum().item() == 3 and torch.tern._is_in_bad_fork()
                torch.tern._lazy_init()
                good = False
            except RuntimeError:
                pass
            os._exit(0 if good else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class Modules(unittest.TestCase):
    def test_tied_parameters_stay_tied(self):
        m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        m[1].weight = m[0].weight
        optimizer = torch.optim.SGD(m.parameters(), 0.1)
        m.to(D)
        self.assertIs(m[1].weight, m[0].weight)
        self.assertIs(optimizer.param_groups[0]["params"][0], m[0].weight)
        self.assertEqual(m[0].weight.device.type, "tern")

    def test_lazy_modules(self):
        for device, dtype in (("cpu", torch.float64), (D, torch.float32), (D, torch.bfloat16)):
            m = nn.Sequential(nn.LazyConv1d(4, 3), nn.LazyBatchNorm1d(), nn.Flatten(),
                              nn.LazyLinear(2)).to(device, dtype)
            optimizer = torch.optim.SGD(m.parameters(), 0.1)
            self.assertTrue(m[0].has_uninitialized_params())
            m(torch.randn(2, 3, 8, device=device, dtype=dtype)).sum().backward()
            optimizer.step()
            self.assertIs(type(m[0]), nn.Conv1d)
            for x in (*m.parameters(), m[1].running_mean):
                self.assertEqual((x.device, x.dtype), (torch.device(device), dtype))
            self.assertEqual(m.to("cpu", torch.float32)[3].weight.device.type, "cpu")

    def test_checkpoints_repeat_dropout(self):
        from torch.utils.checkpoint import checkpoint
        for reentrant in (True, False):
            m = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8)).to(D)
            x = torch.randn(4, 8, device=D, requires_grad=True)
            torch.manual_seed(1)
            m(x).sum().backward()
            grad, x.grad = x.grad.cpu(), None
            torch.manual_seed(1)
            checkpoint(m, x, use_reentrant=reentrant).sum().backward()
            self.assertTrue(x.grad.cpu().equal(grad), reentrant)

    def test_half_precision(self):
        for dtype in (torch.float16, torch.bfloat16):
            m = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()).to(D, dtype)
            m(torch.randn(2, 8, device=D, dtype=dtype)).sum().backward()
            self.assertEqual(m[0].weight.grad.dtype, dtype)

    def test_autocast(self):
        m = nn.Linear(8, 8).to(D)
        for dtype in (torch.float16, torch.bfloat16):
            with torch.amp.autocast("tern", dtype=dtype):
                self.assertEqual(m(torch.randn(2, 8, device=D)).dtype, dtype)

    def test_saved_tensors_on_the_cpu(self):
        """A hook that packs what is saved takes away the recording that hangs on it."""
        def grads(device, pack):
            torch.manual_seed(2)
            m = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.Flatten(),
                              nn.Linear(16, 8), nn.LayerNorm(8)).to(device)
            x = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(3)).to(device)
            with torch.autograd.graph.saved_tensors_hooks(
                    lambda t: (t.cpu(), t.device) if pack else (t, t.device),
                    lambda p: p[0].to(p[1])):
                loss = m(x).pow(3).sum()
            loss.backward()
            return [p.grad.cpu() for p in m.parameters()]
        for want, kept, packed in zip(grads("cpu", False), grads(D, False), grads(D, True)):
            torch.testing.assert_close(kept, want, rtol=1e-3, atol=1e-4)
            torch.testing.assert_close(packed, want, rtol=1e-3, atol=1e-4)

    def test_double_backward(self):
        def second(device, function):
            generator = torch.Generator().manual_seed(4)
            x = torch.randn(4, 4, 6, 6, generator=generator).to(device).requires_grad_()
            y = function(x).pow(2).sum()
            grad, = torch.autograd.grad(y, x, create_graph=True)
            grad.pow(2).sum().backward()
            return x.grad.cpu()
        weight = torch.randn(2, 4, 3, 3, generator=torch.Generator().manual_seed(5))
        for function in (lambda x: F.gelu(F.conv2d(x, weight.to(x.device))),
                         lambda x: F.layer_norm(x, (6, 6)), lambda x: F.batch_norm(
                             x, None, None, training=True), lambda x: F.softmax(x, 1),
                         lambda x: F.group_norm(x, 2), lambda x: F.max_pool2d(x, 2)):
            torch.testing.assert_close(second(D, function), second("cpu", function), rtol=1e-3,
                                       atol=1e-3)

    def test_cross_entropy(self):
        """One operation forward and one back; probabilities, second derivatives and hooks by PyTorch's."""
        generator = torch.Generator().manual_seed(6)
        x, image = torch.randn(5, 4, generator=generator), torch.randn(2, 4, 3, generator=generator)
        y, places = torch.tensor([0, 3, -100, 1, 2]), torch.tensor([[0, 1, 2], [3, 3, 0]])
        weight = torch.tensor([1.0, 2.0, 0.5, 3.0])
        cases = [(x, y, dict(reduction=r, label_smoothing=s, weight=w)) for r in ("mean", "sum", "none")
                 for s in (0.0, 0.1) for w in (None, weight)]
        cases += [(image, places, {}), (x[0], y[0], {}), (x, torch.softmax(x + 1, 1), {}),
                  (x, y.clamp_min(0), dict(ignore_index=3))]
        for logits, target, options in cases:
            def run(device, create_graph=False):
                z = logits.detach().to(device).requires_grad_()
                given = {k: v.to(device) if isinstance(v, torch.Tensor) else v
                         for k, v in options.items()}
                loss = F.cross_entropy(z, target.to(device), **given).pow(2).sum()
                grad, = torch.autograd.grad(loss, z, create_graph=create_graph)
                if create_graph:
                    grad, = torch.autograd.grad(grad.pow(2).sum(), z)
                return loss.detach().cpu(), grad.cpu()
            for create_graph in (False, True):
                for a, b in zip(run("cpu", create_graph), run(D, create_graph)):
                    torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)
        torch.tern.reset_counts()
        z = x.to(D).requires_grad_()
        F.cross_entropy(z, y.to(D)).backward()
        counts = torch.tern.counts()
        self.assertEqual(counts["aten::cross_entropy_loss"][0], 1)
        self.assertNotIn("aten::_log_softmax", counts)
        with torch.no_grad():
            F.cross_entropy(z, y.to(D))

    def test_gradcheck(self):
        x = torch.randn(3, 4, dtype=torch.float64, device=D, requires_grad=True)
        torch.autograd.gradcheck(lambda x: F.softmax(x, -1).pow(2), x)

    def test_a_graph_is_kept(self):
        x = torch.randn(2, 8, device=D, requires_grad=True)
        y = F.layer_norm(x, (8,)).pow(2).sum()
        y.backward(retain_graph=True)
        first = x.grad.clone()
        y.backward()
        torch.testing.assert_close(x.grad.cpu(), 2 * first.cpu())

    def test_compiled(self):
        f = torch.compile(lambda x: x.relu() + 1, backend="aot_eager")
        self.assertEqual(f(torch.randn(3, device=D)).device.type, "tern")


class Random(unittest.TestCase):
    def test_seeds_repeat(self):
        torch.manual_seed(5)
        a = torch.rand(4, device=D).cpu()
        torch.manual_seed(5)
        self.assertTrue(a.equal(torch.rand(4, device=D).cpu()))
        generator = torch.Generator(D).manual_seed(5)
        self.assertTrue(torch.rand(4, device=D, generator=generator).cpu().equal(a))

    def test_states(self):
        state = torch.tern.get_rng_state()
        a = torch.rand(4, device=D).cpu()
        torch.tern.set_rng_state(state)
        self.assertTrue(a.equal(torch.rand(4, device=D).cpu()))
        with torch.random.fork_rng(devices=[0], device_type="tern"):
            torch.rand(4, device=D)
        generator = torch.Generator(D)
        generator.set_state(torch.tern.get_rng_state())
        self.assertTrue(torch.rand(4, device=D, generator=generator).cpu().equal(
            torch.rand(4, device=D).cpu()))

    def test_complex_numbers(self):
        for draw in (torch.rand, torch.randn):
            x, y = (draw(4096, dtype=torch.complex64, device=D,
                         generator=torch.Generator(D).manual_seed(5)).cpu() for _ in range(2))
            self.assertTrue(x.equal(y))
        self.assertLess(abs(x.abs().square().mean().item() - 1), 0.1)

    def test_distributions(self):
        torch.manual_seed(3)
        n = 20000
        for draw, mean in ((lambda x: x.exponential_(2), 0.5), (lambda x: x.geometric_(0.25), 4),
                           (lambda x: x.uniform_(1, 3), 2), (lambda x: x.normal_(1, 2), 1),
                           (lambda x: x.bernoulli_(0.3), 0.3)):
            got = draw(torch.empty(n, device=D)).mean().item()
            self.assertLess(abs(got - mean), 0.1)

    def test_permutations(self):
        torch.tern.reset_counts()
        for n in (0, 1, 1000):
            for dtype in (torch.int64, torch.int32, torch.float32):
                generator = torch.Generator(D).manual_seed(2)
                one = torch.randperm(n, device=D, dtype=dtype, generator=generator)
                other = torch.randperm(n, device=D, dtype=dtype)
                for x in (one, other):
                    self.assertEqual(x.dtype, dtype)
                    self.assertEqual(sorted(x.tolist()), list(range(n)))
                self.assertEqual(one.tolist(), torch.randperm(
                    n, device=D, dtype=dtype, generator=generator.manual_seed(2)).tolist())
        self.assertEqual(torch.tern.fallbacks(), {})

    def test_dropout(self):
        y = F.dropout(torch.ones(10000, device=D), 0.25)
        self.assertLess(abs((y == 0).float().mean().item() - 0.25), 0.03)
        self.assertAlmostEqual(y.max().item(), 4 / 3, places=5)


class Statistics(unittest.TestCase):
    """What a norm returns for its backward operation is computed when it is first read."""

    def mean(self):
        x = torch.arange(16.0, device=D).view(2, 8)
        return torch.native_layer_norm(x, (8,), None, None, 1e-5)[1]

    def test_read(self):
        self.assertEqual(self.mean().flatten().tolist(), [3.5, 11.5])

    def test_read_by_several_threads(self):
        import concurrent.futures
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for _ in range(50):
                mean = self.mean()
                for got in pool.map(lambda _: mean.flatten().tolist(), range(4)):
                    self.assertEqual(got, [3.5, 11.5])

    def test_written_over(self):
        mean, ones = self.mean(), torch.ones(2, 1, device=D)
        torch.add(ones, ones, out=mean)
        self.assertEqual(mean.flatten().tolist(), [2, 2])

    def test_resized(self):
        for size in (4, 100): # what was there stays, of a tensor of any dtype
            self.assertEqual(self.mean().resize_(size)[:2].tolist(), [3.5, 11.5])
            self.assertEqual(torch.tensor([3, 5], device=D).resize_(size)[:2].tolist(), [3, 5])


class Optimizers(unittest.TestCase):
    CASES = [(torch.optim.SGD, dict(lr=0.1)), (torch.optim.SGD, dict(lr=0.1, momentum=0.9)),
             (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)),
             (torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.3)),
             (torch.optim.Adam, dict(lr=0.01, weight_decay=0.1)),
             (torch.optim.Adam, dict(lr=0.01, amsgrad=True)),
             (torch.optim.AdamW, dict(lr=0.01, maximize=True)), (torch.optim.Adagrad, {}),
             (torch.optim.RMSprop, dict(momentum=0.5)), (torch.optim.NAdam, {}),
             (torch.optim.Adadelta, {}), (torch.optim.Adamax, {}), (torch.optim.RAdam, {}),
             (torch.optim.Rprop, {}), (torch.optim.ASGD, {})]

    def train(self, device, cls, options, steps, dtype=torch.float32, between=None):
        torch.manual_seed(1)
        m = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).to(device, dtype)
        optimizer = cls(m.parameters(), **options)
        x = torch.randn(4, 6, generator=torch.Generator().manual_seed(2)).to(device, dtype)
        for i in range(steps):
            optimizer.zero_grad()
            m(x).pow(2).sum().backward()
            optimizer.step()
            if between and i == steps // 2:
                optimizer = between(m, optimizer)
        return [p.detach().cpu() for p in m.parameters()], optimizer

    def test_steps_are_those_of_the_cpu(self):
        for cls, options in self.CASES:
            with self.subTest(cls=cls.__name__, **options):
                want, _ = self.train("cpu", cls, options, 6)
                torch.tern.reset_counts()
                got, _ = self.train(D, cls, options, 6)
                for a, b in zip(want, got):
                    torch.testing.assert_close(b, a, rtol=1e-3, atol=1e-4)
                self.assertEqual(torch.tern.fallbacks(), {})

    def test_adam_is_one_call_a_step(self):
        for cls, name in ((torch.optim.Adam, "_fused_adam_"), (torch.optim.AdamW, "_fused_adamw_"),
                          (torch.optim.SGD, "_fused_sgd_")):
            torch.tern.reset_counts()
            self.train(D, cls, dict(lr=0.01), 3)
            self.assertEqual(torch.tern.counts()["aten::" + name][0], 3)

    def test_half_precision(self):
        for cls in (torch.optim.AdamW, torch.optim.SGD):
            want, _ = self.train("cpu", cls, dict(lr=0.01), 3, torch.bfloat16)
            got, _ = self.train(D, cls, dict(lr=0.01, fused=True), 3, torch.bfloat16)
            for a, b in zip(want, got):
                torch.testing.assert_close(b, a, rtol=5e-2, atol=2e-2)

    def test_memory_ends_with_the_model(self):
        import gc
        for cls in (torch.optim.AdamW, torch.optim.SGD):
            self.train(D, cls, dict(lr=0.01), 2)
            gc.collect()
            torch.tern.synchronize()
            before = torch.tern.memory_allocated()
            for _ in range(3):
                m = nn.Linear(256, 256).to(D)
                optimizer = cls(m.parameters(), lr=0.01)
                for _ in range(3):
                    optimizer.zero_grad()
                    m(torch.ones(1, 256, device=D)).sum().backward()
                    optimizer.step()
                del m, optimizer
            gc.collect()
            torch.tern.synchronize()
            self.assertLess(torch.tern.memory_allocated() - before, 1 << 17)

    def test_learning_rates_and_saved_states(self):
        def again(m, optimizer):
            other = type(optimizer)(m.parameters(), lr=0.5)
            other.load_state_dict(torch.load(saved(optimizer.state_dict()), map_location="cpu"))
            for group in other.param_groups:
                group["lr"] = 0.02
            return other
        for cls in (torch.optim.AdamW, torch.optim.SGD):
            options = dict(lr=0.01) if cls is torch.optim.AdamW else dict(lr=0.01, momentum=0.9)
            want, _ = self.train("cpu", cls, options, 6, between=again)
            got, optimizer = self.train(D, cls, options, 6, between=again)
            for a, b in zip(want, got):
                torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)
        want_state = self.train("cpu", torch.optim.AdamW, dict(lr=0.01), 4)[1].state_dict()["state"]
        got_state = self.train(D, torch.optim.AdamW, dict(lr=0.01), 4)[1].state_dict()["state"]
        for key in want_state:
            for name in want_state[key]:
                torch.testing.assert_close(got_state[key][name].cpu(), want_state[key][name],
                                           rtol=1e-4, atol=1e-6, check_dtype=False)

    def test_states_written_by_the_program(self):
        def between(m, optimizer):
            with torch.no_grad():
                for p in m.parameters():
                    optimizer.state[p]["exp_avg"].mul_(0.5)
                    optimizer.state[p]["exp_avg_sq"].copy_(optimizer.state[p]["exp_avg_sq"] * 2)
                    p.copy_(p * 0.9)
                    p.data = p.data.clone()
            return optimizer
        want, _ = self.train("cpu", torch.optim.Adam, dict(lr=0.01), 6, between=between)
        got, _ = self.train(D, torch.optim.Adam, dict(lr=0.01), 6, between=between)
        for a, b in zip(want, got):
            torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)

    def test_grad_scaler(self):
        for fused in (None, True):
            m = nn.Linear(8, 8).to(D)
            optimizer = torch.optim.AdamW(m.parameters(), 0.1, fused=fused)
            scaler = torch.amp.GradScaler("tern", init_scale=64.0, growth_interval=1)
            scaler.scale(m(torch.randn(2, 8, device=D)).sum()).backward()
            before = m.weight.detach().cpu()
            scaler.step(optimizer)
            scaler.update()
            self.assertEqual(scaler.get_scale(), 128.0)
            self.assertFalse(before.equal(m.weight.detach().cpu()))
            m.weight.grad.fill_(float("inf"))
            before = m.weight.detach().cpu()
            scaler.step(optimizer)
            scaler.update()
            self.assertEqual(scaler.get_scale(), 64.0)
            self.assertTrue(before.equal(m.weight.detach().cpu()))

    def test_clipped_gradients(self):
        m = nn.Linear(3, 3).to(D)
        m(torch.ones(1, 3, device=D)).sum().mul(100).backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        norm = sum(p.grad.cpu().pow(2).sum() for p in m.parameters()) ** 0.5
        self.assertAlmostEqual(norm.item(), 1.0, places=4)


class Errors(unittest.TestCase):
    def test_text_is_that_of_pytorch(self):
        def text(device):
            with self.assertRaises(RuntimeError) as caught:
                torch.randn(2, 3, device=device) @ torch.randn(2, 3, device=device)
            return str(caught.exception)
        self.assertEqual(text(D), text("cpu"))

    def test_wrong_calls_are_those_of_the_cpu(self):
        """The same type of exception, nothing written, and no call that counts as one of the cpu's."""
        def ones(*sizes, dtype=None):
            return lambda device: torch.ones(*sizes, dtype=dtype, device=device)
        f3, i3 = ones(3), ones(3, dtype=torch.long)
        ce = F.cross_entropy
        calls = [
            (lambda x: x.add_(1.5), i3), (lambda x: x.sigmoid_(), i3), (lambda x: x.exp_(), i3),
            (lambda x, y: x.mul_(y), i3, f3), (lambda x, y: torch.add(y, 1, out=x), i3, f3),
            (lambda x, y: torch.mm(y, y, out=x), ones(2, 2, dtype=torch.long), ones(2, 2)),
            (lambda x, y: x.add_(y), f3, ones(1, 3)), (lambda x, y: x.add_(y), f3, ones(2, 3)),
            (lambda x, y: x.lerp_(y, 0.5), f3, ones(1, 3)), (lambda x: x.sum(4), f3),
            (lambda x, y: torch.cat([x, y]), ones(2, 3), ones(2, 4)), (lambda x: x[7], f3),
            (lambda x, y: F.linear(x, y), ones(2, 3), ones(2, 4)), (lambda x: x.item(), f3),
            (lambda x, y: F.conv2d(x, y), ones(1, 3, 4, 4), ones(2, 4, 3, 3)),
            (lambda x, y: ce(x, y), ones(2, 3), i3),
            (lambda x, y: ce(x, y), ones(2, 3), ones(2, dtype=torch.int16)),
            (lambda x, y: x @ y, ones(2, 3), ones(3, 2, dtype=torch.float64)),
            (lambda x: F.layer_norm(x, (4,)), ones(2, 3)),
            (lambda x: F.max_pool2d(x, 4), ones(1, 1, 2, 2)), (lambda x: x.reshape(2, 2), f3),
            (lambda x: x - x, ones(2, dtype=torch.bool)),
            (lambda x: torch.special.airy_ai(x, out=x), i3),
            (lambda x: torch.linalg.eigvals(x), ones(2, 3)),
            (lambda x, y: torch.linalg.solve(x, y), ones(2, 3), ones(2, 3)),
        ]
        for strict in ("", "1"):
            os.environ["TERN_TORCH_STRICT"] = strict
            try:
                self.compare_errors(calls)
            finally:
                del os.environ["TERN_TORCH_STRICT"]

    def compare_errors(self, calls):
        for i, (call, *makers) in enumerate(calls):
            with self.subTest(call=i, strict=os.environ["TERN_TORCH_STRICT"]):
                raised = []
                for device in ("cpu", D):
                    given = [make(device) for make in makers]
                    torch.tern.reset_counts()
                    with self.assertRaises(Exception) as caught:
                        call(*given)
                    raised.append(type(caught.exception))
                    self.assertTrue(all((x == 1).all() for x in given))
                self.assertIs(*raised)
                self.assertEqual(torch.tern.fallbacks(), {})

    def test_devices_are_not_mixed(self):
        x, y = torch.ones(3, device=D), torch.ones(3)
        for call in (lambda: x + y, lambda: x.mul_(y), lambda: torch.cat([x, y]),
                     lambda: torch.exp(x, out=y), lambda: torch.where(x > 0, x, y)):
            with self.assertRaisesRegex(RuntimeError, "same device"):
                call()
        self.assertEqual((x + y[0]).tolist(), [2, 2, 2])

    def test_memory_that_is_not_there(self):
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(1 << 45, dtype=torch.uint8, device=D)
        self.assertEqual(torch.ones(2, device=D).sum().item(), 2)

    def test_an_index_that_is_not_there(self):
        with self.assertRaises((IndexError, RuntimeError)):
            torch.randn(3, device=D)[torch.tensor([7], device=D)].cpu()
            torch.tern.synchronize()
        self.assertEqual(torch.ones(2, device=D).sum().item(), 2)

    def test_fallbacks_are_counted_and_told_once(self):
        x = torch.randn(3, 3, device=D, dtype=torch.float32)
        torch.tern.reset_counts()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                torch.linalg.eigvals(x)
        told = [str(w.message) for w in caught if "runs on the cpu" in str(w.message)]
        self.assertEqual([count for count, _ in torch.tern.fallbacks().values()], [3])
        self.assertEqual(len(told), 1)

    def test_strict(self):
        os.environ["TERN_TORCH_STRICT"] = "1"
        try:
            with self.assertRaisesRegex(NotImplementedError, "TERN_TORCH_STRICT"):
                torch.linalg.eigvals(torch.randn(3, 3, device=D))
            x = torch.ones(3, device=D)
            with self.assertRaisesRegex(NotImplementedError, "TERN_TORCH_STRICT"):
                torch.special.airy_ai(x, out=x)
            self.assertEqual(x.tolist(), [1, 1, 1])
        finally:
            del os.environ["TERN_TORCH_STRICT"]

    def test_complex_numbers_by_the_cpu(self):
        x = torch.randn(3, device=D, dtype=torch.complex64)
        torch.testing.assert_close((x * 2).abs().cpu(), (x.cpu() * 2).abs())
        torch.testing.assert_close(torch.view_as_real(x).cpu(), torch.view_as_real(x.cpu()))
        torch.testing.assert_close(x.conj().cpu(), x.cpu().conj())


if __name__ == "__main__":
    unittest.main()
