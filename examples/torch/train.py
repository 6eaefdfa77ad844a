"""A loop as PyTorch's tutorials have it; only the device is another one.

    python train.py [tern:0]

Digits of 8 x 8 pixels are drawn by the program itself: strokes of ten classes with noise. The loss
and the share of right answers are printed for each epoch."""
import sys
import time

import torch
import torch_tern  # noqa: F401  (not needed where torch_tern is installed)
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = sys.argv[1] if len(sys.argv) > 1 else "tern:0"
torch.manual_seed(0)
patterns = (torch.rand(10, 1, 8, 8) > 0.6).float()
labels = torch.randint(0, 10, (1024,))
images = patterns[labels] + 0.5 * torch.randn(1024, 1, 8, 8)
loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2),
    nn.Linear(512, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
loss_of = nn.CrossEntropyLoss()

print("training on", torch.tern.get_device_name(device) if "tern" in device else device)
for epoch in range(3):
    start, total, right = time.time(), 0.0, 0
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        logits = model(x)
        loss = loss_of(logits, y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
        right += (logits.argmax(1) == y).sum().item()
    print(f"epoch {epoch + 1}: loss {total / len(images):.4f}, right {right / len(images):.3f}, "
          f"{time.time() - start:.1f} s")
if "tern" in device:
    print("ran on the cpu:", torch.tern.fallbacks() or "nothing")
assert right / len(images) > 0.9
