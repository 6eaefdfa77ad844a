"""sides.py -- processes that measure when asked to, and what is said of them."""
import os
import statistics
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
lines = []     # all that was said
wrong = []     # what failed or does not count
measured = {}  # ratios by (what, device, peer)


def say(text=""):
    print(text, flush=True)
    lines.append(text)


def environment(**more):
    """This one's, but OpenBLAS chooses its kernels for this processor. Old ones do not know new
    processors: they are told of AVX-512 where it is there. PoCL's workers keep to a core each, if
    nothing else is asked for: woken together they often begin on the same one."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    found.setdefault("POCL_AFFINITY", "1")
    with open("/proc/cpuinfo") as cpuinfo:
        if " avx512vl " in cpuinfo.read():
            found["OPENBLAS_CORETYPE"] = "SkylakeX"
    return {**found, "PYTHONDONTWRITEBYTECODE": "1", **more}


class Side:
    """A process that measures when it is asked to. Answers are lists of words, empty when it has
    gone; turns are seconds, or whatever it measures."""

    def __init__(self, name, command, **more):
        self.name, self.command, self.more = name, command, more
        self.turns, self.losses, self.memory, self.process = [], [], "", None
        self.kind = ""  # of which the best one counts

    def start(self):
        self.process = self.process or subprocess.Popen(self.command, stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, env=environment(**self.more))
        return self

    def read(self):
        return self.process.stdout.readline().split()

    def ask(self, line):
        # What the other process still has spinning is to be asleep by then.
        time.sleep(0.06)
        try:
            print(line, file=self.process.stdin, flush=True)
            return self.read()
        except BrokenPipeError:
            return []

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:  # it has gone, with a request unread
            pass
        self.process.wait()

    def median(self):
        return statistics.median(self.turns)


def ratio(over, under):
    """Of two lists of turns, turn by turn; the median."""
    return statistics.median(a / b for a, b in zip(over, under))


def torch_side(name, command, device, threads=1):
    return Side(name, command, OMP_NUM_THREADS="%d" % threads, OPENBLAS_NUM_THREADS="%d" % threads,
                OPENBLAS_THREAD_TIMEOUT="18") if device == "cpu" else Side(name, command)


def unit(seconds):
    for scale, name in (1e9, "ns"), (1e6, "us"), (1e3, "ms"):
        if seconds * scale < 1000 or name == "ms":
            return "%.4g %s" % (seconds * scale, name)


def save(name, title):
    """What was said, as bench/results/NAME.md."""
    with open(os.path.join(ROOT, "bench", "results", name + ".md"), "w") as file:
        file.write("# %s\n\n```\n%s\n```\n" % (title or name, "\n".join(lines)))
