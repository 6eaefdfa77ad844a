#!/usr/bin/env python3
"""test_tern.py -- the Python package against NumPy and, where it is installed, PyTorch. TERN_LIBRARY_DIR names the folder of
the libraries. Skips (77) without NumPy."""
import copy
import gc
import os
import pickle
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
try:
    import numpy
except ImportError:
    print("SKIP: there is no NumPy for", sys.executable)
    sys.exit(77)
try:
    import torch
except ImportError:
    torch = None
    print("SKIP: there is no PyTorch for", sys.executable, "(NumPy is compared)")
import tern
from tern import _c

DEVICES = [d for d in os.environ.get("TERN_TEST_DEVICES", "cpu").split(",") if d in tern.devices()]


def normal(*shape):
    return numpy.random.default_rng(1).standard_normal(shape).astype("float32")


class Names(unittest.TestCase):
    def test_every_row_is_a_function(self):
        i = 0
        while op := _c.names.tern_named_op_at(i):
            i += 1
            where = tern
            for word in _c.names.tern_named_op_name(op).decode().split("."):
                where = getattr(where, word)
            self.assertTrue(callable(where), where)
            self.assertIn(_c.names.tern_named_op_signature(op).decode(), where.__doc__)
        self.assertGreater(i, 400)

    def test_builtins_are_left_alone(self):
        self.assertEqual(sum([1, 2]), 3)
        self.assertIs(type(tern.sum(tern.tensor([1, 2]))), tern.Tensor)

    def test_submodules_import(self):
        from tern.nn.functional import softmax
        import tern.linalg
        self.assertEqual(softmax(tern.tensor([0.0, 0.0]), 0).tolist(), [0.5, 0.5])
        self.assertAlmostEqual(tern.linalg.det(tern.tensor([[2.0, 0], [0, 3]])).item(), 6, 5)


class Copies(unittest.TestCase):
    """A tensor is a pointer: whatever copies a Python object must not copy that, or two tensors free it."""

    def test_pickled(self):
        for device in DEVICES:
            for x in (tern.tensor(normal(3, 4), device=device), tern.tensor([True, False], device=device),
                      tern.tensor(normal(0, 3), device=device), tern.tensor(2.5, device=device)):
                for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                    y = pickle.loads(pickle.dumps(x, protocol))
                    self.assertEqual((y.shape, y.dtype, y.device), (x.shape, x.dtype, x.device))
                    self.assertEqual(y.tolist(), x.tolist())
        x = tern.tensor(normal(2)).requires_grad_()
        self.assertTrue(pickle.loads(pickle.dumps(x)).requires_grad)
        with self.assertRaises(RuntimeError):
            pickle.dumps(x * 2)
        data = pickle.dumps(tern.tensor(normal(2))).replace(b"\x03cpu", b"\x0aopencl:777")
        self.assertIn(b"opencl:777", data)
        with self.assertWarnsRegex(UserWarning, "opencl:777, which is not there"):
            self.assertEqual(pickle.loads(data).device, "cpu")
        view = tern.tensor(normal(3, 4)).transpose(0, 1)
        self.assertEqual(pickle.loads(pickle.dumps(view)).tolist(), view.tolist())

    def test_copied(self):
        x = tern.tensor(normal(3))
        before = _c.lib.tern_live_tensors()
        shallow, (one, other) = copy.copy(x), copy.deepcopy([x, x])
        self.assertIs(one, other)
        one.copy_(x * 2)
        self.assertEqual(shallow.tolist(), x.tolist())
        self.assertNotEqual(one.tolist(), x.tolist())
        del shallow, one, other
        gc.collect()
        self.assertEqual(_c.lib.tern_live_tensors(), before)
        self.assertEqual(copy.deepcopy(x.dtype).name, "float32")

    def test_what_cannot_be_copied_says_so(self):
        module = tern.Module.__new__(tern.Module)
        module._pointer, module._owned = None, False
        for function in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaises(TypeError):
                function(module)

    def test_lent_and_refused(self):
        x = tern.tensor(normal(4)).to("bfloat16")
        for _ in range(3):
            with self.assertRaises((BufferError, RuntimeError, TypeError)):
                numpy.from_dlpack(x)
        for version in (None, (1, 1)):
            capsule = x.__dlpack__(max_version=version)
            del capsule
        before = _c.lib.tern_live_tensors()
        for _ in range(3):
            with self.assertRaises((BufferError, RuntimeError, TypeError)):
                numpy.from_dlpack(x)
        x.__dlpack__()
        self.assertLessEqual(_c.lib.tern_live_tensors(), before + 1)
        with self.assertRaises(BufferError):
            tern.tensor(normal(2)).requires_grad_().__dlpack__()
        for device in DEVICES:
            if device != "cpu":
                for consumer in filter(None, (numpy, torch)):
                    with self.assertRaises((BufferError, RuntimeError, TypeError)):
                        consumer.from_dlpack(tern.tensor(normal(2), device=device))
        gc.collect()


class Numbers(unittest.TestCase):
    def test_values_are_numpys(self):
        a, b = normal(5, 7), normal(7, 3)
        for device in DEVICES:
            x, y = tern.tensor(a, device=device), tern.tensor(b, device=device)
            self.assertEqual(x.device, device)
            numpy.testing.assert_allclose((x @ y).cpu().numpy(), a @ b, rtol=1e-4, atol=1e-5)
            numpy.testing.assert_allclose((2 - x * 3 + 1).cpu().numpy(), 2 - a * 3 + 1, rtol=1e-5, atol=1e-6)
            numpy.testing.assert_allclose(x.exp().sum(dim=1).cpu().numpy(), numpy.exp(a).sum(1), rtol=1e-5)
            numpy.testing.assert_array_equal((x > 0).cpu().numpy(), a > 0)
            numpy.testing.assert_array_equal(numpy.asarray(x.T), a.T)

    def test_types_go_both_ways(self):
        for name in "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split():
            a = numpy.arange(6).reshape(2, 3).astype(name)
            x = tern.tensor(a)
            self.assertEqual(x.dtype.name, name)
            self.assertEqual(x.shape, (2, 3))
            numpy.testing.assert_array_equal(x.numpy(), a)
            self.assertIs(x.to(a.dtype).dtype, getattr(tern, name))
        self.assertIs(tern.tensor([1.5, 2]).dtype, tern.float32)
        self.assertIs(tern.tensor([1, 2]).dtype, tern.int64)
        self.assertIs(tern.tensor([1, 2], dtype=tern.bfloat16).dtype, tern.bfloat16)
        with self.assertRaisesRegex(TypeError, "NumPy has no bfloat16"):
            tern.tensor([1, 2], dtype="bfloat16").numpy()
        self.assertEqual((tern.tensor([1, 2]) + 1).tolist(), [2, 3])
        self.assertIs((tern.tensor([1, 2]) + 1.5).dtype, tern.float32)
        self.assertIs((1 + tern.tensor([1, 2])).dtype, tern.int64)

    def test_memory_is_shared(self):
        a = numpy.zeros(4, "float32")
        x = tern.from_numpy(a)
        x.copy_(x + 1)
        self.assertEqual(a.tolist(), [1, 1, 1, 1])
        b = x.numpy()
        del x
        gc.collect()
        b[0] = 7
        self.assertEqual(a[0], 7)
        turned = tern.tensor(normal(3, 4).T)
        self.assertEqual(turned.shape, (4, 3))
        with self.assertRaises(tern.ArgumentError):
            tern.from_numpy(a[::-1])

    def test_indices(self):
        a = normal(4, 5, 6)
        x = tern.tensor(a)
        for key in (1, -1, slice(1, 3), (slice(None), 2), (0, slice(None, None, 2), slice(5, 1)), (Ellipsis, 3),
                    (None, 1), (slice(-2, None), Ellipsis, slice(None, None, 3))):
            numpy.testing.assert_array_equal(x[key].numpy(), a[key])
        numpy.testing.assert_array_equal(x[tern.tensor([3, 0])].numpy(), a[[3, 0]])
        numpy.testing.assert_array_equal(x[x > 0].numpy(), a[a > 0])
        with self.assertRaises(IndexError):
            x[4]

    def test_lists_words_and_results(self):
        x, y = tern.tensor([[3.0, 1, 2]]), tern.tensor([[6.0, 5, 4]])
        self.assertEqual(tern.cat([x, y], dim=0).shape, (2, 3))
        values, indices = tern.sort(x, dim=1)
        self.assertEqual((values.tolist(), indices.tolist()), ([[1, 2, 3]], [[1, 2, 0]]))
        self.assertEqual(tern.nn.functional.mse_loss(x, y, reduction="sum").item(), 9 + 16 + 4)
        self.assertEqual(x.view(3, 1).shape, (3, 1))
        self.assertEqual(x.permute(1, 0).shape, (3, 1))
        self.assertEqual(x.reshape([-1]).shape, (3,))
        self.assertEqual(tern.zeros([2, 3], dtype=tern.int32).dtype, tern.int32)


class Gradients(unittest.TestCase):
    def test_backward(self):
        for device in DEVICES:
            x = tern.tensor([[1.0, 2], [3, 4]], device=device).requires_grad_()
            (x * x).sum().backward()
            self.assertEqual(x.grad.tolist(), [[2, 4], [6, 8]])
            x.grad = None
            self.assertIsNone(x.grad)
            with tern.no_grad():
                self.assertFalse((x * 2).requires_grad)
            self.assertTrue((x * 2).requires_grad)
            with self.assertRaisesRegex(RuntimeError, "requires a gradient"):
                x.numpy()

    @unittest.skipUnless(torch, "there is no PyTorch")
    def test_as_pytorch(self):
        functional = torch.nn.functional if torch else None
        a, w = normal(4, 3, 8, 8), normal(5, 3, 3, 3)
        x, v = tern.tensor(a).requires_grad_(), tern.tensor(w).requires_grad_()
        t, u = torch.tensor(a, requires_grad=True), torch.tensor(w, requires_grad=True)
        y = tern.nn.functional.gelu(tern.nn.functional.conv2d(x, v, padding=1))
        z = functional.gelu(functional.conv2d(t, u, padding=1))
        y.square().mean().backward()
        z.square().mean().backward()
        for ours, theirs in ((y.detach(), z.detach()), (x.grad, t.grad), (v.grad, u.grad)):
            torch.testing.assert_close(torch.from_dlpack(ours), theirs, rtol=1e-4, atol=1e-6)
        shared = tern.from_dlpack(torch.ones(3))
        self.assertEqual(shared.tolist(), [1, 1, 1])


class Errors(unittest.TestCase):
    def test_kinds(self):
        x = tern.tensor([[1.0, 2]])
        for call, kind, words in ((lambda: tern.matmul(x, x), ValueError, "mat"),
                                  (lambda: tern.softmax(x), tern.ArgumentError, "softmax"),
                                  (lambda: tern.matmul(x, tern.tensor([[1], [2]])), TypeError, "dtype"),
                                  (lambda: tern.tensor([1.0], device="dance"), tern.Error, "dance"),
                                  (lambda: tern.relu(object()), TypeError, "object"),
                                  (lambda: tern.call("dance"), ValueError, "no operation")):
            with self.assertRaisesRegex(kind, words):
                call()
        self.assertEqual((x + x).tolist(), [[2, 4]])  # nothing is left of them

    def test_nothing_is_left(self):
        def work():
            for _ in range(50):
                x = tern.tensor(normal(8, 8)).requires_grad_()
                (x @ x).sum().backward()
                x.detach().__dlpack__()  # nobody takes it
                numpy.from_dlpack(x.detach()).sum()
                with self.assertRaises(tern.Error):
                    tern.matmul(x, tern.tensor([1.0]).view(1, 1, 1, 1).squeeze(0).reshape(1, 1))

        work()
        gc.collect()
        before = _c.lib.tern_live_tensors()
        work()
        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        gc.collect()
        self.assertEqual(_c.lib.tern_live_tensors(), before)


class More(unittest.TestCase):
    def test_kernels(self):
        source = """__kernel void axpy(__global const float *x, __global float *y, float a, int n)
                    { int i = get_global_id(0); if (i < n) y[i] += a * x[i]; }"""
        for device in DEVICES:
            try:
                k = tern.Kernel(device, source, "axpy")
            except tern.UnsupportedError as e:
                print("SKIP:", e)
                continue
            x, y = tern.tensor(normal(100), device=device), tern.tensor(normal(100), device=device)
            wanted = (y + x * 0.5).cpu().numpy()
            k(100, x, y, 0.5, 100)
            numpy.testing.assert_allclose(y.cpu().numpy(), wanted, rtol=1e-6)
            with self.assertRaises(tern.ArgumentError):
                tern.Kernel(device, "__kernel void dance(", "dance")

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            tern.save({"a": tern.tensor([1.0, 2]), "b": tern.tensor([[3]])}, path)
            loaded = tern.load(path)
            self.assertEqual({k: v.tolist() for k, v in loaded.items()}, {"a": [1, 2], "b": [[3]]})
            with self.assertRaises(tern.Error):
                tern.load(os.path.join(folder, "none.safetensors"))

    def test_modules(self):
        make = _c.lib.tern_nn_linear
        make.restype, make.argtypes = _c.P, [_c.I64, _c.I64, _c.P]
        m = tern.Module(make(3, 2, None))
        w = normal(2, 3)
        m.load_state_dict({"weight": tern.tensor(w), "bias": tern.tensor([1.0, 2])})
        a = normal(4, 3)
        numpy.testing.assert_allclose(m(tern.tensor(a)).detach().numpy(), a @ w.T + [1, 2], rtol=1e-5, atol=1e-6)
        self.assertEqual(list(m.state_dict()), ["weight", "bias"])
        self.assertIn("Linear", repr(m))
        with self.assertRaises(ValueError):
            tern.Module(None)

    def test_devices_and_seeds(self):
        self.assertIn("cpu", tern.devices())
        ones = tern.ones([50])
        drawn = []
        for _ in range(2):
            tern.manual_seed(3)
            drawn.append(tern.nn.functional.dropout(ones).tolist())
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], ones.tolist())
        self.assertIsInstance(tern.notes("cuda"), str)
        with self.assertRaises(tern.Error):
            tern.set_default_device("dance")


if __name__ == "__main__":
    unittest.main(verbosity=1)
