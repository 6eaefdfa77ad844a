#!/usr/bin/env python3
"""write.py -- the GGUF files of this folder, and beside each of them the same numbers in another kind of file.

    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 safetensors==0.8.0
    venv/bin/python tests/golden/gguf/write.py

NAME.gguf is written by the gguf package; NAME/config.json and NAME/model.safetensors are the model as Hugging Face has it, with the
numbers that the package reads out of the file. blocks.safetensors has those of blocks.gguf. tokenizer_NAME.gguf is the tokenizer of
../tokenizers/NAME.json. Numbers are random, of one seed."""
import base64
import json
import os

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import quants
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(3)
F = np.float32


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


# ---- blocks: any bits, with scales that are numbers, among them 0, subnormal, negative and large ones

SCALES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2],
          T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0]}


def blocks():
    w, want = gguf.GGUFWriter(os.path.join(HERE, "blocks.gguf"), "llama"), {}
    w.add_name("blocks of any bits")
    w.add_array("numbers", [1, -2, 3])
    w.add_array("texts", ["a", "b"])
    w.add_bool("flag", True)
    w.add_float32("real", 0.25)
    for kind, scales in SCALES.items():
        size, count = gguf.GGML_QUANT_SIZES[kind]
        b = random.integers(0, 256, (3 * 512 // size, count), dtype=np.uint8)
        for at in scales:
            d = (random.standard_normal(len(b)) * 0.05).astype(np.float16)
            d[:6] = np.array([0, 6e-8, 3e-5, -0.25, 500, -6e-8], np.float16)
            b[:, at:at + 2] = d.reshape(-1, 1).view(np.uint8)
        b = b.reshape(3, 512 // size * count)
        w.add_tensor(kind.name.lower(), b, raw_dtype=kind)
        want[kind.name.lower()] = quants.dequantize(b, kind)
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64):
        x = (random.standard_normal((2, 3, 5)) * 50).astype(dtype)
        w.add_tensor(np.dtype(dtype).name, x)
        want[np.dtype(dtype).name] = x
    finish(w)
    save_file(want, os.path.join(HERE, "blocks.safetensors"))


# ---- models

def interleave(x, heads):
    """Rows of a head as llama's files have them: 0, d / 2, 1, d / 2 + 1, ..."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def halves(x, heads):
    return x.reshape(heads, x.shape[0] // heads // 2, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


class Model:
    """Parameters by Hugging Face's names, in a GGUF by its own."""

    def __init__(self, name, arch, config, kind, ours, **how):
        self.name, self.config, self.kind, self.how = name, config, kind, how
        self.hub = {}
        self.path = os.path.join(HERE, name + ".gguf")
        self.w = gguf.GGUFWriter(self.path, arch, **({"split_max_tensors": how["split"]} if "split" in how else {}))
        which = next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch)
        self.names = gguf.get_tensor_name_map(which, ours)

    def add(self, name, *shape, heads=0, shift=False, transposed=False):
        x = (random.standard_normal(shape) * (0.5 if "emb" in name or "wte" in name else 1.2 / shape[-1] ** 0.5)).astype(F)
        if len(shape) == 1:
            x = (x * 0.2 + (1 if name.endswith("weight") and not shift else 0)).astype(F)
        there = interleave(x, heads) if heads else x.T.copy() if transposed else x + F(1) if shift else x
        g = self.names.get_name(name, (".weight", ".bias"))
        assert g, name
        plain = there.ndim < 2 or "position" in g or "token_types" in g
        kind = T.F32 if plain else self.kind(g)
        data = there if kind == T.F32 else quants.quantize(there, kind)
        self.w.add_tensor(g, data, raw_dtype=kind)
        back = quants.dequantize(np.ascontiguousarray(data), kind)
        back = halves(back, heads) if heads else back.T if transposed else back - F(1) if shift else back
        self.hub[name] = np.ascontiguousarray(back, F)

    def finish(self):
        finish(self.w)
        folder = os.path.join(HERE, self.name)
        os.makedirs(folder, exist_ok=True)
        json.dump(self.config, open(os.path.join(folder, "config.json"), "w"), indent=1)
        save_file(self.hub, os.path.join(folder, "model.safetensors"))


def decoder(name, arch, config, kind, keys=lambda w: None, bias=False, norms=False, post=False, fused=False, tied=False, extra=None, **how):
    c = dict(vocab_size=48, hidden_size=32, intermediate_size=64, num_hidden_layers=how.pop("layers", 1), num_attention_heads=2,
             num_key_value_heads=1, head_dim=16, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=tied,
             **({} if arch.startswith("gemma") else dict(hidden_act="silu"))) | config
    m = Model(name, arch, c, kind, c["num_hidden_layers"], **how)
    gemma, llama = arch.startswith("gemma"), arch == "llama"
    h, n, kv, d, i = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"], c["intermediate_size"]
    w = m.w
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(h)
    w.add_block_count(c["num_hidden_layers"])
    w.add_feed_forward_length(i)
    w.add_head_count(n)
    w.add_head_count_kv(kv)
    w.add_key_length(d)
    w.add_value_length(d)
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    keys(w)
    m.add("model.embed_tokens.weight", c["vocab_size"], h)
    for l in range(c["num_hidden_layers"]):
        p = "model.layers.%d." % l
        m.add(p + "input_layernorm.weight", h, shift=gemma)
        if fused:
            m.add(p + "self_attn.qkv_proj.weight", (n + 2 * kv) * d, h)
        else:
            for q, heads in (("q", n), ("k", kv), ("v", kv)):
                m.add(p + "self_attn.%s_proj.weight" % q, heads * d, h, heads=heads if llama and q != "v" else 0)
                if bias:
                    m.add(p + "self_attn.%s_proj.bias" % q, heads * d, heads=heads if llama and q != "v" else 0)
        for q in ("q", "k") if norms else ():
            m.add(p + "self_attn.%s_norm.weight" % q, d, shift=gemma)
        m.add(p + "self_attn.o_proj.weight", h, n * d)
        if bias and llama:
            m.add(p + "self_attn.o_proj.bias", h)
        for norm in ("post_attention",) + (("pre_feedforward", "post_feedforward") if post else ()):
            m.add(p + norm + "_layernorm.weight", h, shift=gemma)
        if fused:
            m.add(p + "mlp.gate_up_proj.weight", 2 * i, h)
        else:
            m.add(p + "mlp.gate_proj.weight", i, h)
            m.add(p + "mlp.up_proj.weight", i, h)
        m.add(p + "mlp.down_proj.weight", h, i)
    m.add("model.norm.weight", h, shift=gemma)
    if not tied:
        m.add("lm_head.weight", c["vocab_size"], h)
    for g, x in (extra or {}).items():
        w.add_tensor(g, np.array(x, F))
    m.finish()


def rope(theta=10000.0, **more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta} | more}


def config(cls, kind, **more):
    return {"architectures": [cls], "model_type": kind, **more}


def all_as(kind):
    return lambda name: kind


def mixed(name):
    return T.Q5_0 if "attn_v" in name else T.Q5_1 if "ffn_down" in name else T.Q4_1 if "ffn_up" in name else T.Q4_0


LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)


def llama3_factors(theta, d):
    out = []
    for i in range(0, d, 2):
        wave = 2 * np.pi * theta ** (i / d)
        n, factor = LLAMA3["original_max_position_embeddings"], LLAMA3["factor"]
        s = (n / wave - 1) / 3
        out.append(1 if wave < n / 4 else factor if wave > n else 1 / ((1 - s) / factor + s))
    return out


def gemma3_keys(w):
    w.add_rope_freq_base(1e6)
    w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    w.add_rope_scaling_factor(8.0)
    w.add_sliding_window(5)


def models():
    decoder("llama", "llama", config("LlamaForCausalLM", "llama", **rope(500.0, **LLAMA3)), mixed, lambda w: w.add_rope_freq_base(500.0),
            extra={"rope_freqs.weight": llama3_factors(500.0, 16)})
    decoder("llama_bias", "llama", config("LlamaForCausalLM", "llama", attention_bias=True, num_key_value_heads=2, **rope()), all_as(T.BF16),
            bias=True, tied=True, split=4)
    decoder("qwen2", "qwen2", config("Qwen2ForCausalLM", "qwen2", **rope(1e6)), all_as(T.Q8_0), lambda w: w.add_rope_freq_base(1e6), bias=True)
    decoder("qwen3", "qwen3", config("Qwen3ForCausalLM", "qwen3", **rope(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=16)), all_as(T.F16), lambda w: (
            w.add_rope_scaling_type(gguf.RopeScalingType.YARN), w.add_rope_scaling_factor(4.0), w.add_rope_scaling_orig_ctx_len(16)),
            norms=True, tied=True)
    short, long = [1.0 + 0.05 * i for i in range(8)], [1.0 + 0.5 * i for i in range(8)]
    decoder("phi3", "phi3", config("Phi3ForCausalLM", "phi3", sliding_window=40, original_max_position_embeddings=32, **rope(
        rope_type="longrope", short_factor=short, long_factor=long, original_max_position_embeddings=32, attention_factor=1.19)),
        all_as(T.F16), lambda w: (w.add_sliding_window(40), w.add_rope_scaling_orig_ctx_len(32), w.add_rope_scaling_attn_factors(1.19)),
        fused=True, extra={"rope_factors_long.weight": long, "rope_factors_short.weight": short})
    act = dict(hidden_activation="gelu_pytorch_tanh")
    decoder("gemma", "gemma", config("GemmaForCausalLM", "gemma", **act, **rope()), all_as(T.F16), tied=True)
    decoder("gemma2", "gemma2", config("Gemma2ForCausalLM", "gemma2", query_pre_attn_scalar=16, attn_logit_softcapping=2.0,
                                       final_logit_softcapping=1.5, sliding_window=5, **act, **rope()), all_as(T.F16),
            lambda w: (w.add_sliding_window(5), w.add_attn_logit_softcapping(2.0), w.add_final_logit_softcapping(1.5)),
            post=True, tied=True, layers=2)
    theta = {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                                 "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}
    decoder("gemma3", "gemma3", config("Gemma3ForCausalLM", "gemma3_text", query_pre_attn_scalar=16, sliding_window=5,
                                       intermediate_size=32, **act, **theta), all_as(T.F16), gemma3_keys,
            norms=True, post=True, tied=True, layers=6)
    gpt2()
    bert()


def gpt2():
    c = config("GPT2LMHeadModel", "gpt2", vocab_size=48, n_embd=32, n_layer=1, n_head=2, n_inner=64, n_positions=40,
               layer_norm_epsilon=1e-5, activation_function="gelu_new", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    m = Model("gpt2", "gpt2", c, all_as(T.Q4_0), 1)
    m.w.add_context_length(40)
    m.w.add_embedding_length(32)
    m.w.add_block_count(1)
    m.w.add_feed_forward_length(64)
    m.w.add_head_count(2)
    m.w.add_layer_norm_eps(1e-5)
    m.add("transformer.wte.weight", 48, 32)
    m.add("transformer.wpe.weight", 40, 32)
    for part in ("h.0.ln_1", "h.0.ln_2", "ln_f"):
        m.add("transformer.%s.weight" % part, 32)
        m.add("transformer.%s.bias" % part, 32)
    for part, n, k in (("attn.c_attn", 32, 96), ("attn.c_proj", 32, 32), ("mlp.c_fc", 32, 64), ("mlp.c_proj", 64, 32)):
        m.add("transformer.h.0.%s.weight" % part, n, k, transposed=True)
        m.add("transformer.h.0.%s.bias" % part, k)
    m.finish()


def bert():
    c = config("BertModel", "bert", vocab_size=48, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
               max_position_embeddings=40, type_vocab_size=2, layer_norm_eps=1e-5, hidden_act="gelu", hidden_dropout_prob=0.0,
               attention_probs_dropout_prob=0.0)
    m = Model("bert", "bert", c, all_as(T.Q8_0), 1)
    m.w.add_context_length(40)
    m.w.add_embedding_length(32)
    m.w.add_block_count(1)
    m.w.add_feed_forward_length(64)
    m.w.add_head_count(2)
    m.w.add_layer_norm_eps(1e-5)
    m.w.add_causal_attention(False)
    for part, n in (("word", 48), ("position", 40), ("token_type", 2)):
        m.add("embeddings.%s_embeddings.weight" % part, n, 32)
    p = "encoder.layer.0."
    for part, n, k in (("attention.self.query", 32, 32), ("attention.self.key", 32, 32), ("attention.self.value", 32, 32),
                       ("attention.output.dense", 32, 32), ("intermediate.dense", 64, 32), ("output.dense", 32, 64)):
        m.add(p + part + ".weight", n, k)
        m.add(p + part + ".bias", n)
    for part in ("embeddings.LayerNorm", p + "attention.output.LayerNorm", p + "output.LayerNorm"):
        m.add(part + ".weight", 32)
        m.add(part + ".bias", 32)
    m.finish()


# ---- tokenizers

def tokenizer(name, model, pre=None):
    spec = json.load(open(os.path.join(HERE, "..", "tokenizers", name + ".json")))
    vocab = spec["model"]["vocab"]
    added = {a["content"]: a["id"] for a in spec["added_tokens"]}
    words = [k for k, _ in vocab] if isinstance(vocab, list) else [k for k, _ in sorted(vocab.items(), key=lambda p: p[1])]
    kinds = [gguf.TokenType.CONTROL if k in added else gguf.TokenType.BYTE if k.startswith("<0x") and len(k) == 6 else gguf.TokenType.NORMAL
             for k in words]
    w = gguf.GGUFWriter(os.path.join(HERE, "tokenizer_%s.gguf" % name), "llama")
    w.add_tokenizer_model(model)
    if pre:
        w.add_tokenizer_pre(pre)
    merges = [m if isinstance(m, str) else " ".join(m) for m in spec["model"].get("merges", [])]
    if model == "gpt2":
        w.add_token_merges(merges)
        w.add_bos_token_id(added["<|endoftext|>"])
        w.add_eos_token_id(added["<|endoftext|>"])
    elif model == "llama":                       # the score of a piece is its place among the merges
        score = {m.replace(" ", ""): -float(i) for i, m in reversed(list(enumerate(merges)))}
        w.add_token_scores([score.get(k, -1e6 - i) for i, k in enumerate(words)])
        w.add_unk_token_id(0)
    elif model == "t5":
        w.add_token_scores([s for _, s in vocab])
        charsmap = next(n["precompiled_charsmap"] for n in spec["normalizer"]["normalizers"] if n["type"] == "Precompiled")
        w.add_precompiled_charsmap(base64.b64decode(charsmap))
        w.add_remove_extra_whitespaces(True)
        w.add_unk_token_id(added["<unk>"])
        w.add_eos_token_id(added["</s>"])
        w.add_pad_token_id(added["<pad>"])
    else:
        words = [k if k in added else k[2:] if k.startswith("##") else "\u2581" + k for k in words]
        w.add_bos_token_id(added["[CLS]"])
        w.add_sep_token_id(added["[SEP]"])
        w.add_unk_token_id(added["[UNK]"])
        w.add_pad_token_id(added["[PAD]"])
    w.add_token_list(words)
    w.add_token_types(kinds)
    w.add_chat_template("{{ messages }}")
    finish(w)


def main():
    blocks()
    models()
    for name, model, pre in (("gpt2", "gpt2", "gpt-2"), ("llama3", "gpt2", "llama-bpe"), ("llama2", "llama", None), ("t5", "t5", None),
                             ("bert", "bert", None)):
        tokenizer(name, model, pre)


if __name__ == "__main__":
    main()
