"""tern as a PyTorch device beside PyTorch's cpu: microseconds a call, and training steps.

    torch_device.py [--devices cpu,tern:0,tern:1] [--rounds 5] [calls] [steps]

Needs torch_tern, for LoRA transformers and PEFT. The devices take turns, and the best of the rounds
counts; ratios are to the cpu (below 1: the device is faster). TERN_TORCH_DEVICES says what tern:0
and tern:1 are."""
import argparse
import time
import warnings

import torch
import torch_tern
from torch import nn


def seconds(function, repeats, device):
    function()
    synchronize(device)
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    synchronize(device)
    return (time.perf_counter() - start) / repeats


def synchronize(device):
    if device.startswith("tern"):
        torch.tern.synchronize(device)


def calls(device):
    x, y = torch.randn(8, 8, device=device), torch.randn(8, 8, device=device)
    w = torch.randn(8, 8, device=device)
    view = x.t()
    return {"add": lambda: x + y, "add_": lambda: x.add_(y), "mul 2.0": lambda: x * 2.0,
            "add of a view": lambda: x + view, "softmax": lambda: x.softmax(-1),
            "mm": lambda: x.mm(y), "linear": lambda: nn.functional.linear(x, w),
            "relu": lambda: x.relu(), "sum": lambda: x.sum(), "empty": lambda: torch.empty(8, 8, device=device),
            "view": lambda: x.view(64)}


class Block(nn.Module):
    def __init__(self, n_in, n, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(n_in, n, 3, stride, 1, bias=False), nn.BatchNorm2d(n), nn.ReLU(inplace=True),
                                  nn.Conv2d(n, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n))
        self.short = nn.Sequential(nn.Conv2d(n_in, n, 1, stride, bias=False), nn.BatchNorm2d(n)) \
            if stride > 1 or n_in != n else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def resnet18(device):
    """torchvision's ResNet-18, SGD; 4 images of 64 x 64."""
    sizes, n_in, layers = (64, 64, 128, 128, 256, 256, 512, 512), 64, []
    for i, n in enumerate(sizes):
        layers.append(Block(n_in, n, 2 if i in (2, 4, 6) else 1))
        n_in = n
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                          *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)).to(device)
    x, y = torch.randn(4, 3, 64, 64).to(device), torch.arange(4).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return lambda: step(optimizer, nn.functional.cross_entropy(model(x), y))


def gpt2(device):
    """transformers' GPT-2 of 4 layers of 256, AdamW; 2 x 128 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(vocab_size=2000, n_embd=256, n_layer=4, n_head=8, n_positions=128)).to(device)
    ids = torch.randint(0, 2000, (2, 128)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    return lambda: step(optimizer, model(input_ids=ids, labels=ids).loss)


def lora(device):
    """PEFT's LoRA on transformers' Llama of 4 layers of 256, AdamW; 2 x 128 tokens."""
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM
    base = LlamaForCausalLM(LlamaConfig(vocab_size=2000, hidden_size=256, intermediate_size=512, num_hidden_layers=4,
                                        num_attention_heads=8, num_key_value_heads=4))
    model = get_peft_model(base, LoraConfig(r=8, target_modules=["q_proj", "v_proj"])).to(device)
    ids = torch.randint(0, 2000, (2, 128)).to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-3)
    return lambda: step(optimizer, model(input_ids=ids, labels=ids).loss)


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def in_turns(made, rounds, repeats, label, scale, digits):
    """made: a function for each device."""
    best = {device: float("inf") for device in made}
    for _ in range(rounds):
        for device, function in made.items():
            best[device] = min(best[device], seconds(function, repeats, device))
    first = next(iter(best.values()))
    print(f"{label:14s} " + "  ".join(f"{device} {t * scale:8.{digits}f} ({t / first:4.2f})" for device, t in best.items()),
          flush=True)


def main():
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["calls", "steps"])
    parser.add_argument("--devices", default="cpu,tern:0,tern:1")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    devices = arguments.devices.split(",")
    print("PyTorch", torch.__version__, "with", torch.get_num_threads(), "threads; tern's devices", torch_tern.devices())
    if "calls" in arguments.what:
        print("microseconds a call of (8, 8) in float32, without gradients")
        with torch.no_grad():
            by_device = {device: calls(device) for device in devices}
            for name in by_device[devices[0]]:
                in_turns({device: by_device[device][name] for device in devices}, arguments.rounds, 2000, name, 1e6, 2)
    if "steps" in arguments.what:
        print("milliseconds a training step")
        for make in (resnet18, gpt2, lora):
            try:
                torch.manual_seed(0)
                made = {device: make(device) for device in devices}
            except ImportError as error:
                print(f"{make.__name__:14s} SKIPPED: {error}")
                continue
            in_turns(made, arguments.rounds, 3, make.__name__, 1e3, 1)


if __name__ == "__main__":
    main()
