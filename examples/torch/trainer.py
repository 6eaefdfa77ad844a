"""Hugging Face's Trainer: a small Llama learns to repeat sequences of tokens.

    python trainer.py

Needs transformers and accelerate. Nothing here names a device: with torch_tern Trainer takes tern:0
(ACCELERATE_TORCH_DEVICE names another one)."""
import torch
import torch_tern  # noqa: F401
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64))
half = torch.randint(3, 64, (256, 8))
rows = [{"input_ids": torch.cat([h, h]), "labels": torch.cat([h, h])} for h in half]
arguments = TrainingArguments("trainer-out", max_steps=30, per_device_train_batch_size=16,
                              learning_rate=3e-3, logging_steps=10, report_to=[],
                              save_strategy="no", disable_tqdm=True)
trainer = Trainer(model, arguments, train_dataset=rows)
first = trainer.evaluate(rows[:32])["eval_loss"]
trainer.train()
last = trainer.evaluate(rows[:32])["eval_loss"]
print(f"device {arguments.device}, loss {first:.3f} -> {last:.3f}")
print("ran on the cpu:", torch.tern.fallbacks() or "nothing")
assert arguments.device.type == "tern" and next(model.parameters()).device.type == "tern"
assert last < first
