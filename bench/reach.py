"""reach.py -- what tern is to reach on an NVIDIA GPU, and what was."""
from sides import measured, say


def targets(device):
    """What, at least which ratio, and the measured one, None where there is none."""
    replay = device + " replay"
    for name in "ab":
        yield name + " over eager", 5.0, measured.get((name, device, "eager"))
    for name in "ab":
        yield (name + " replayed, over CUDA-graphed torch.compile", 1.5,
               measured.get((name, replay, "CUDA graphs")))
    for name in "ecf":
        yield name + " over eager", 2.0, measured.get((name, device, "eager"))
    yield "gpt2 over torch.compile", 1.0, measured.get(("gpt2", device, "torch.compile"))
    yield "resnet50 over eager channels_last", 1.0, measured.get(("resnet50", device, "eager"))
    passes = {key[2]: value for key, value in measured.items()
              if key[:2] == ("bandwidth of 256 MiB", device)}
    least = min(passes, key=passes.get, default=None)
    yield ("elementwise and rows over a copy, 256 MiB" + (" (%s)" % least if least else ""), 0.9,
           passes.get(least))
    yield ("bf16 product of 8192^3 over PyTorch's", 0.97,
           measured.get(("product", device, "bf16 8192x8192x8192 NN")))


def reach_rows(device):
    say("\nTo reach on %-47s   at least   measured" % device)
    for what, least, ratio in targets(device):
        words = "not measured" if ratio is None else "%8.2f  %s" % (
            ratio, "reached" if ratio >= least else "NOT REACHED")
        say("%-60s %9.2f   %s" % (what, least, words))
