/* models.h -- pretrained models: loading, running, fine-tuning, quantization, generation,
 * tokenizers. The functions are in a library of their own, libtern_models (pkg-config tern_models,
 * CMake tern::models). */
#ifndef TERN_MODELS_H
#define TERN_MODELS_H
#include <tern/models/adamw8bit.h>
#include <tern/models/audio.h>
#include <tern/models/generate.h>
#include <tern/models/lora.h>
#include <tern/models/pretrained.h>
#include <tern/models/quantize.h>
#include <tern/models/tokenizer.h>

#endif
