/* small.h -- a small model with random weights, and texts to go with it: what the examples of pretrained models work on
 * where they are given none. */
#ifndef EXAMPLES_SMALL_H
#define EXAMPLES_SMALL_H
#include <tern/models.h>

/* Makes the folder small-KIND, of a kind "bert" or "llama", as one of the Hugging Face Hub: config.json,
 * model.safetensors, tokenizer.json. Beside these texts.tsv (class, tab, text), texts.txt, and chat.jsonl (prompt and completion). */
tern_status small_model(const char *kind);

#endif
