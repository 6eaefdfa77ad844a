"""torchvision's operations of detection networks on a device beside the cpu."""
import os
import sys
import unittest

os.environ.setdefault("TERN_TORCH_DEVICES", "opencl:0,cpu")

import torch
import torch_tern  # noqa: F401

try:
    import torchvision
    from torchvision.ops import batched_nms, nms, roi_align
except ImportError as error:
    print(f"SKIPPED test_detection.py: {error}")
    raise unittest.SkipTest(str(error)) if __name__ != "__main__" else SystemExit(0)

D = "tern:0"


def boxes(n, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    corners = torch.rand(n, 2, generator=generator, dtype=dtype) * 100
    return torch.cat([corners, corners + torch.rand(n, 2, generator=generator, dtype=dtype) * 30],
                     1), torch.rand(n, generator=generator, dtype=dtype)


def rois(k, images, size, seed=0):
    found, _ = boxes(k, seed)
    image = torch.randint(0, images, (k, 1), generator=torch.Generator().manual_seed(seed))
    return torch.cat([image.float(), found / 130 * size * 1.4 - size * 0.2], 1)


class Detection(unittest.TestCase):
    def setUp(self):
        torch.tern.reset_counts()

    def tearDown(self):
        self.assertEqual(torch.tern.fallbacks(), {})

    def test_nms(self):
        for n in (0, 1, 2, 300, 2500):  # the last is computed in pieces
            for threshold in (0.0, 0.3, 0.7, 1.0) if n < 2500 else (0.3,):
                for dtype in (torch.float32, torch.float64):
                    found, scores = boxes(n, n, dtype)
                    got = nms(found.to(D), scores.to(D), threshold)
                    self.assertEqual(got.device, torch.device(D))
                    self.assertEqual(got.tolist(), nms(found, scores, threshold).tolist())

    def test_nms_of_boxes_that_are_alike(self):
        found = torch.tensor([[0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 0, 0], [0, 0, 0, 0],
                              [20, 20, 30, 30.0], [20, 20, 30, 25]])
        scores = torch.tensor([0.5, 0.9, 0.1, 0.1, 0.7, 0.7])
        for threshold in (0.3, 0.5, 0.8):
            self.assertEqual(nms(found.to(D), scores.to(D), threshold).tolist(),
                             nms(found, scores, threshold).tolist())

    def test_nms_of_classes_and_halves(self):
        found, scores = boxes(400)
        classes = torch.arange(400) % 7
        self.assertEqual(batched_nms(found.to(D), scores.to(D), classes.to(D), 0.4).tolist(),
                         batched_nms(found, scores, classes, 0.4).tolist())
        self.assertEqual(nms(found.half().to(D), scores.to(D), 0.4).tolist(),
                         nms(found.half().float(), scores, 0.4).tolist())

    def test_roi_align(self):
        x = torch.randn(3, 5, 17, 23, generator=torch.Generator().manual_seed(1))
        for k in (0, 1, 12):
            regions = rois(k, 3, 40)
            for samples in (2, 1, -1):
                for aligned in (False, True):
                    for scale in (1.0, 0.5):
                        results = []
                        for device in ("cpu", D):
                            leaf = x.clone().to(device).requires_grad_()
                            y = roi_align(leaf, regions.to(device), (3, 4), scale, samples, aligned)
                            weights = torch.linspace(-1, 1, y.numel()).view(y.shape).to(device)
                            (y * weights).sum().backward()
                            results.append((y.detach().cpu(), leaf.grad.cpu()))
                        torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)

    def test_wrong_calls(self):
        found, scores = (x.to(D) for x in boxes(4))
        for call in (lambda: nms(found[:, :3], scores, 0.5), lambda: nms(found, scores[:3], 0.5),
                     lambda: nms(found[0], scores, 0.5), lambda: nms(found, scores.cpu(), 0.5),
                     lambda: torch.ops.torchvision.roi_align(found.view(1, 1, 4, 4), found, 1.0, 2,
                                                             2, 2, False)):
            with self.assertRaises(RuntimeError):
                call()

    def test_a_network_trains(self):
        from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn
        torch.manual_seed(0)
        model = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None,
                                                      num_classes=3, min_size=64, max_size=64)
        model = model.to(D).train()
        target = {"boxes": torch.tensor([[4.0, 5, 40, 44]], device=D),
                  "labels": torch.tensor([1], device=D)}
        losses = model([torch.rand(3, 64, 64, device=D)], [target])
        sum(losses.values()).backward()
        self.assertTrue(all(p.grad.isfinite().all() for p in model.parameters()
                            if p.grad is not None))
        with torch.no_grad():
            self.assertIn("boxes", model.eval()([torch.rand(3, 64, 64, device=D)])[0])


if __name__ == "__main__":
    unittest.main()
