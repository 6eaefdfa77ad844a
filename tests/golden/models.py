#!/usr/bin/env python3
"""golden/models: tiny random models of more architectures as the Hub has them, and what transformers or timm computes with
them, by the names of ../../../shared/models/README.md.

    models.py [NAME...]

Weights are bfloat16 in files and computed with in float32. Needs torch, transformers (5.23), timm (1.0.31) and torchaudio; its output
is kept, tests read the files and need none of them."""
import copy, functools, itertools, json, math, os, sys
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
STEPS, LR, NEW_TOKENS = 5, 1e-3, 16
torch.set_num_threads(1)


def fill(model, seed):
    """Weights of unit gain, biases and norms that matter: a wrong one shows in the logits."""
    g = torch.Generator().manual_seed(seed)
    noise = lambda t: torch.randn(t.shape, generator=g)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name == "logit_scale":
                pass
            elif p.dim() > 1:
                p.copy_(noise(p) * (0.5 if "emb" in name or "token" in name else 1.3 / math.sqrt(p[0].numel())))
            else:
                gemma = "Gemma" in type(model).__name__ and "norm" in name
                p.copy_(noise(p) * 0.1 + (1.0 if name.endswith("weight") and not gemma else 0.0))
            p.copy_(p.to(torch.bfloat16).float())
        for name, b in model.named_buffers():
            if name.endswith("running_mean"): b.copy_((noise(b) * 0.2).to(torch.bfloat16).float())
            if name.endswith("running_var"): b.copy_((1 + 0.3 * torch.rand(b.shape, generator=g)).to(torch.bfloat16).float())
    return model


def ids(vocabulary, *shape, seed=1):
    return torch.randint(3, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def normal(*shape, seed=2):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# ---- architectures: the model, its batch ---------------------------------------------------------

def classes(model, config, vocabulary=60, pad=0, types=False):
    mask = torch.ones(3, 14, dtype=torch.int64); mask[1, 9:] = 0; mask[2, 5:] = 0
    x = torch.where(mask == 1, ids(vocabulary, 3, 14), torch.full((3, 14), pad))
    return model(config), dict(input_ids=x, attention_mask=mask, labels=torch.tensor([2, 0, 1]))


def roberta():
    return classes(hf.RobertaForSequenceClassification, hf.RobertaConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, pad_token_id=1,
        max_position_embeddings=24, type_vocab_size=1, hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=3), pad=1)


def distilbert():
    return classes(hf.DistilBertForSequenceClassification, hf.DistilBertConfig(
        vocab_size=60, dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=24, dropout=0,
        attention_dropout=0, seq_classif_dropout=0, num_labels=3))


def modernbert(pooling="cls"):
    return classes(hf.ModernBertForSequenceClassification, hf.ModernBertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=24, local_attention=6,
        max_position_embeddings=32, num_labels=3, classifier_pooling=pooling, pad_token_id=0, bos_token_id=1, cls_token_id=1,
        eos_token_id=2, sep_token_id=2))


def deit():
    c = hf.DeiTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=16,
                      patch_size=8, hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=4)
    return hf.DeiTForImageClassification(c), dict(pixel_values=normal(3, 3, 16, 16), labels=torch.tensor([3, 0, 2]))


CAUSAL = dict(vocab_size=60, hidden_size=16, intermediate_size=24, num_attention_heads=2, num_key_value_heads=1,
              max_position_embeddings=64, bos_token_id=0, eos_token_id=1, pad_token_id=0)
GEMMA = dict(CAUSAL, head_dim=12)


def causal(model, config, n=20):
    x = ids(60, 2, n)
    return model(config), dict(input_ids=x, labels=x.clone())


def gemma():
    return causal(hf.GemmaForCausalLM, hf.GemmaConfig(num_hidden_layers=2, **GEMMA))


def gemma2():
    return causal(hf.Gemma2ForCausalLM, hf.Gemma2Config(
        num_hidden_layers=2, sliding_window=5, query_pre_attn_scalar=10, attn_logit_softcapping=1.5,
        final_logit_softcapping=2.0, attn_implementation="eager", **GEMMA))


def gemma3():
    return causal(hf.Gemma3ForCausalLM, hf.Gemma3TextConfig(
        num_hidden_layers=3, sliding_window=5, query_pre_attn_scalar=10, rope_theta=10000.0, rope_local_base_freq=100.0,
        rope_scaling=dict(rope_type="linear", factor=4.0), sliding_window_pattern=3, **GEMMA))


def phi3():
    return causal(hf.Phi3ForCausalLM, hf.Phi3Config(num_hidden_layers=2, sliding_window=7, partial_rotary_factor=0.5, **dict(CAUSAL, hidden_size=24)))


def clip():
    text = dict(vocab_size=60, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                max_position_embeddings=12, eos_token_id=59, bos_token_id=1, pad_token_id=0)
    image = dict(hidden_size=24, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=16, patch_size=8)
    x = ids(58, 3, 10); x[0, 9] = x[1, 6] = x[2, 4] = 59; x[1, 7:] = x[2, 5:] = 0
    mask = torch.ones(3, 10, dtype=torch.int64); mask[1, 7:] = 0; mask[2, 5:] = 0
    return (hf.CLIPModel(hf.CLIPConfig(text_config=text, vision_config=image, projection_dim=12)),
            dict(input_ids=x, attention_mask=mask, pixel_values=normal(3, 3, 16, 16), labels=torch.arange(3)))


def timm_model(make, name, **config):
    config = dict(architecture=name, num_classes=5, pretrained_cfg=dict(
        input_size=[3, 32, 32], interpolation="bicubic", crop_pct=1.0, mean=[0.5] * 3, std=[0.5] * 3), **config)
    return make, dict(pixel_values=normal(4, 3, 33, 32), labels=torch.arange(4)), config


def by_timm(name, arch, features, **kw):
    from timm.models import efficientnet, mobilenetv3
    from timm.models._efficientnet_builder import decode_arch_def, round_channels
    kind = mobilenetv3.MobileNetV3 if "v3" in name else efficientnet.EfficientNet
    m = kind(block_args=decode_arch_def(arch, 0.1), num_features=features, num_classes=5,
             round_chs_fn=functools.partial(round_channels, multiplier=0.1), **kw)
    return timm_model(m, name, num_features=features, channel_multiplier=0.1, depth_multiplier=0.1)


def mobilenetv2():
    return by_timm("mobilenetv2_100", [["ds_r1_k3_s1_c16"], ["ir_r2_k3_s2_e6_c24"], ["ir_r3_k3_s2_e6_c32"],
                   ["ir_r4_k3_s2_e6_c64"], ["ir_r3_k3_s1_e6_c96"], ["ir_r3_k3_s2_e6_c160"], ["ir_r1_k3_s1_e6_c320"]], 24,
                   stem_size=32, act_layer=torch.nn.ReLU6)


def mobilenetv3():
    from timm.models._efficientnet_blocks import SqueezeExcite
    from timm.models._efficientnet_builder import round_channels
    return by_timm("mobilenetv3_small_100", [["ds_r1_k3_s2_e1_c16_se0.25_nre"], ["ir_r1_k3_s2_e4.5_c24_nre",
                   "ir_r1_k3_s1_e3.67_c24_nre"], ["ir_r1_k5_s2_e4_c40_se0.25", "ir_r2_k5_s1_e6_c40_se0.25"],
                   ["ir_r2_k5_s1_e3_c48_se0.25"], ["ir_r3_k5_s2_e6_c96_se0.25"], ["cn_r1_k1_s1_c576"]], 24, stem_size=16,
                   act_layer=torch.nn.Hardswish, se_layer=functools.partial(SqueezeExcite, gate_layer="hard_sigmoid",
                   force_act_layer=torch.nn.ReLU, rd_round_fn=round_channels), fix_stem=True)


def efficientnet():
    return by_timm("efficientnet_b0", [["ds_r1_k3_s1_e1_c16_se0.25"], ["ir_r2_k3_s2_e6_c24_se0.25"],
                   ["ir_r2_k5_s2_e6_c40_se0.25"], ["ir_r3_k3_s2_e6_c80_se0.25"], ["ir_r3_k5_s1_e6_c112_se0.25"],
                   ["ir_r4_k5_s2_e6_c192_se0.25"], ["ir_r1_k3_s1_e6_c320_se0.25"]], 24, stem_size=32, act_layer=torch.nn.SiLU)


CASES = dict(roberta=roberta, distilbert=distilbert, modernbert=modernbert, deit=deit, gemma=gemma, gemma2=gemma2,
             gemma3=gemma3, phi3=phi3, clip=clip, mobilenetv2=mobilenetv2, mobilenetv3=mobilenetv3, efficientnet=efficientnet)
SEEDS = dict(gemma=6, gemma2=4, phi3=5)      # greedy texts that no rounding changes
# What transformers 4 calls what is in config.json of transformers 5.
OLD = dict(gemma3=dict(rope_theta=10000.0, rope_local_base_freq=100.0, rope_scaling=dict(rope_type="linear", factor=4.0),
                       sliding_window_pattern=3, cache_implementation="hybrid"),
           modernbert=dict(global_rope_theta=160000.0, local_rope_theta=10000.0, global_attn_every_n_layers=3))


# ---- results -------------------------------------------------------------------------------------

def forward(model, batch):
    if isinstance(model, hf.CLIPModel):
        out = model(**{k: v for k, v in batch.items() if k != "labels"}, return_loss=True)
        return out.logits_per_image, out.loss
    if isinstance(model, hf.PreTrainedModel):
        out = model(**batch)
        return out.logits, out.loss
    logits = model(batch["pixel_values"])
    return logits, torch.nn.functional.cross_entropy(logits, batch["labels"])


def file_names(out, model):
    """What the files call each parameter: transformers 5 has other names inside for some models."""
    there, names = load_file(os.path.join(out, "model.safetensors")), {}
    for name, p in model.named_parameters():
        same = [k for k, v in there.items() if v.shape == p.shape and torch.equal(v.float(), p)]
        assert len(same) == 1, (name, same)
        names[name] = same[0]
    return names


# Where a derivative jumps. On which side of such a place a number falls must not depend on the order of sums: a gradient, and then all of
# AdamW's steps, would.
KINKS = {torch.nn.ReLU: (0,), torch.nn.ReLU6: (0, 6), torch.nn.Hardswish: (-3, 3), torch.nn.Hardsigmoid: (-3, 3)}


def before_kinks(model, batch, dtype):
    """What goes into activations with kinks in all passes of train() that have gradients: of each call the kinks and the numbers."""
    model, seen = copy.deepcopy(model).to(dtype), []

    def look(m, x):
        if torch.is_grad_enabled(): seen.append((KINKS[type(m)], x[0].detach().double().clone()))

    bent = [m for m in model.modules() if type(m) in KINKS]
    for m in bent: m.register_forward_pre_hook(look)
    if bent: train(model, {k: v.to(dtype) if v.is_floating_point() else v for k, v in batch.items()}, {},
                   {name: name for name, _ in model.named_parameters()})
    return seen


def is_clear(model, batch):
    """Whether no number comes nearer to a kink, in float64, than 1e-6 and than twice what float32 is off in that call."""
    pairs = zip(before_kinks(model, batch, torch.float64), before_kinks(model, batch, torch.float32))
    return all((exact - k).abs().min() > max(1e-6, 2 * (single - exact).abs().max())
               for (kinks, exact), (_, single) in pairs for k in kinks)


def filled(name, made):
    """With the first seed from SEEDS's on for which it is clear."""
    for seed in itertools.count(SEEDS.get(name, 1)):
        model = fill(made[0], seed).eval()
        if is_clear(model, made[1]): return model


def train(model, batch, into, names):
    with torch.no_grad(): into["logits"] = forward(model.eval(), batch)[0]
    logits, loss = forward(model.train(), batch)
    if (logits - into["logits"]).abs().max() > 1e-4: into["train.logits"] = logits
    loss.backward()
    into["loss"] = loss
    few = 3 if sum(p.numel() for p in model.parameters()) > 12000 else 1      # not all, for the files' size
    for name, p in list(model.named_parameters())[::few]:
        if p.grad is not None: into["grad." + names[name]] = p.grad.clone()
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=LR), []
    for _ in range(STEPS + 1):
        optimizer.zero_grad()
        loss = forward(model, batch)[1]
        losses.append(loss.item())
        if len(losses) <= STEPS: loss.backward(); optimizer.step()
    into["losses"] = torch.tensor(losses, dtype=torch.float64)
    # Biases that the mean of the next batch norm takes away have gradients of rounding alone, which AdamW makes steps of.
    for name, b in model.named_buffers():
        if "running_var" in name or name == "bn1.running_mean": into["after." + name] = b.clone()


def texts(model, x, into):
    """Greedy texts, left padding, sequences packed into one row."""
    with torch.no_grad():
        out, lead = x[:1, :6], 1e9
        for _ in range(NEW_TOKENS):
            logits = model(out, use_cache=False).logits[:, -1]
            two = logits.topk(2).values[0]
            lead = min(lead, (two[0] - two[1]).item())
            out = torch.cat([out, logits.argmax(-1, keepdim=True)], 1)
        into["generate.prompt"], into["generated"] = x[:1, :6], out
        mask = torch.ones(2, 12, dtype=torch.int64); mask[1, :5] = 0
        padded, place = x[:, :12] * mask, (mask.cumsum(-1) - 1).clamp(min=0)
        into["padded.input_ids"], into["padded.attention_mask"], into["padded.position_ids"] = padded, mask, place
        into["padded.logits"] = model(padded, attention_mask=mask, position_ids=place).logits * mask[..., None]
        pieces = [x[0, :9], x[1, :5], x[0, 9:16]]
        into["packed.input_ids"] = torch.cat(pieces)[None]
        into["packed.cu_seqlens"] = torch.tensor([0, 9, 14, 21], dtype=torch.int32)
        into["packed.logits"] = torch.cat([model(p[None]).logits for p in pieces], 1)
    return lead


def image_reference(name, made, out, into):
    """A picture as a file has it, and what the model is to see of it."""
    from torchvision.transforms.v2 import functional as F
    h, w = torch.meshgrid(torch.arange(41), torch.arange(57), indexing="ij")
    image = torch.stack([(h * 6) % 256, (w * 9 + h) % 256, (h * w) % 256]).to(torch.uint8)
    into["processor.image"] = image.permute(1, 2, 0)          # (height, width, 3)
    if name == "clip":
        p = hf.CLIPImageProcessor(size=dict(shortest_edge=20), crop_size=dict(height=16, width=16))
        p.save_pretrained(out)
        into["processor.pixel_values"] = p(images=image, return_tensors="pt")["pixel_values"]
    else:
        c = made[2]["pretrained_cfg"]
        small = F.center_crop(F.resize(image, [32], F.InterpolationMode.BICUBIC, antialias=True), [32, 32])
        into["processor.pixel_values"] = F.normalize(small.float() / 255, c["mean"], c["std"])[None]


def save(path, tensors):
    save_file({k: v.detach().contiguous().clone() for k, v in tensors.items()}, path, metadata={"format": "pt"})


def write(name):
    out, config = os.path.join(HERE, name), None
    os.makedirs(out, exist_ok=True)
    for old in os.listdir(out): os.unlink(os.path.join(out, old))
    made = CASES[name]()
    model, batch, note = filled(name, made), made[1], ""
    half = lambda m: {k: v.to(torch.bfloat16) if v.is_floating_point() else v for k, v in m.state_dict().items()}
    if isinstance(model, hf.PreTrainedModel):
        copy.deepcopy(model).to(torch.bfloat16).save_pretrained(out)
        if os.path.exists(os.path.join(out, "generation_config.json")): os.unlink(os.path.join(out, "generation_config.json"))
    else:
        save(os.path.join(out, "model.safetensors"), half(model))
        json.dump(made[2], open(os.path.join(out, "config.json"), "w"), indent=2)
    if name in OLD:
        config = json.load(open(os.path.join(out, "config.json")))
        for k in "rope_parameters", "layer_types", "dtype": config.pop(k, None)
        json.dump(dict(config, torch_dtype="bfloat16", **OLD[name]), open(os.path.join(out, "config.v4.json"), "w"), indent=2)
    into = {"input." + k: v for k, v in batch.items()}
    if name in ("clip", "efficientnet"): image_reference(name, made, out, into)
    if name == "clip":
        with torch.no_grad():
            y = model(**{k: v for k, v in batch.items() if k != "labels"})
            into.update(text_embeds=y.text_embeds, image_embeds=y.image_embeds)
    kept = {k: v.clone() for k, v in model.state_dict().items()}
    if "ForCausalLM" in type(model).__name__: note = "greedy lead %.3f" % texts(model, batch["input_ids"], into)
    train(model, batch, into, file_names(out, model))
    if name == "modernbert":
        model.load_state_dict(kept)
        model.config.classifier_pooling = "mean"
        with torch.no_grad(): into["mean.logits"] = model.eval()(**batch).logits
    save(os.path.join(out, "reference.safetensors"), into)
    print("%-14s %d parameters, loss %.4f -> %.4f  %s" % (name, sum(p.numel() for p in model.parameters()),
          into["losses"][0], into["losses"][-1], note))


# ---- rotary positions ----------------------------------------------------------------------------

ROPES = dict(
    linear=dict(rope_type="linear", factor=4.0),
    dynamic=dict(rope_type="dynamic", factor=2.0),
    yarn=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=8, beta_fast=4.0, beta_slow=0.5),
    yarn_mscale=dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=8, mscale=1.0, mscale_all_dim=0.6,
                     beta_fast=2.0, beta_slow=0.2),
    longrope=dict(rope_type="longrope", original_max_position_embeddings=12, factor=2.0, long_factor=[2.0, 3.0, 5.0, 6.0],
                  short_factor=[1.0, 1.5, 2.0, 2.5]))


def write_ropes():
    """One Llama with every scaling: config.NAME.json, and logits of a short row and of a long one."""
    out = os.path.join(HERE, "rope")
    os.makedirs(out, exist_ok=True)
    for old in os.listdir(out): os.unlink(os.path.join(out, old))
    base = dict(CAUSAL, num_hidden_layers=1, max_position_embeddings=16, rope_theta=100.0, torch_dtype="bfloat16",
                architectures=["LlamaForCausalLM"], model_type="llama", tie_word_embeddings=False, hidden_act="silu",
                attention_bias=False, mlp_bias=False, rms_norm_eps=1e-5)
    x, into, weights = ids(60, 1, 40), {}, None
    into["input.input_ids"] = x
    for name, rope in ROPES.items():
        config = dict(base, rope_scaling=rope)
        json.dump(config, open(os.path.join(out, "config.%s.json" % name), "w"), indent=2)
        m = fill(hf.LlamaForCausalLM(hf.LlamaConfig(**copy.deepcopy(config))), 5).eval()
        weights = {k: v.to(torch.bfloat16) for k, v in m.state_dict().items()}
        with torch.no_grad():
            into[name + ".short"] = m(x[:, :10]).logits
            into[name + ".long"] = m(x).logits
    save(os.path.join(out, "model.safetensors"), weights)
    save(os.path.join(out, "reference.safetensors"), into)


# ---- audio ---------------------------------------------------------------------------------------

def write_audio():
    """What Whisper's feature extractor makes of a second of a chirp with noise, with features few enough to be kept."""
    import numpy as np
    out = os.path.join(HERE, "audio")
    os.makedirs(out, exist_ok=True)
    t = np.arange(16000) / 16000
    g = np.random.default_rng(3)
    wave = (0.4 * np.sin(2 * np.pi * (200 + 1500 * t) * t) + 0.02 * g.standard_normal(16000)).astype(np.float32)
    wave = (np.round(wave * 32767) / 32768).astype(np.float32)
    into = {"wave": torch.from_numpy(wave)}
    for mels in 80, 128:
        e = hf.WhisperFeatureExtractor(feature_size=mels, chunk_length=2)
        into["features.%d" % mels] = torch.as_tensor(e(wave, sampling_rate=16000, return_tensors="np")["input_features"])[..., :120:4]
    e.save_pretrained(out)
    long = np.tile(wave, 3)
    from torchaudio.functional import resample
    for a, b in (16000, 11025), (8000, 16000), (44100, 16000):
        into["resampled.%d.%d" % (a, b)] = resample(torch.from_numpy(wave[:1000]), a, b)
    hf.WhisperConfig(vocab_size=60, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=1, num_mel_bins=128,
                     decoder_attention_heads=1, encoder_ffn_dim=8, decoder_ffn_dim=8, max_source_positions=100,
                     max_target_positions=8, pad_token_id=0, bos_token_id=1, eos_token_id=1, decoder_start_token_id=2,
                     architectures=["WhisperForConditionalGeneration"]).save_pretrained(out)
    into["cut"] = torch.as_tensor(e(long, sampling_rate=16000, return_tensors="np")["input_features"])[:, ::16, ::20]
    save(os.path.join(out, "reference.safetensors"), into)


for name in (sys.argv[1:] or [*CASES, "rope", "audio"]) if __name__ == "__main__" else []:
    write_ropes() if name == "rope" else write_audio() if name == "audio" else write(name)
