#!/usr/bin/env python3
"""gguf_peer.py TURNS STEP [WHAT...] -- libtern_models over the blocks of a GGUF (the programs TURNS, bench_pretrained, and STEP, bench_gguf_step, which
makes the file) beside llama.cpp on the same file, and beside transformers and PEFT on the dequantized model, on one thread of one machine.

They take turns, ROUNDS each after one that is not counted; what is compared is processor time, which others on the machine change less than the
clock. WHAT: decode lora; both. Before that all have to agree: losses of fixed tokens of tern and transformers to 1e-4, and llama.cpp's logits (it rounds
activations to 8 bits) with transformers' by a correlation of 0.99. llama.cpp does not train over blocks, so that the LoRA step has no row of its.
Needs torch, transformers and peft; TERN_LLAMA_PYTHON is the Python that has llama_cpp (default: this one), without which its rows are left out by name."""
import json, os, statistics, subprocess, sys, tempfile
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run
ROUNDS, TOKENS, CONTEXT = 5, 32, 128


class Llama:
    """llama.cpp in a process of its own, by lines on stdin as the program TURNS."""
    def __init__(self, path):
        self.p = subprocess.Popen([os.environ.get("TERN_LLAMA_PYTHON", sys.executable), os.path.abspath(__file__), "serve", path],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.there = self.p.stdout.readline().strip() == "ready"

    def ask(self, *words):
        self.p.stdin.write(" ".join(map(str, words)) + "\n"); self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())


def serve(path):
    import time
    import llama_cpp as L, numpy
    L.llama_backend_init()
    model = L.llama_model_load_from_file(path.encode(), L.llama_model_default_params())
    p = L.llama_context_default_params()
    p.n_ctx, p.n_threads, p.n_threads_batch = 512, 1, 1
    context = L.llama_init_from_model(model, p)
    size = L.llama_vocab_n_tokens(L.llama_model_get_vocab(model))

    def decode(ids):
        tokens = (L.llama_token * len(ids))(*ids)  # which the batch borrows
        if L.llama_decode(context, L.llama_batch_get_one(tokens, len(ids))): raise RuntimeError("llama_decode")
        return numpy.ctypeslib.as_array(L.llama_get_logits_ith(context, -1), (size,))
    print("ready", flush=True)
    for line in sys.stdin:
        what, n = line.split()[0], int(line.split()[-1])
        L.llama_memory_clear(L.llama_get_memory(context), True)
        if what == "logits":
            print(json.dumps(decode(fixed(n)).tolist()), flush=True)
            continue
        last = decode([3 + i for i in range(16)])
        start = time.process_time(), time.perf_counter()
        for _ in range(n): last = decode([int(last.argmax())])
        print(json.dumps([time.process_time() - start[0], time.perf_counter() - start[1]]), flush=True)


def fixed(n):
    return [37 * i % 997 + 3 for i in range(n)]


def agree(tern, torch, llama):
    """The loss and the logits of the three, of one model."""
    ids = torch.torch.tensor([fixed(64)])
    with torch.torch.no_grad(): out = torch.model("f32", False)(input_ids=ids, labels=ids)
    for kind in "gguf", "f32":
        loss = tern.ask("loss", kind, 64)[0]
        print("loss: tern %s %.6f, transformers %.6f" % (kind, loss, out.loss.item()))
        if abs(loss - out.loss.item()) > 1e-4 * abs(loss): sys.exit("they do not agree: nothing is timed")
    if not llama: return
    a, b = torch.torch.tensor(llama.ask("logits", 64)), out.logits[0, -1]
    likeness = torch.torch.corrcoef(torch.torch.stack([a, b]))[0, 1].item()
    print("logits: llama.cpp's and transformers' correlate by %.5f" % likeness)
    if likeness < 0.99: sys.exit("they do not agree: nothing is timed")


def turns(rows, what, n):
    """rows: a name, who, the kind; medians of processor seconds."""
    times = {r[0]: [] for r in rows}
    for turn in range(ROUNDS + 1):
        for name, who, kind in rows:
            seconds = who.ask(what, kind, n)[0]
            if turn: times[name].append(seconds)
    return {k: statistics.median(v) for k, v in times.items()}


def report(title, times, each, unit, per_second):
    print(title)
    first = next(iter(times.values()))
    for name, x in times.items():
        shown = each / x if per_second else 1e3 * x / each
        print("    %-34s %9.2f %s   tern over blocks: %.2fx as fast" % (name, shown, unit, x / first))
    sys.stdout.flush()


def main():
    program, step, wanted = sys.argv[1], sys.argv[2], sys.argv[3:] or ["decode", "lora"]
    with tempfile.TemporaryDirectory() as folder:
        path, weights = os.path.join(folder, "m.gguf"), os.path.join(folder, "weights")
        subprocess.run([step, "make", path], check=True)
        tern, llama = run.Tern(program, path), Llama(path)
        if not llama.there:
            print("there is no llama_cpp in %s: its rows are left out" % os.environ.get("TERN_LLAMA_PYTHON", sys.executable))
            llama = None
        tern.ask("save", weights, 0)
        run.WEIGHTS = weights
        torch = run.Torch()
        agree(tern, torch, llama)
        rest = [("tern, .dtype = TERN_F32", tern, "f32"), ("transformers, float32", torch, "f32"), ("transformers, bfloat16", torch, "bf16")]
        if "decode" in wanted:
            rows = [("tern, blocks", tern, "gguf")] + ([("llama.cpp", llama, "gguf")] if llama else []) + rest
            report("decode behind 16 tokens, %d of them" % TOKENS, turns(rows, "decode", TOKENS), TOKENS, "tokens/s", True)
        if "lora" in wanted:
            report("LoRA step, 2 rows of %d tokens" % CONTEXT, turns([("tern, blocks", tern, "gguf")] + rest, "lora", CONTEXT), 1, "ms", False)


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1:2] == ["serve"] else main()
