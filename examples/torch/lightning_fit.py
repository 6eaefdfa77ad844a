"""Lightning: Trainer(accelerator="tern").

    python lightning_fit.py

Needs lightning. A perceptron learns which side of a circle a point is on."""
import lightning
import torch
import torch_tern.lightning  # noqa: F401  (registers the accelerator)
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Circle(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
        self.losses = []

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self.body(x)[:, 0], y)
        self.losses.append(loss.detach())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


lightning.seed_everything(0)
points = torch.rand(1024, 2) * 2 - 1
data = DataLoader(TensorDataset(points, (points.norm(dim=1) < 0.7).float()), 64, shuffle=True)
model = Circle()
trainer = lightning.Trainer(accelerator="tern", devices=1, max_epochs=5, logger=False,
                            enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False)
trainer.fit(model, data)
first, last = (torch.stack(part).mean().item() for part in (model.losses[:16], model.losses[-16:]))
print(f"device {trainer.strategy.root_device}, loss {first:.3f} -> {last:.3f}")
print("ran on the cpu:", torch.tern.fallbacks() or "nothing")
assert trainer.strategy.root_device.type == "tern" and last < first
