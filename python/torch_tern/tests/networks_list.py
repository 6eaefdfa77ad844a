"""The networks of networks.py: a function for each set, {name: (make, loss)}; loss(model, device)
takes a device, or (device, dtype) for float64."""
import unittest.mock

# Of the largest networks: what a step beside the cpu's takes, with its copies in float64.
GIGABYTES = {"vit_h_14": 40, "regnet_y_128gf": 40}


def on(x, device):
    """x on a device; floating point numbers of the dtype that goes with it."""
    if isinstance(device, tuple):
        return x.to(device[0], device[1]) if x.is_floating_point() else x.to(device[0])
    return x.to(device)


def plain():
    """One of each kind, of torch alone."""
    import torch
    from torch import nn
    generator = torch.Generator().manual_seed(1)

    def rand(*sizes):
        return torch.randn(*sizes, generator=generator)

    image, labels = rand(4, 3, 16, 16), torch.tensor([0, 1, 2, 3])
    rows, tokens = rand(8, 20), torch.randint(0, 50, (2, 12), generator=generator)

    class Residual(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n),
                                      nn.ReLU(inplace=True), nn.Conv2d(n, n, 3, padding=1),
                                      nn.BatchNorm2d(n))

        def forward(self, x):
            return torch.relu(self.body(x) + x)

    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(50, 32)
            layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu",
                                               batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(32, 50, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
            return self.head(self.body(self.embed(x), mask=mask.to(self.embed.weight.dtype)))

    class Recurrent(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.body = kind(20, 16, 2, batch_first=True)
            self.head = nn.Linear(16, 4)

        def forward(self, x):
            return self.head(self.body(x)[0][:, -1])

    def classify(x):
        return lambda model, device: nn.functional.cross_entropy(model(on(x, device)),
                                                                 on(labels, device))

    def predict(model, device):
        logits = model(on(tokens, device))[:, :-1].flatten(0, 1)
        return nn.functional.cross_entropy(logits, on(tokens[:, 1:].flatten(), device))

    def reconstruct(model, device):
        return nn.functional.mse_loss(model(on(image, device)), on(image, device))

    def segment(model, device):
        y = nn.functional.interpolate(model(on(image, device)), size=(16, 16), mode="bilinear")
        return nn.functional.cross_entropy(y, on(torch.zeros(4, 16, 16, dtype=torch.long), device))

    return {
        "perceptron": (lambda: nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Dropout(0.5),
                                             nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 4)),
                       lambda model, device: nn.functional.cross_entropy(
                           model(on(rows[:4], device)), on(labels, device))),
        "convolutional": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(),
                                                nn.MaxPool2d(2), nn.Flatten(),
                                                nn.Linear(128, 4)), classify(image)),
        "residual": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Residual(8),
                                           Residual(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                           nn.Linear(8, 4)), classify(image)),
        "separable": (lambda: nn.Sequential(nn.Conv2d(3, 12, 1), nn.GroupNorm(3, 12), nn.SiLU(),
                                            nn.Conv2d(12, 12, 3, 2, 1, groups=12),
                                            nn.Hardswish(), nn.AvgPool2d(2), nn.Flatten(),
                                            nn.Linear(192, 4)), classify(image)),
        "autoencoder": (lambda: nn.Sequential(nn.Conv2d(3, 6, 4, 2, 1), nn.LeakyReLU(0.1),
                                              nn.ConvTranspose2d(6, 3, 4, 2, 1)), reconstruct),
        "segmentation": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8),
                                               nn.ReLU6(), nn.Conv2d(8, 4, 1)), segment),
        "language": (Language, predict),
        "lstm": (lambda: Recurrent(nn.LSTM),
                 classify(rand(4, 6, 20))),
        "gru": (lambda: Recurrent(nn.GRU), classify(rand(4, 6, 20))),
        "vanilla recurrent": (lambda: Recurrent(nn.RNN), classify(rand(4, 6, 20))),
    }


def torchvision():
    """All classification, segmentation and detection networks that take small images."""
    import torch
    import torchvision.models as models
    from torch.nn import functional
    generator = torch.Generator().manual_seed(1)
    image = torch.randn(2, 3, 64, 64, generator=generator)
    larger = torch.randn(2, 3, 96, 96, generator=generator)
    square = torch.randn(1, 3, 224, 224, generator=generator)

    def classify(x, weight_of_auxiliary=0.3):
        def loss(model, device):
            y = model(on(x, device))
            labels = on(torch.arange(1, len(x) + 1), device)
            if isinstance(y, torch.Tensor):
                return functional.cross_entropy(y, labels)
            total = functional.cross_entropy(y.logits, labels)
            for extra in y[1:]:
                if extra is not None:
                    total = total + weight_of_auxiliary * functional.cross_entropy(extra, labels)
            return total
        return loss

    def segment(model, device):
        y = model(on(image, device))["out"]
        labels = torch.arange(y[:, 0].numel()).reshape(y[:, 0].shape) % 4
        return functional.cross_entropy(y, on(labels, device))

    def detect(model, device):
        boxes = torch.tensor([[4.0, 5.0, 40.0, 44.0], [10.0, 8.0, 60.0, 50.0]])
        keypoints = torch.ones(2, 17, 3) * 20  # torchvision takes none in float64
        targets = [{"boxes": on(boxes, device), "labels": on(torch.tensor([1, 2]), device),
                    "masks": on(torch.ones(2, 96, 96, dtype=torch.uint8), device),
                    "keypoints": keypoints.to(device[0] if isinstance(device, tuple) else device)}
                   for _ in range(2)]
        # Which anchors count is drawn at random, on each device by its own generator: torch.randperm
        # of a device runs, and its numbers are put aside.
        permute = torch.randperm

        def in_order(n, device=None):
            return permute(n, device=device).sort().values
        with unittest.mock.patch("torch.randperm", in_order):
            return sum(model(list(on(larger, device)), targets).values())

    networks = {}
    for name in models.list_models(module=models):
        x = image
        options = dict(weights=None, num_classes=10)
        if name == "googlenet":
            options["init_weights"] = False
        if name == "inception_v3":
            options["init_weights"], options["aux_logits"], x = False, False, larger
        if name.startswith("vit_"):
            options["image_size"] = 64 if name != "vit_h_14" else 56
            x = image if name != "vit_h_14" else image[..., :56, :56]
        if name == "maxvit_t":
            options["input_size"], x = (224, 224), square
        networks[name] = (lambda name=name, options=options: models.get_model(name, **options),
                          classify(x))
    for name in models.list_models(module=models.segmentation):
        networks[name] = (lambda name=name: models.get_model(
            name, weights=None, weights_backbone=None, num_classes=4), segment)
    for name in models.list_models(module=models.detection):
        networks[name] = (lambda name=name: models.get_model(
            name, weights=None, weights_backbone=None, num_classes=4,
            min_size=96, max_size=96) if "ssd" not in name else models.get_model(
                name, weights=None, weights_backbone=None, num_classes=4), detect)
    return networks


SMALL = dict(vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
             num_attention_heads=4, max_position_embeddings=64, pad_token_id=0, bos_token_id=1,
             eos_token_id=2)
CAUSAL = {  # class, options besides SMALL
    "Llama": {}, "Mistral": dict(num_key_value_heads=2, sliding_window=8),
    "Qwen2": dict(num_key_value_heads=2), "Qwen3": dict(num_key_value_heads=2, head_dim=8),
    "Gemma": dict(head_dim=8, num_key_value_heads=2),
    "Gemma2": dict(head_dim=8, num_key_value_heads=2),
    "Gemma3Text": dict(head_dim=8, num_key_value_heads=2), "Phi": {},
    "Phi3": {}, "GPTNeoX": {}, "StableLm": dict(num_key_value_heads=4), "Olmo": {}, "Olmo2": {}, "Cohere": {},
    "Granite": {}, "Starcoder2": dict(num_key_value_heads=2), "SmolLM3": {},
    "Mixtral": dict(num_key_value_heads=2, num_local_experts=4),
    "Qwen2Moe": dict(num_key_value_heads=2, num_experts=4, moe_intermediate_size=32,
                     shared_expert_intermediate_size=32),
    "OPT": dict(ffn_dim=64, word_embed_proj_dim=32), "Falcon": {},
    "Bloom": dict(n_layer=2, n_head=4), "GPT2": dict(n_embd=32, n_layer=2, n_head=4,
                                                     n_positions=64),
    "GPTJ": dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4),
    "Mamba": dict(state_size=8), "BioGpt": {}, "XGLM": dict(d_model=32, ffn_dim=64, num_layers=2,
                                                          attention_heads=4),
}
MASKED = {"Bert": {}, "Roberta": {}, "Electra": dict(embedding_size=32),
          "DebertaV2": {}, "Albert": dict(embedding_size=32), "MPNet": {}, "XLMRoberta": {},
          "Camembert": {}, "ModernBert": dict(global_attn_every_n_layers=2, local_attention=8,
                                              reference_compile=False),
          "DistilBert": dict(dim=32, hidden_dim=64, n_layers=2, n_heads=4),
          "ConvBert": dict(embedding_size=32, num_groups=1)}


def transformers():
    """Architectures of transformers in small configurations."""
    import torch
    import transformers as library
    library.logging.set_verbosity_error()
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, 90, (2, 16), generator=generator)
    mask = torch.ones_like(ids)
    mask[0, 12:] = 0
    pixels = torch.randn(2, 3, 32, 32, generator=generator)

    def language(model, device):
        return model(input_ids=on(ids, device), attention_mask=on(mask, device),
                     labels=on(ids, device)).loss

    def images(model, device):
        return model(pixel_values=on(pixels, device), labels=on(torch.tensor([0, 1]), device)).loss

    def made(model, config, options):
        def make():
            cls = getattr(library, model)
            return cls(getattr(library, config)(**options))
        return make

    networks = {}
    for name, more in CAUSAL.items():
        cls = {"GPT2": "GPT2LMHeadModel", "Gemma3Text": "Gemma3ForCausalLM"}.get(
            name, name + "ForCausalLM")
        networks[name] = (made(cls, name + "Config", {**SMALL, **more}), language)
    for name, more in MASKED.items():
        networks[name] = (made(name + "ForMaskedLM", name + "Config", {**SMALL, **more}), language)
    d = dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2,
             encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
             decoder_ffn_dim=64)
    more = dict(d, max_position_embeddings=64)
    t5 = dict(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
              decoder_start_token_id=0)
    networks["T5"] = (made("T5ForConditionalGeneration", "T5Config", t5), language)
    networks["MT5"] = (made("MT5ForConditionalGeneration", "MT5Config", t5), language)
    networks["Bart"] = (made("BartForConditionalGeneration", "BartConfig", more), language)
    networks["MBart"] = (made("MBartForConditionalGeneration", "MBartConfig", more), language)
    networks["Marian"] = (made("MarianMTModel", "MarianConfig",
                               dict(more, pad_token_id=0, decoder_start_token_id=0,
                                    decoder_vocab_size=99)), language)
    whisper = dict(d, max_source_positions=32, max_target_positions=64, pad_token_id=0,
                   bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None,
                   begin_suppress_tokens=None)
    networks["Whisper"] = (
        made("WhisperForConditionalGeneration", "WhisperConfig", whisper),
        lambda model, device: model(input_features=on(torch.ones(2, 80, 64), device),
                                    labels=on(ids, device)).loss)
    vit = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
               image_size=32, patch_size=8)
    networks["ViT"] = (made("ViTForImageClassification", "ViTConfig", vit), images)
    networks["DeiT"] = (made("DeiTForImageClassification", "DeiTConfig", vit), images)
    networks["BEiT"] = (made("BeitForImageClassification", "BeitConfig", vit), images)
    networks["DINOv2"] = (made("Dinov2ForImageClassification", "Dinov2Config", vit), images)
    networks["Swin"] = (made("SwinForImageClassification", "SwinConfig", dict(
        image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 4],
        window_size=4)), images)
    networks["ConvNeXt"] = (made("ConvNextForImageClassification", "ConvNextConfig", dict(
        hidden_sizes=[16, 32, 32, 32], depths=[1, 1, 1, 1])), images)
    networks["ResNet"] = (made("ResNetForImageClassification", "ResNetConfig", dict(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1])), images)
    networks["CLIP"] = (
        made("CLIPModel", "CLIPConfig", dict(text_config=dict(SMALL, projection_dim=16),
                                             vision_config=dict(vit, projection_dim=16),
                                             projection_dim=16)),
        lambda model, device: model(input_ids=on(ids, device), pixel_values=on(pixels, device),
                                    return_loss=True).loss)
    wave = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 8),
                num_feat_extract_layers=2, vocab_size=20, num_conv_pos_embeddings=16,
                num_conv_pos_embedding_groups=4, mask_time_prob=0.0, layerdrop=0.0)
    sound = torch.linspace(-1, 1, 2000).reshape(2, 1000)

    def speech(model, device):
        return model(input_values=on(sound, device),
                     labels=on(torch.tensor([[1, 2, 3], [4, 5, 6]]), device)).loss

    networks["Wav2Vec2"] = (made("Wav2Vec2ForCTC", "Wav2Vec2Config", wave), speech)
    networks["HuBERT"] = (made("HubertForCTC", "HubertConfig", wave), speech)
    return networks
