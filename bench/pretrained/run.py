#!/usr/bin/env python3
"""run.py TURNS [WHAT...] -- libtern_models (the program TURNS, bench_pretrained) beside transformers and PEFT on one thread
of one machine: they take turns, five each after one that is not counted, and what is compared is processor time, which others on
the machine change less than the clock. WHAT: decode tiny prefill lora full memory load tokenizer; all.

A Llama of 135 million parameters (SmolLM's shape), GPT-2 (124 million) and ResNet-18 with random weights. Needs torch, transformers, peft and timm."""
import json, os, re, statistics, subprocess, sys, tempfile, time
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")
CONFIG = dict(architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=49152, hidden_size=576, intermediate_size=1536,
              num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=2048,
              rms_norm_eps=1e-5, rope_theta=10000.0, hidden_act="silu", tie_word_embeddings=True, torch_dtype="bfloat16",
              bos_token_id=0, eos_token_id=0, attention_bias=False, mlp_bias=False)
GPT2 = dict(architectures=["GPT2LMHeadModel"], model_type="gpt2", vocab_size=50257, n_embd=768, n_layer=12, n_head=12, n_positions=1024,
            activation_function="gelu_new", layer_norm_epsilon=1e-5, attn_pdrop=0.1, embd_pdrop=0.1, resid_pdrop=0.1, bos_token_id=50256,
            eos_token_id=50256, tie_word_embeddings=True)
TINY = dict(CONFIG, vocab_size=1024, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2)
RESNET = dict(architecture="resnet18", num_classes=1000)
ROUNDS, TOKENS = 5, 16
WEIGHTS = None     # a directory, for what is measured of loaded models


class Tern:
    def __init__(self, program, folder):
        self.p = subprocess.Popen([program, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.p.stdin.write(" ".join(map(str, words)) + "\n"); self.p.stdin.flush()
        return [float(x) for x in self.p.stdout.readline().split()]

    def close(self):
        self.p.stdin.close(); self.p.wait()


class Torch:
    """The same in PyTorch, by the same words."""
    def __init__(self, config=CONFIG):
        import torch, transformers as hf
        torch.set_num_threads(1)
        self.config = config
        self.torch, self.hf, self.models, self.optimizers = torch, hf, {}, {}

    def model(self, kind, lora):
        key = kind, lora
        if key not in self.models:
            dtype = self.torch.bfloat16 if kind == "bf16" else self.torch.float32
            m = (self.hf.LlamaForCausalLM.from_pretrained(WEIGHTS, dtype=dtype) if WEIGHTS else
                 self.hf.LlamaForCausalLM(self.hf.LlamaConfig(**{k: v for k, v in self.config.items() if k != "torch_dtype"})).to(dtype))
            if lora:
                import peft
                m = peft.get_peft_model(m, peft.LoraConfig(r=8, lora_alpha=16, task_type="CAUSAL_LM"))
                if kind == "c": m.base_model.model.gradient_checkpointing_enable(dict(use_reentrant=False))
            self.models[key] = m.train(lora)
        return self.models[key]

    def full(self, kind, n):
        """A step of AdamW on all parameters."""
        torch = self.torch
        if kind not in self.models:
            if kind == "tokens":
                m = self.hf.GPT2LMHeadModel(self.hf.GPT2Config(**{k: v for k, v in GPT2.items() if k != "architectures"}))
            else:
                import timm
                m = timm.create_model("resnet18", pretrained=False, num_classes=1000)
            self.models[kind] = m.train()
            self.optimizers[kind] = torch.optim.AdamW(m.parameters(), lr=1e-4)
        m, o = self.models[kind], self.optimizers[kind]
        start = time.process_time(), time.perf_counter()
        x, y = (self.ids(2, n), None) if kind == "tokens" else (torch.randn(n, 3, 224, 224), torch.randint(0, 1000, (n,)))
        o.zero_grad()
        loss = m(input_ids=x, labels=x).loss if kind == "tokens" else torch.nn.functional.cross_entropy(m(x), y)
        loss.backward()
        o.step()
        loss.item()
        return time.process_time() - start[0], time.perf_counter() - start[1]

    def ids(self, rows, n):
        return self.torch.randint(3, 1000, (rows, n))

    def ask(self, what, kind, n):
        torch = self.torch
        if what == "full": return self.full(kind, n)
        m = self.model(kind, what == "lora")
        if what == "decode":
            with torch.no_grad():
                out = m(self.ids(1, 16), use_cache=True, logits_to_keep=1)
                start = time.process_time(), time.perf_counter()
                for _ in range(n):
                    out = m(out.logits[:, -1:].argmax(-1), past_key_values=out.past_key_values, use_cache=True, logits_to_keep=1)
                return time.process_time() - start[0], time.perf_counter() - start[1]
        start = time.process_time(), time.perf_counter()
        if what == "prefill":
            with torch.no_grad(): m(self.ids(1, n), logits_to_keep=1).logits.argmax(-1).sum().item()
        else:
            o = self.optimizers.setdefault(kind, torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], lr=1e-4))
            x = self.ids(2, n)
            o.zero_grad()
            loss = m(input_ids=x, labels=x).loss
            loss.backward()
            o.step()
            loss.item()
        return time.process_time() - start[0], time.perf_counter() - start[1]


def turns(tern, torch, what, rows, n, scale=1):
    """rows: a name, who, the kind; the middle of ROUNDS turns each."""
    times = {r[0]: [] for r in rows}
    for turn in range(ROUNDS + 1):
        for name, who, kind in rows:
            x = (tern if who == "tern" else torch).ask(what, kind, n)
            if turn: times[name].append(x[0] * scale)
    return {k: statistics.median(v) for k, v in times.items()}


def report(title, unit, times, base):
    print(title)
    for name, x in times.items():
        print("    %-20s %9.2f %s   %.2fx" % (name, x, unit, times[base] / x))
    sys.stdout.flush()


def most_memory():
    """MiB of this process at most; ru_maxrss would be its parent's too."""
    return int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read()).group(1)) / 1024


def peak(program, folder, small, kind, n):
    """The most memory of a fresh process after two LoRA steps, and before there was a model."""
    t = Tern(program, folder)
    before = t.ask("tokenizer", small, 0)[2]
    t.ask("lora", kind, n)
    most = t.ask("lora", kind, n)[2]
    t.close()
    code = ("import sys; sys.path.insert(0, %r); import run, peft; run.WEIGHTS = %r; t = run.Torch();"
            "a = run.most_memory(); t.ask('lora', %r, %d); t.ask('lora', %r, %d); print(a, run.most_memory())"
            % (os.path.dirname(os.path.abspath(__file__)), folder, kind, n, kind, n))
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return before, most, float(out[0]), float(out[1])


def tokenizer_file(path, size):
    """A byte-level BPE of `size` tokens, made of merges alone."""
    import itertools
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + ["\u0120"]
    vocab, merges, whole = list(letters), [], list(letters)
    for left, right in itertools.product(range(size), letters):
        if len(vocab) >= size: break
        word = vocab[left] + right
        merges.append("%s %s" % (vocab[left], right))
        vocab.append(word)
    spec = dict(version="1.0", truncation=None, padding=None, added_tokens=[], normalizer=None,
                pre_tokenizer=dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True), post_processor=None,
                decoder=dict(type="ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True),
                model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None,
                           fuse_unk=False, byte_fallback=False, ignore_merges=False, vocab={w: i for i, w in enumerate(vocab)}, merges=merges))
    json.dump(spec, open(path, "w"), ensure_ascii=False, indent=1)
    return os.path.getsize(path)


def main():
    program, wanted = sys.argv[1], sys.argv[2:] or ["decode", "tiny", "prefill", "lora", "full", "memory", "load", "tokenizer"]
    with tempfile.TemporaryDirectory() as folder:
        json.dump(CONFIG, open(os.path.join(folder, "config.json"), "w"))
        tokenizer_file(os.path.join(folder, "small.json"), 100)
        tern, torch = Tern(program, folder), Torch()
        both = [("tern f32", "tern", "f32"), ("torch f32", "torch", "f32"), ("tern bf16", "tern", "bf16"), ("torch bf16", "torch", "bf16")]
        if "decode" in wanted:
            rows = both + [("tern int8", "tern", "int8"), ("tern int4", "tern", "int4"), ("tern int8, head int8", "tern", "int8h"),
                           ("tern int4, head int8", "tern", "int4h")]
            report("decode, ms a token (x: of tern bf16)", "ms", turns(tern, torch, "decode", rows, TOKENS, 1000 / TOKENS), "tern bf16")
        if "tiny" in wanted:
            where = os.path.join(folder, "tiny")
            os.mkdir(where)
            json.dump(TINY, open(os.path.join(where, "config.json"), "w"))
            other = Tern(program, where)
            report("decode of a tiny Llama, ms a token (x: of torch f32)", "ms",
                   turns(other, Torch(TINY), "decode", both[:2], 64, 1000 / 64), "torch f32")
            other.close()
        if "prefill" in wanted:
            report("prefill of 128, ms (x: of torch f32)", "ms", turns(tern, torch, "prefill", both + [("tern int4", "tern", "int4")], 128, 1000), "torch f32")
        if "lora" in wanted:
            rows = both + [("tern checkpoints", "tern", "c"), ("torch checkpoints", "torch", "c")]
            report("LoRA step, 2 rows of 128, ms (x: of torch f32)", "ms", turns(tern, torch, "lora", rows, 128, 1000), "torch f32")
        plain, four = (tern.ask("bytes", k, 0)[0] for k in ("bf16", "nf4")) if "memory" in wanted else (0, 0)
        tern.close()
        for title, config, kind, n in (("GPT-2, 2 rows of 128", GPT2, "tokens", 128), ("ResNet-18, 8 images", RESNET, "images", 8)):
            if "full" not in wanted: continue
            where = os.path.join(folder, kind)
            os.mkdir(where)
            json.dump(config, open(os.path.join(where, "config.json"), "w"))
            other = Tern(program, where)
            report("full step, %s, ms (x: of torch)" % title, "ms",
                   turns(other, torch, "full", [("tern", "tern", kind), ("torch", "torch", kind)], n, 1000), "torch")
            other.close()
        if "memory" in wanted:
            print("NF4: %.3f of the layers' bytes in bfloat16" % (four / plain))
            where = os.path.join(folder, "weights")
            torch.model("bf16", False).save_pretrained(where)
            for kind in "f32", "bf16":
                before, most, empty, all_ = peak(program, where, os.path.join(folder, "small.json"), kind, 128)
                print("LoRA step %s, memory at most: tern %.0f MiB (%.0f at first), PEFT %.0f MiB (%.0f): %.2f, without what was there %.2f"
                      % (kind, most, before, all_, empty, most / all_, (most - before) / (all_ - empty)))
        if "load" in wanted:
            where = os.path.join(folder, "weights")
            torch.model("bf16", False).save_pretrained(where)
            size = os.path.getsize(os.path.join(where, "model.safetensors")) / 2**20
            times = []
            for _ in range(ROUNDS):
                t = Tern(program, folder)
                before = t.ask("tokenizer", os.path.join(folder, "small.json"), 0)[2]
                cpu, wall, most = t.ask("load", where, 0)
                times.append((wall, cpu, (most - before) / size))
                t.close()
            wall, cpu, memory = (statistics.median(x) for x in zip(*times))
            print("load of %.0f MiB: %.3f s (%.3f s of the processor), memory %.2f of the weights" % (size, wall, cpu, memory))
        if "tokenizer" in wanted:
            import tokenizers
            path = os.path.join(folder, "large.json")
            size = tokenizer_file(path, 150000) / 1e6
            own, other = [], []
            for _ in range(ROUNDS):
                t = Tern(program, folder)
                own.append(t.ask("tokenizer", path, 0)[0])
                t.close()
                start = time.process_time(); tokenizers.Tokenizer.from_file(path); other.append(time.process_time() - start)
            print("tokenizer.json of %.1f MB: tern %.3f s, tokenizers %.3f s" % (size, statistics.median(own), statistics.median(other)))


if __name__ == "__main__":
    main()
