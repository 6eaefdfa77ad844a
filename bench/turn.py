"""turn.py -- how PyTorch's side is timed; clock.h times tern's in the same way."""
import time


def turn(step, seconds, wait):
    """Seconds for one; as many of them as take half of `seconds` at least."""
    n = 1
    while True:
        start = time.perf_counter()
        for _ in range(n):
            step()
        wait()
        spent = time.perf_counter() - start
        if spent >= 0.5 * seconds:
            return spent / n
        n = min(int(seconds / max(spent, 1e-9) * n) + 1, 32 * n)
