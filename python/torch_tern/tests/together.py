"""The tests of a device in one process, which imports PyTorch once: test_device.py, test_step.py,
test_detection.py, examples/torch/train.py, the networks and the operations that `networks.py` and
`opinfo.py --count N` take, and 30 tests of `databases.py`.

    together.py [--count 200]

PyTorch is imported alone, and loads torch_tern by itself. Prints the processor's seconds of each."""
import argparse
import faulthandler
import importlib
import os
import pathlib
import runpy
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TRAIN = HERE.parents[2] / "examples" / "torch" / "train.py"


def seconds():
    """Of the processor, with those of processes that were waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def unit_tests(name):
    """Whether the tests of a module pass; a module that can't run here says so itself."""
    try:
        module = importlib.import_module(name)
    except unittest.SkipTest:
        return True
    tests = unittest.defaultTestLoader.loadTestsFromModule(module)
    return unittest.TextTestRunner(stream=sys.stdout).run(tests).wasSuccessful()


def example():
    """The plain loop, as a program."""
    words, sys.argv = sys.argv, [str(TRAIN)]
    try:
        runpy.run_path(str(TRAIN), run_name="__main__")
    finally:
        sys.argv = words
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", default="200")
    arguments = parser.parse_args()
    faulthandler.enable()
    import torch
    assert "torch_tern" in sys.modules, "PyTorch does not load torch_tern by itself"
    assert torch.ones(2, device="tern").sum().item() == 2
    import databases
    import networks
    import opinfo
    parts = {"import": lambda: True, **{name: lambda name=name: unit_tests(name) for name in (
                 "test_device", "test_step", "test_detection")},
             "train.py": example, "networks": lambda: networks.main([]) == 0,
             "databases": lambda: databases.main(["--count", "30"]) == 0,
             "opinfo": lambda: opinfo.main(["--here", "--count", arguments.count]) == 0}
    failed, before = [], 0.0
    for name, part in parts.items():
        if not part():
            failed.append(name)
        now = seconds()
        print(f"{name} took {now - before:.1f} s of processors", flush=True)
        before = now
    print("FAILED " + ", ".join(failed) if failed else "all parts passed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
