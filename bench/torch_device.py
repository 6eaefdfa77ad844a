"""tern as a PyTorch device beside PyTorch's cpu and beside the same in C: microseconds a call, and
training steps of ResNet-18, GPT-2 and LoRA.

    torch_device.py [--devices cpu,tern:0,tern:1] [--rounds 5] [--build FOLDER] [--gpt2 small]
                    [calls] [steps]

Needs torch_tern; for steps torchvision, transformers and PEFT. TERN_TORCH_DEVICES says what tern:0
and tern:1 are. "step" is the function as a torch_tern.step. FOLDER is a build with -DTERN_BENCH=ON:
its bench_torch_steps trains the same in C, from the same weights, and its first loss must be that of
the others; calls in C are those of the library, by ctypes, of which an empty call is taken off.
Devices take turns, and the best of the rounds counts. Ratios are to PyTorch's cpu (below 1: the
device is faster), of the wall's time and of the processor's, which a busy machine disturbs less; on
PoCL and the cpu the two are alike with one thread (OMP_NUM_THREADS=1)."""
import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
import warnings

import torch
import torch_tern
from torch import nn


def synchronize(device):
    if device.startswith("tern"):
        torch.tern.synchronize(device)


class Here:
    """A function of this process on a device."""

    def __init__(self, function, device):
        self.function, self.device = function, device

    def seconds(self, repeats):
        """Of the wall and of the processor, for one call."""
        synchronize(self.device)
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(repeats):
            self.function()
        synchronize(self.device)
        return (time.perf_counter() - wall) / repeats, (time.process_time() - processor) / repeats


# ---- calls

def calls(device):
    x, y = torch.randn(8, 8, device=device), torch.randn(8, 8, device=device)
    w = torch.randn(8, 8, device=device)
    view = x.t()
    return {"add": lambda: x + y, "add_": lambda: x.add_(y), "mul 2.0": lambda: x * 2.0,
            "add of a view": lambda: x + view, "softmax": lambda: x.softmax(-1),
            "mm": lambda: x.mm(y), "linear": lambda: nn.functional.linear(x, w),
            "relu": lambda: x.relu(), "sum": lambda: x.sum(), "empty": lambda: torch.empty(8, 8, device=device),
            "view": lambda: x.view(64)}


class InC:
    """The same calls of tern's C API, for which ctypes' own cost is taken off."""

    def __init__(self, device, name):
        self.tern = ctypes.CDLL(self.library())
        self.device = device.encode()
        for function in ("tern_add", "tern_add_", "tern_softmax", "tern_mm", "tern_linear",
                         "tern_relu", "tern_sum", "tern_keep", "tern_t"):
            getattr(self.tern, function).restype = ctypes.c_void_p
        x, y = (self.tern_rand() for _ in range(2))
        view = self.kept(self.tern.tern_t(ctypes.c_void_p(x)))
        p = ctypes.c_void_p
        self.call = {"add": (self.tern.tern_add, p(x), p(y)), "add_": (self.tern.tern_add_, p(x), p(y)),
                     "add of a view": (self.tern.tern_add, p(x), p(view)),
                     "softmax": (self.tern.tern_softmax, p(x), -1), "mm": (self.tern.tern_mm, p(x), p(y)),
                     "linear": (self.tern.tern_linear, p(x), p(y), None), "relu": (self.tern.tern_relu, p(x)),
                     "sum": (self.tern.tern_sum, p(x))}.get(name)

    @staticmethod
    def library():
        with open("/proc/self/maps") as file:
            return next(line.split()[-1] for line in file if "/libtern.so" in line)

    def kept(self, x):
        return self.tern.tern_keep(ctypes.c_void_p(x))

    def tern_rand(self):
        class Shape(ctypes.Structure):
            _fields_ = [("ndim", ctypes.c_int), ("dims", ctypes.c_int64 * 12)]
        self.tern.tern_rand.restype = ctypes.c_void_p
        self.tern.tern_rand.argtypes = [Shape, ctypes.c_int, ctypes.c_char_p]
        shape = Shape(2, (ctypes.c_int64 * 12)(8, 8))
        return self.kept(self.tern.tern_rand(shape, 1, self.device)) # TERN_F32

    def scope(self, function, repeats):
        """Seconds of calls whose results a scope takes, in pieces of 200."""
        class Scope(ctypes.Structure):
            _fields_ = [("active", ctypes.c_int), ("depth", ctypes.c_int), ("mark", ctypes.c_size_t)]
        enter, leave = self.tern.tern_scope_enter, self.tern.tern_scope_leave
        enter.restype = Scope
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(repeats // 200):
            scope = enter()
            for _ in range(200):
                function()
            leave(ctypes.byref(scope))
        self.tern.tern_synchronize(self.device)
        return (time.perf_counter() - wall) / repeats, (time.process_time() - processor) / repeats

    def seconds(self, repeats):
        function, *arguments = self.call
        empty = self.scope(lambda: self.tern.tern_last_status(), repeats)
        whole = self.scope(lambda: function(*arguments), repeats)
        return whole[0] - empty[0], whole[1] - empty[1]


# ---- steps

def resnet18():
    """torchvision's ResNet-18, SGD with momentum; 4 images of 64 x 64."""
    import torchvision
    model = torchvision.models.resnet18(num_classes=10)
    inputs = {"pixel_values": torch.randn(4, 3, 64, 64), "labels": torch.arange(4)}
    config = ('{"architecture": "resnet18", "num_classes": 10, "num_features": 512, '
              '"pretrained_cfg": {"input_size": [3, 64, 64]}}')

    def loss(model, batch):
        return nn.functional.cross_entropy(model(batch["pixel_values"]), batch["labels"])
    return model, inputs, loss, config, lambda p: torch.optim.SGD(p, 0.01, momentum=0.9), "0.01"


def gpt2(size):
    """transformers' GPT-2, AdamW: small (124M weights), 1 x 64 tokens; tiny, 4 layers of 256, 2 x 128."""
    from transformers import GPT2Config, GPT2LMHeadModel
    none = dict(embd_pdrop=0.0, resid_pdrop=0.0, attn_pdrop=0.0)
    config = GPT2Config(**none) if size == "small" else GPT2Config(
        vocab_size=2000, n_embd=256, n_layer=4, n_head=8, n_positions=128, bos_token_id=0, eos_token_id=0, **none)
    ids = torch.randint(0, 2000, (1, 64) if size == "small" else (2, 128))
    return (GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids}, lambda model, batch: model(**batch).loss,
            None, lambda p: torch.optim.AdamW(p, 1e-4), "1e-4")


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(vocab_size=2000, hidden_size=256, intermediate_size=512, num_hidden_layers=4,
                                         num_attention_heads=8, num_key_value_heads=4))
    ids = torch.randint(0, 2000, (2, 128))
    return model, {"input_ids": ids, "labels": ids}


def lora():
    """PEFT's LoRA of rank 8 on transformers' Llama of 4 layers of 256, AdamW; 2 x 128 tokens."""
    from peft import LoraConfig, get_peft_model
    model, inputs = llama()
    base = {k: v.clone() for k, v in model.state_dict().items()}
    config = model.config
    model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
    model.saved = lambda folder: type(model.base_model.model)(config).save_pretrained(folder, state_dict=base)
    return (model, inputs, lambda model, batch: model(**batch).loss, None,
            lambda p: torch.optim.AdamW(p, 1e-3), "1e-3")


class There:
    """The step in C, a process that takes turns."""

    def __init__(self, program, arguments):
        self.process = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.loss = float(self.process.stdout.readline() or "nan")

    def seconds(self, repeats):
        self.process.stdin.write(f"{repeats}\n")
        self.process.stdin.flush()
        return tuple(map(float, self.process.stdout.readline().split()))

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def save_for_c(model, inputs, config, folder):
    from safetensors.torch import save_file
    if config:
        with open(os.path.join(folder, "config.json"), "w") as file:
            file.write(config)
        save_file({k: v.contiguous() for k, v in model.state_dict().items()}, os.path.join(folder, "model.safetensors"))
    else:
        getattr(model, "saved", model.save_pretrained)(folder)
    save_file({k: v.clone() for k, v in inputs.items()}, os.path.join(folder, "inputs.safetensors"))


def sides(name, made, devices, program, folder):
    """What takes turns, by label, after a first step each; their losses must agree."""
    model, inputs, loss_of, config, optimizer_of, lr = made
    import copy
    model.saved = getattr(model, "saved", model.save_pretrained if hasattr(model, "save_pretrained") else None)
    save_for_c(model, inputs, config, folder)
    del model.saved
    all_sides, losses = {}, {}
    for device in devices:
        for label, wrap in ((device, lambda f: f), (device + " step", torch_tern.step)):
            if "step" in label and device == "cpu":
                continue
            mine = copy.deepcopy(model).to(device).train()
            batch = {k: v.to(device) for k, v in inputs.items()}
            optimizer = optimizer_of([p for p in mine.parameters() if p.requires_grad])

            def train(batch, mine=mine, optimizer=optimizer):
                optimizer.zero_grad()
                loss = loss_of(mine, batch)
                loss.backward()
                optimizer.step()
                return loss
            function = wrap(train)
            losses[label] = function(batch).item()
            for _ in range(3):
                function(batch)
            if "step" in label and function.stats()["reason"]:
                print(f"{name} {label}: {function.stats()['reason']}")
            all_sides[label] = Here(lambda function=function, batch=batch: function(batch), device)
    for i, device in enumerate(torch_tern.devices() if program else []):
        if f"tern:{i}" in devices:
            all_sides["C " + device] = side = There(program, [folder, device, lr] + (["lora"] if name == "lora" else []))
            losses["C " + device] = side.loss
    wrong = {k: v for k, v in losses.items() if not abs(v - losses[devices[0]]) < 1e-4 * abs(losses[devices[0]])}
    if wrong:
        sys.exit(f"{name}: the first losses are not the same: {losses}")
    return all_sides


# ---- turns

def in_turns(made, rounds, repeats, label, scale, digits):
    """made: what takes turns, by name; the first is what the others are compared with."""
    best = {name: (float("inf"), float("inf")) for name in made}
    for _ in range(rounds):
        for name, side in made.items():
            best[name] = tuple(map(min, best[name], side.seconds(repeats)))
    first = next(iter(best.values()))
    for name, (wall, processor) in best.items():
        print(f"{label:14s} {name:16s} {wall * scale:9.{digits}f} ({wall / first[0]:5.2f})   "
              f"{processor * scale:9.{digits}f} ({processor / first[1]:5.2f})", flush=True)


def main():
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["calls", "steps"])
    parser.add_argument("--devices", default="cpu,tern:0,tern:1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build")
    parser.add_argument("--gpt2", default="small", choices=["small", "tiny"])
    parser.add_argument("--only", default="resnet18,gpt2,lora")
    arguments = parser.parse_args()
    devices = arguments.devices.split(",")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    print("PyTorch", torch.__version__, "with", torch.get_num_threads(), "threads; tern's devices", torch_tern.devices())
    if "calls" in arguments.what:
        print("microseconds a call of (8, 8) in float32, without gradients: wall (to the cpu), processor (to the cpu)")
        with torch.no_grad():
            by_device = {device: calls(device) for device in devices}
            for name in by_device[devices[0]]:
                turns = {device: Here(by_device[device][name], device) for device in devices}
                for i, device in enumerate(torch_tern.devices()):
                    if f"tern:{i}" in devices and InC(device, name).call:
                        turns["C " + device] = InC(device, name)
                in_turns(turns, arguments.rounds, 2000, name, 1e6, 2)
    if "steps" in arguments.what:
        print("milliseconds a training step: wall (to the cpu), processor (to the cpu)")
        program = arguments.build and os.path.join(arguments.build, "bench", "bench_torch_steps")
        for name, make in (("resnet18", resnet18), ("gpt2", lambda: gpt2(arguments.gpt2)), ("lora", lora)):
            if name not in arguments.only.split(","):
                continue
            torch.manual_seed(0)
            try:
                made = make()
            except ImportError as error:
                print(f"{name:14s} SKIPPED: {error}")
                continue
            with tempfile.TemporaryDirectory() as folder:
                turns = sides(name, made, devices, program, folder)
                in_turns(turns, arguments.rounds, 2, name, 1e3, 1)
                for side in turns.values():
                    getattr(side, "end", lambda: None)()


if __name__ == "__main__":
    main()
