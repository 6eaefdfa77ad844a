/* by -- the snippets of docs/guide/by-example.md; made by docs/tool. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>
#line 349 "docs/guide/by-example.md"
static tern_status square_of(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)data, (void)n, (void)k;
    out[0] = tern_mul(in[0], in[0]);
    return tern_last_status();
}
int snippet_by(void)
{
tern_set_error_policy(TERN_ERRORS_ABORT, NULL, NULL);
#line 7 "docs/guide/by-example.md"
tern_tensor *x = tern_reshape(tern_arange(0, 6, 1, TERN_F32, NULL), TERN_SHAPE(2, 3));
#line 13 "docs/guide/by-example.md"
tern_print(tern_eye(2, 3, TERN_F32, NULL));
tern_print(tern_zeros_like(x));
#line 24 "docs/guide/by-example.md"
tern_print(tern_logspace(0, 3, 4, 10, TERN_F32, NULL)); /* 10^0 to 10^3 */
#line 33 "docs/guide/by-example.md"
tern_manual_seed(0);
tern_tensor *order = tern_randperm(5, TERN_I64, NULL); /* 0 to 4 in a random order */
tern_tensor *coins = tern_bernoulli(tern_full(TERN_SHAPE(1000), 0.25, TERN_F32, NULL));
tern_tensor *drawn = tern_multinomial(tern_from_data((const float[]){0, 1, 3}, TERN_SHAPE(3), TERN_F32, NULL), 100, true);
printf("%g, %d, %d\n", tern_item(tern_sum(order)), tern_item(tern_mean(coins)) < 0.3, tern_item(tern_min(drawn)) > 0);
#line 46 "docs/guide/by-example.md"
printf("%d dims, strides %lld and %lld\n", tern_dim(x), (long long)tern_stride(x, 0), (long long)tern_stride(x, 1));
printf("contiguous: %d, transposed: %d\n", tern_is_contiguous(x), tern_is_contiguous(tern_t(x)));
#line 55 "docs/guide/by-example.md"
tern_tensor *host = tern_to(x, "cpu");
const float *numbers = tern_data(host); /* of a tensor on the cpu: its memory */
printf("%g\n", numbers[5]);
char *text = tern_to_text(tern_select(host, 0, 1));
printf("%s\n", text);
tern_free_text(text);
#line 70 "docs/guide/by-example.md"
tern_print(tern_view(x, TERN_SHAPE(3, -1)));
printf("%d\n", tern_dim(tern_squeeze(tern_unsqueeze(x, 0))));
#line 81 "docs/guide/by-example.md"
tern_print(tern_narrow(x, 1, 1, 2)); /* two columns from the column 1 on */
tern_print(tern_diagonal(x, 0, 0, 1));
#line 91 "docs/guide/by-example.md"
tern_tensor *halves[2], *parts[3];
tern_chunk(x, 2, 0, halves, 2);        /* two pieces along dim 0 */
int n = tern_split(x, 1, 1, parts, 3); /* pieces of one column each */
tern_print(halves[1]);
printf("%d pieces, the last has the sum %g\n", n, tern_item(tern_sum(parts[2])));
#line 103 "docs/guide/by-example.md"
tern_tensor *row = tern_arange(0, 2, 1, TERN_F32, NULL);
tern_print(tern_repeat(row, TERN_SHAPE(2, 2))); /* twice down, twice across */
tern_print(tern_tile(row, TERN_SHAPE(3)));
#line 116 "docs/guide/by-example.md"
tern_tensor *columns = tern_contiguous(tern_t(x));
printf("%d\n", tern_is_contiguous(columns));
#line 126 "docs/guide/by-example.md"
tern_tensor *index = tern_from_data((const int64_t[]){2, 0}, TERN_SHAPE(2), TERN_I64, NULL);
tern_print(tern_index_select(x, 1, index));
#line 135 "docs/guide/by-example.md"
tern_tensor *at = tern_from_data((const int64_t[]){0, 2, 0}, TERN_SHAPE(3), TERN_I64, NULL);
tern_tensor *source = tern_from_data((const float[]){1, 10, 100}, TERN_SHAPE(3), TERN_F32, NULL);
tern_tensor *zeros = tern_zeros(TERN_SHAPE(3), TERN_F32, NULL);
tern_print(tern_scatter_add(zeros, 0, at, source)); /* zeros[at[i]] += source[i] */
tern_print(tern_scatter(zeros, 0, tern_narrow(at, 0, 0, 2), source, TERN_REDUCE_NONE));
#line 147 "docs/guide/by-example.md"
tern_tensor *ranks = tern_argsort(source, 0, true); /* the indices that sort it, in descending order */
tern_print(ranks);
tern_print(tern_take_along_dim(source, ranks, TERN_SOME(0)));
#line 159 "docs/guide/by-example.md"
tern_print(tern_div(x, 2));
tern_print(tern_clamp(x, 1, 4));
#line 170 "docs/guide/by-example.md"
tern_print(tern_sqrt(row));
tern_print(tern_log(tern_add(row, 1)));
#line 181 "docs/guide/by-example.md"
tern_print(tern_rsub_scalar(row, 1));               /* 1 - row */
tern_print(tern_rdiv_scalar(tern_add(row, 1), 1)); /* 1 / (row + 1) */
tern_print(tern_rpow_scalar(row, 2));               /* 2 ** row */
#line 194 "docs/guide/by-example.md"
tern_print(tern_lt(x, 2));
tern_print(tern_le(row, 0));
tern_print(tern_ge(row, 0));
tern_print(tern_ne(row, 0));
#line 208 "docs/guide/by-example.md"
tern_tensor *quotient = tern_div(row, row); /* 0 / 0 and 1 / 1 */
tern_print(tern_isnan(quotient));
printf("close: %d\n", tern_allclose(x, tern_mul(x, 1.000001), 1e-5, 1e-8, false));
#line 220 "docs/guide/by-example.md"
printf("%g %g %g\n", tern_item(tern_var(x)), tern_item(tern_min(x)), tern_item(tern_argmax(x)));
printf("all: %d, any: %d\n", (int)tern_item(tern_all(x)), (int)tern_item(tern_any(x)));
#line 229 "docs/guide/by-example.md"
tern_print(tern_cumprod(tern_add(row, 2), 0));
tern_unique_result different;
tern_unique(at, &different);
tern_print(different.output);
#line 242 "docs/guide/by-example.md"
tern_tensor *square = tern_mm(x, tern_t(x)); /* (2, 3) (3, 2) -> (2, 2) */
tern_print(square);
printf("%g\n", tern_item(tern_dot(row, row)));
#line 253 "docs/guide/by-example.md"
tern_tensor *batch = tern_ones(TERN_SHAPE(4, 2, 3), TERN_F32, NULL);
tern_tensor *products = tern_bmm(batch, tern_transpose(batch, 1, 2)); /* (4, 2, 2) */
tern_tensor *outputs = tern_linear(batch, tern_ones(TERN_SHAPE(5, 3), TERN_F32, NULL), NULL); /* (4, 2, 5) */
printf("%g %lld\n", tern_item(tern_mean(products)), (long long)tern_size(outputs, 2));
#line 265 "docs/guide/by-example.md"
tern_print(tern_sigmoid(row));
tern_print(tern_tanh(row));
#line 274 "docs/guide/by-example.md"
tern_tensor *kept = tern_dropout(tern_ones(TERN_SHAPE(1000), TERN_F32, NULL), 0.5, true); /* 0, or 2 */
printf("%d\n", tern_item(tern_max(kept)) == 2 && tern_item(tern_min(kept)) == 0);
#line 282 "docs/guide/by-example.md"
tern_tensor *prediction = tern_from_data((const float[]){1, 3}, TERN_SHAPE(2), TERN_F32, NULL);
printf("%g\n", tern_item(tern_l1_loss(prediction, row, NULL))); /* |1 - 0| and |3 - 1| */
#line 290 "docs/guide/by-example.md"
tern_tensor *logs = tern_log_softmax(x, 1), *labels = tern_from_data((const int64_t[]){2, 2}, TERN_SHAPE(2), TERN_I64, NULL);
printf("%.4f\n", tern_item(tern_nll_loss(logs, labels, NULL)));
printf("%.4f\n", fabs(tern_item(tern_kl_div(logs, tern_softmax(x, 1), NULL))));
#line 302 "docs/guide/by-example.md"
tern_module *embedding = tern_nn_embedding(10, 4, NULL);
tern_module *attention = tern_nn_multihead_attention(4, 2, NULL);
tern_tensor *words = tern_nn_forward(embedding, tern_unsqueeze(labels, 0)); /* (1, 2) -> (1, 2, 4) */
printf("%lld numbers, %lld parameters\n", (long long)tern_numel(words), (long long)tern_nn_numel(attention));
#line 312 "docs/guide/by-example.md"
tern_module *layer = tern_nn_transformer_encoder_layer(4, 2, NULL); /* d_model, heads */
tern_tensor *encoded = tern_nn_forward(layer, words);
printf("%lld %lld %lld\n", (long long)tern_size(encoded, 0), (long long)tern_size(encoded, 1), (long long)tern_size(encoded, 2));
#line 321 "docs/guide/by-example.md"
tern_module *net = tern_nn_sequential(tern_nn_conv2d(3, 8, TERN_SHAPE(3), NULL), tern_nn_batch_norm2d(8, NULL));
tern_nn_append(net, tern_nn_relu());
tern_nn_set_child(net, "2", tern_nn_gelu(NULL));
tern_nn_to_memory_format(net, TERN_CHANNELS_LAST);
tern_nn_to_dtype(net, TERN_F64);
tern_nn_print(net);
#line 337 "docs/guide/by-example.md"
tern_module *norm = tern_nn_layer_norm(TERN_SHAPE(3), NULL);
printf("%.4f\n", tern_item(tern_mean(tern_nn_forward(norm, x))));
#line 357 "docs/guide/by-example.md"
tern_tensor *leaf = tern_requires_grad_(tern_clone(row), true);
tern_tensor *squared;
tern_checkpoint(square_of, NULL, &leaf, 1, &squared, 1, NULL);
tern_backward(tern_sum(squared));
tern_print(tern_grad(leaf));
#line 370 "docs/guide/by-example.md"
tern_optimizer *lamb = tern_optim_lamb(attention, 1e-3, NULL), *lbfgs = tern_optim_lbfgs(norm, 1, NULL);
tern_module *hidden = tern_nn_linear(4, 4, &(tern_linear_options){.no_bias = true});
tern_optimizer *muon = tern_optim_muon(hidden, 0.02, NULL); /* for matrices */
tern_lr_scheduler *cycle = tern_lr_scheduler_one_cycle_lr(lamb, 0.01, 100, NULL);
printf("%.4f\n", tern_optim_get_lr(lamb)); /* the cycle begins with a 25th */
#line 383 "docs/guide/by-example.md"
tern_state_dict *state = tern_nn_state_dict(attention);
tern_save(state, "state.safetensors", NULL);
tern_tensor *input = tern_zeros(TERN_SHAPE(1, 4), TERN_F32, NULL); /* of the shape that the model takes */
tern_onnx_export(hidden, &input, 1, "hidden.onnx", NULL);
#line 390 "docs/guide/by-example.md"
FILE *table = fopen("table.csv", "w");
fputs("length,width,kind\n1,2,0\n3,4,1\n", table);
fclose(table);
tern_dataset *rows = tern_datasets_csv("table.csv", NULL);
printf("%lld rows\n", (long long)tern_dataset_length(rows));
if (getenv("TERN_GUIDE_ALL")) {
#line 401 "docs/guide/by-example.md"
tern_dataset *photos = tern_datasets_image_folder("photos", NULL);
/* photos/cat/1.jpg, photos/dog/2.jpg, ... */
}
#line 408 "docs/guide/by-example.md"
tern_profiler *profiler = tern_profiler_new(NULL);
tern_profiler_start(profiler);
tern_matmul(x, tern_t(x));
tern_profiler_stop(profiler);
char *report = tern_profiler_table(profiler, NULL);
printf("%s\n", strstr(report, "matmul") ? "matmul is in the table" : report);
tern_free_text(report);
tern_empty_cache(NULL); /* the memory that no tensor uses goes back to the driver */
#line 421 "docs/guide/by-example.md"
tern_profiler_free(profiler);
tern_dataset_free(rows);
tern_state_dict_free(state);
tern_lr_scheduler_free(cycle);
tern_optim_free(lamb);
tern_optim_free(lbfgs);
tern_optim_free(muon);
tern_nn_free(hidden);
tern_nn_free(norm);
tern_nn_free(net);
tern_nn_free(layer);
tern_nn_free(attention);
tern_nn_free(embedding);
return 0;
}

int main(void){return snippet_by();}
