/* uses.c -- what numbers.h and pointers.h and TERN_DEFAULTS let programs write, for check. */
#include <tern/tern.h>

int uses(double computed);
int uses(double computed)
{
    double reals[] = {1.5, 2};
    const float rows[2][2] = {{1, 2}, {3, 4}};
    const int64_t n = 3;
    const tern_dtype asked = TERN_F64;
    tern_tensor *(*mul)(tern_tensor *, tern_tensor *) = tern_mul;
    tern_tensor *x = tern_from_data(reals, TERN_SHAPE(2), TERN_DTYPE_DEFAULT, "cpu");
    x = tern_from_data(reals, TERN_SHAPE(2), TERN_F64, "cpu");
    x = tern_from_data(reals, TERN_SHAPE(2), asked, "cpu");
    x = tern_from_data((const void *)reals, TERN_SHAPE(2), TERN_F32, "cpu");
    x = tern_from_data(rows, TERN_SHAPE(2, 2), TERN_F32, "cpu");
    x = tern_from_data((const char *)reals, TERN_SHAPE(2), TERN_F64, "cpu");
    x = (tern_from_data)(reals, TERN_SHAPE(2), TERN_F64, "cpu");
#ifndef __cplusplus
    x = tern_from_data(reals, TERN_SHAPE(2), 0, "cpu");
    x = tern_from_data((float[]){1, 2, 3}, TERN_SHAPE(3), 0, "cpu");
    x = tern_from_data((const int64_t[2][2]){{1, 2}, {3, 4}}, TERN_SHAPE(2, 2), TERN_I64, "cpu");
#endif
    x = tern_mul(tern_mul(x, 2), tern_add(x, 0.5f));
    x = tern_mul(tern_sub_(x, n), true);
    x = tern_where(tern_gt(x, computed), x, 0.0);
    x = tern_where(x, 1, 2);
    x = tern_lerp(x, x, 0.5);
    x = tern_div_mode(x, 2, TERN_ROUNDING_FLOOR);
    x = tern_full(TERN_SHAPE(2), 7, TERN_F32, NULL);
    x = tern_full_like(x, TERN_SCALAR(2));
    x = tern_arange(0, n, 1, TERN_DTYPE_DEFAULT, NULL);
    x = tern_scatter(x, 0, x, 1.5, TERN_REDUCE_NONE);
    tern_adamw_options o = tern_adamw_defaults();
    o.weight_decay = computed;
    tern_optim_free(tern_optim_adamw(NULL, 0.1, &o));
    tern_optim_free(tern_optim_adamw(NULL, 0.1, TERN_DEFAULTS(adamw, .weight_decay = computed)));
    tern_nn_free(tern_nn_dropout(TERN_DEFAULTS(dropout)));
    tern_nn_free(tern_nn_transformer(TERN_DEFAULTS(transformer, .d_model = 8, .layer.dropout = 0,
                                                   .layer.batch_first = true, .nhead = 2)));
    tern_nn_free(tern_nn_conv2d(1, 2, TERN_SHAPE(3),
                                TERN_DEFAULTS(conv, .stride = TERN_SHAPE(2, 1), .groups = 1)));
    return tern_copy_to_host(x, reals, sizeof reals) == TERN_OK && mul(x, x);
}
