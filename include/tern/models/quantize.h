/* models/quantize.h -- linear layers whose weights take 8 or 4 bits, in bitsandbytes' layout.
 *
 *   tern_quantize_(model, TERN_QUANTIZE_NF4);     weights as QLoRA keeps them (Dettmers et al.
 *                                                 2023),
 *   tern_lora_add(model, NULL);                   adapters around them
 *
 * The weights are not trained, and gradients of inputs go through them. A product of up to 8 rows
 * reads the codes as they lie (tern_linear_packed; of NF4 where rows are whole blocks of 64, and no
 * graph is recorded), which is what generation waits for; one of more makes the weight, 8 million
 * elements at a time, forward and backward. */
#ifndef TERN_MODELS_QUANTIZE_H
#define TERN_MODELS_QUANTIZE_H
#include <tern/tern.h>

TERN_BEGIN_DECLS

typedef enum tern_quantization {
    TERN_QUANTIZE_NONE,
    TERN_QUANTIZE_INT8, /* a scale for each row: weight = code max|row| / 127 */
    TERN_QUANTIZE_NF4,  /* a scale for 64 elements, and 16 quantiles of the normal distribution: 4.5
                          bits */
    TERN_QUANTIZE_INT4  /* sixteen steps from the least to the largest of 128 neighbours of a row
                          (64, 32 or all where 128 is no divisor): 4.5 bits; tern's own layout, that
                          of tern_linear_packed */
} tern_quantization;

/* A layer "Linear4bit", "Linear8bitLt" or "LinearInt4" with the weights of a Linear or Conv1D,
 * which stays as it is, on its device, and its bias. NULL after an error. */
TERN_API tern_module *tern_quantize_linear(tern_module *linear, tern_quantization type);
/* Every Linear and Conv1D of model, in place, but the head of a pretrained model. Quantize after
 * tern_nn_to_dtype, which would round the scales; tern_models_save_pretrained writes what comes out
 * and tern_models_from_pretrained reads it. Errors: TERN_ERR_ARGUMENT; TERN_ERR_UNSUPPORTED for
 * INT4 of an odd number of inputs. TERN_ERR_MEMORY leaves layers of both kinds; nothing else fails
 * half way. */
TERN_API tern_status tern_quantize_(tern_module *model, tern_quantization type);
typedef struct tern_quantize_options {
    /* What the head of a pretrained model becomes; NONE: it stays as it is. Its rows are what a
     * model chooses a token by: INT8 changes that least, beside layers of 4 bits, too. Where the
     * head is tied to an embedding, that stays as it is and the head has codes of its own, more
     * memory by so much; the embedding is not trained any more (requires_grad is false, and a call
     * with gradients where it is made true again is TERN_ERR_STATE). */
    tern_quantization head;
    uint64_t reserved[4];
} tern_quantize_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_quantize_options tern_quantize_defaults(void);
/* With options, NULL for the defaults. Errors besides: TERN_ERR_ARGUMENT for a type for the head of
 * what has none; TERN_ERR_STATE for a head that is no Linear any more. */
TERN_API tern_status tern_quantize_with_(tern_module *model, tern_quantization type,
                                         const tern_quantize_options *options);
/* The weight (out, in) of such a layer as float32 (bitsandbytes.functional.dequantize_4bit); NULL
 * after an error. */
TERN_API tern_tensor *tern_dequantize_weight(tern_module *layer);

/* A layer of what bitsandbytes saved under a name, "layers.0.mlp.up_proj.weight": NF4 (name,
 * name.absmax, name.quant_map, name.quant_state.bitsandbytes__nf4; with scales in 8 bits too) or
 * int8 (name and SCB beside it). bias: (out) or NULL. Errors: TERN_ERR_ARGUMENT for a name that is
 * not there, TERN_ERR_STATE for sizes, TERN_ERR_UNSUPPORTED for another type. */
TERN_API tern_module *tern_quantized_from_state_dict(const tern_state_dict *dict, const char *name,
                                                     tern_tensor *bias);
/* The same tensors into dict, as bitsandbytes reads them. */
TERN_API tern_status tern_quantized_to_state_dict(tern_module *layer, tern_state_dict *dict,
                                                  const char *name);

TERN_END_DECLS
#endif
