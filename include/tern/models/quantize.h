/* models/quantize.h -- linear layers with weights of 8 or 4 bits, in the formats of bitsandbytes.
 *
 *   tern_quantize_(model, TERN_QUANTIZE_NF4);     weights as in QLoRA (Dettmers et al. 2023),
 *   tern_lora_add(model, NULL);                   with adapters
 *
 * The weights are not trained; gradients of inputs pass through them. A product with up to 8 rows
 * reads the codes directly (tern_linear_packed; for NF4 if rows are whole blocks of 64 and no graph
 * is recorded), because the time of generation is that of reading weights. A product with more rows
 * dequantizes the weight, 8 million elements at a time, in forward and in backward. */
#ifndef TERN_MODELS_QUANTIZE_H
#define TERN_MODELS_QUANTIZE_H
#include <tern/tern.h>

TERN_BEGIN_DECLS

typedef enum tern_quantization {
    TERN_QUANTIZE_NONE,
    TERN_QUANTIZE_INT8, /* one scale for each row: weight = code max|row| / 127 */
    TERN_QUANTIZE_NF4,  /* one scale for 64 elements, and 16 quantiles of the normal
                         * distribution: 4.5 bits */
    TERN_QUANTIZE_INT4  /* sixteen steps from the minimum to the maximum of 128 neighbours of a
                         * row (64, 32 or the whole row if 128 does not divide it): 4.5 bits;
                         * tern's own format, that of tern_linear_packed */
} tern_quantization;

/* Returns a layer "Linear4bit", "Linear8bitLt" or "LinearInt4" with the quantized weights and the
 * bias of a Linear or Conv1D, which does not change, on its device. NULL after an error. */
TERN_API tern_module *tern_quantize_linear(tern_module *linear, tern_quantization type);
/* Quantizes every Linear and Conv1D of model in place, except for the head of a pretrained model.
 * Quantize after tern_nn_to_dtype, which would round the scales. tern_models_save_pretrained and
 * tern_models_from_pretrained write and read the result. Errors: TERN_ERR_ARGUMENT;
 * TERN_ERR_UNSUPPORTED for INT4 with an odd number of inputs. After TERN_ERR_MEMORY some layers are
 * quantized and others are not; after all other errors none is. */
TERN_API tern_status tern_quantize_(tern_module *model, tern_quantization type);
typedef struct tern_quantize_options {
    /* The quantization of the head of a pretrained model; with NONE it does not change. The head
     * chooses the tokens: INT8 affects the choice least, also beside layers of 4 bits. If the head
     * is tied to an embedding, the embedding stays as it is and the head gets codes of its own,
     * which take additional memory. The embedding is then no longer trained: its requires_grad is
     * false, and if that is made true, a call with gradients is TERN_ERR_STATE. */
    tern_quantization head;
    uint64_t reserved[4];
} tern_quantize_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_quantize_options tern_quantize_defaults(void);
/* Does the same with options; NULL means the defaults. Further errors: TERN_ERR_ARGUMENT for a
 * quantization of the head of a model without one; TERN_ERR_STATE for a head that is not a Linear
 * any more. */
TERN_API tern_status tern_quantize_with_(tern_module *model, tern_quantization type,
                                         const tern_quantize_options *options);
/* Returns the weight (out, in) of such a layer in float32
 * (bitsandbytes.functional.dequantize_4bit); NULL after an error. */
TERN_API tern_tensor *tern_dequantize_weight(tern_module *layer);

/* Returns a layer from the tensors that bitsandbytes saved under a name,
 * "layers.0.mlp.up_proj.weight": NF4 (name, name.absmax, name.quant_map,
 * name.quant_state.bitsandbytes__nf4; also with scales of 8 bits) or int8 (name, and SCB beside
 * it). bias is (out) or NULL. NULL after an error: TERN_ERR_ARGUMENT for a name that does not
 * exist, TERN_ERR_STATE for wrong sizes, TERN_ERR_UNSUPPORTED for another type. */
TERN_API tern_module *tern_quantized_from_state_dict(const tern_state_dict *dict, const char *name,
                                                     tern_tensor *bias);
/* Adds these tensors of a layer to dict, as bitsandbytes reads them. */
TERN_API tern_status tern_quantized_to_state_dict(tern_module *layer, tern_state_dict *dict,
                                                  const char *name);

TERN_END_DECLS
#endif
