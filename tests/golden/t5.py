#!/usr/bin/env python3
"""golden/t5 and golden/t5_gated: tiny random T5s of both kinds as the Hub has them, and what transformers computes with
them. Needs torch and transformers; its output is kept."""
import os, torch
import transformers as hf
from safetensors.torch import save_file

torch.set_num_threads(1)
here = os.path.dirname(os.path.abspath(__file__))
for name, more, seed in ("t5", {}, 2), ("t5_gated", dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False), 3):
    c = hf.T5Config(vocab_size=48, d_model=16, d_kv=6, d_ff=24, num_layers=2, num_heads=2, dropout_rate=0,
                    relative_attention_num_buckets=8, relative_attention_max_distance=12, decoder_start_token_id=0, **more)
    m = hf.T5ForConditionalGeneration(c)
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for n, p in m.named_parameters():
            gain = 0.5 if "shared" in n or "bias" in n else 0.5 / 4 if n.endswith(".q.weight") else 1.2 / p[0].numel() ** 0.5
            p.copy_(torch.randn(p.shape, generator=g) * (gain if p.dim() > 1 else 0.1) + (0 if p.dim() > 1 else 1))
    out = os.path.join(here, name)
    m.eval().save_pretrained(out)
    os.unlink(os.path.join(out, "generation_config.json"))
    x = torch.randint(2, 48, (2, 18), generator=g)
    mask = torch.ones(2, 18, dtype=torch.int64)
    mask[1, 11:] = 0
    y = torch.randint(2, 48, (2, 9), generator=g)
    y[1, 6:] = -100
    result = m(input_ids=x, attention_mask=mask, labels=y)
    result.loss.backward()
    into = {"input.input_ids": x, "input.attention_mask": mask, "input.labels": y, "logits": result.logits, "loss": result.loss,
            "generated": m.generate(x[:1], do_sample=False, max_new_tokens=12, eos_token_id=None)}
    for n, p in m.named_parameters():
        if "decoder.block.1" in n or "bias" in n or n == "shared.weight": into["grad." + n] = p.grad
    save_file({k: v.detach().contiguous() for k, v in into.items()}, os.path.join(out, "reference.safetensors"))
