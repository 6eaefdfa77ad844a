#!/usr/bin/env python3
"""golden/beams.def and golden/windowed.def: what transformers' generate writes with the reference models (the folder
is the first argument), by beams, and with a sliding window. Needs torch and transformers; its output is kept."""
import copy, os, sys
import torch
import transformers as hf
from safetensors.torch import load_file

torch.set_num_threads(1)
base, here = sys.argv[1], os.path.dirname(os.path.abspath(__file__))
CASES = [dict(num_beams=3), dict(num_beams=4, length_penalty=0.3), dict(num_beams=2, early_stopping=True),
         dict(num_beams=3, repetition_penalty=1.3, min_new_tokens=5)]


def numbers(rows, width, pad=2):
    return ", ".join(str(t) for row in rows for t in row.tolist() + [pad] * (width - len(row)))


with open(os.path.join(here, "beams.def"), "w") as f:
    f.write("/* beams.def -- texts by beam search, written by generate.py. */\n")
    for name in "llama", "qwen3", "gpt2":
        m = hf.AutoModelForCausalLM.from_pretrained(os.path.join(base, name), dtype=torch.float32).eval()
        r = load_file(os.path.join(base, name, "reference.safetensors"))
        x, mask = r["padded.input_ids"], r["padded.attention_mask"]
        for case in CASES:
            y = None
            for ends in False, True:
                eos = y[0, 6].item() if ends else None
                y = m.generate(x, attention_mask=mask, do_sample=False, max_new_tokens=12, eos_token_id=eos,
                               pad_token_id=2, **case)[:, 12:]
                fields = [".%s = %s" % (k, str(v).lower()) for k, v in case.items()]
                if eos is not None: fields.append(".eos_token_id = {true, %d}" % eos)
                f.write('{"%s", {%s}, {%s}},\n' % (name, ", ".join(fields), numbers(y, 12)))

llama = hf.LlamaForCausalLM.from_pretrained(os.path.join(base, "llama"), dtype=torch.float32)
c = llama.config.to_dict()
for k in "model_type", "architectures", "attention_bias", "mlp_bias", "pretraining_tp": c.pop(k, None)
m = hf.MistralForCausalLM(hf.MistralConfig(**c, sliding_window=6)).eval()
m.load_state_dict(llama.state_dict())
r = load_file(os.path.join(base, "llama", "reference.safetensors"))
x, mask = r["padded.input_ids"], r["padded.attention_mask"]
for _ in range(20):      # whole passes, which no cache can get wrong
    with torch.no_grad():
        logits = m(x, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0), use_cache=False).logits[:, -1]
    print((logits.topk(2).values[:, 0] - logits.topk(2).values[:, 1]).tolist())
    x = torch.cat([x, logits.argmax(-1, keepdim=True)], 1)
    mask = torch.cat([mask, mask.new_ones(2, 1)], 1)
with open(os.path.join(here, "windowed.def"), "w") as f:
    f.write("/* windowed.def -- greedy texts with a sliding window of 6, written by generate.py. */\n%s\n" % numbers(x, 32))
