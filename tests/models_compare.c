/* models_compare.c -- a pretrained model beside what PyTorch computed with it: gradients, training, files. */
#include "models.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- training -------------------------------------------------------------------------------- */

typedef struct comparison {
    tern_state_dict *reference;
    double largest; /* of the model's gradients */
    int compared;
    bool look;
} comparison;

static tern_status compare_gradient(const char *path, tern_tensor *x, void *user)
{
    comparison *c = user;
    tern_tensor *expected = models_get(c->reference, "grad.%s", path);
    if (!expected)
        return TERN_OK;
    if (c->look)
        TERN_SCOPE
            c->largest = fmax(c->largest, tern_item(tern_max(tern_abs(expected))));
    else
        models_near(tern_grad(x), expected, 1e-4, 1e-6 * c->largest, path, __FILE__, __LINE__);
    c->compared++;
    return TERN_OK;
}

int models_compare_gradients(tern_module *m, tern_state_dict *r)
{
    comparison c = {.reference = r, .look = true};
    assert_ok(tern_nn_each_parameter(m, compare_gradient, &c));
    c.look = false;
    assert_ok(tern_nn_each_parameter(m, compare_gradient, &c));
    int gradients = 0;
    for (int i = 0; i < tern_state_dict_count(r); i++)
        gradients += strncmp(tern_state_dict_key_at(r, i), "grad.", 5) == 0;
    assert_int_equal(c.compared, 2 * gradients);
    return gradients;
}

static tern_status compare_after(const char *path, tern_tensor *x, void *user)
{
    tern_tensor *expected = models_get(user, "after.%s", path);
    if (expected)
        models_near(x, expected, 5e-4, 0, path, __FILE__, __LINE__);
    return TERN_OK;
}

/* Whether these six losses are those of r, within what the README allows the last of them. */
static bool has_losses(tern_state_dict *r, const double *losses)
{
    double *expected = test_read(models_get(r, "losses"));
    bool same = true;
    for (int step = 0; step < 6; step++)
        same = same && fabs(losses[step] - expected[step]) <= 5e-4 * fabs(expected[step]);
    free(expected);
    return same;
}

/* The loss of m in training, by a copy of it in float64 on the cpu. */
static double loss_in_float64(tern_module *m, tern_model_inputs in)
{
    double loss = 0;
    tern_module *copy = tern_nn_copy(m);
    assert_non_null(tern_nn_to_dtype(tern_nn_to(copy, "cpu"), TERN_F64));
    TERN_SCOPE {
        TERN_NO_GRAD_HERE;
        tern_tensor **const all[] = {&in.input_ids,    &in.attention_mask, &in.token_type_ids,
                                     &in.pixel_values, &in.input_features, &in.labels};
        for (int i = 0; i < 6; i++)
            if (*all[i])
                *all[i] = tern_to(*all[i], "cpu");
        for (int i = 3; i < 5; i++)
            if (*all[i])
                *all[i] = tern_to_dtype(*all[i], TERN_F64);
        loss = tern_item(tern_models_loss(tern_nn_train(copy, true), &in));
    }
    tern_nn_free(copy);
    return loss;
}

/* PyTorch's loss has roundings of its own: it and tern's are compared with the loss in float64. */
static void compare_loss(double loss, double exact, double pytorchs, tern_tensor *logits,
                         tern_state_dict *r)
{
    /* CLIP's is of differences of logits that a temperature made larger, and with them their rounding. */
    double size = fabs(exact);
    if (models_get(r, "text_embeds"))
        size = fmax(size, tern_item(tern_max(tern_abs(logits))));
    const double allowed = 1e-6 * size + 1e-7;
    if (!(fabs(loss - exact) <= allowed && fabs(pytorchs - exact) <= allowed))
        fail_msg("the loss is %.9g, PyTorch's %.9g, that in float64 %.9g: differences of %.3g are "
                 "allowed",
                 loss, pytorchs, exact, allowed);
}

void models_compare_training(tern_module *m, tern_state_dict *r, tern_state_dict *other)
{
    tern_model_inputs in = models_inputs(r);
    tern_model_outputs out;
    double losses[6], exact = loss_in_float64(m, in);
    assert_ok(tern_models_call(tern_nn_train(m, true), &in, &out));
    tern_tensor *logits = models_get(r, "train.logits");
    assert_near(out.logits, logits ? logits : models_get(r, "logits"), 1e-5, 0);
    compare_loss(tern_item(out.loss), exact, tern_item(models_get(r, "loss")), out.logits, r);
    assert_ok(tern_backward(out.loss));
    models_compare_gradients(m, r);
    tern_optimizer *optimizer = tern_optim_adamw(m, 1e-3, NULL);
    for (int step = 0; step < 6; step++)
        TERN_SCOPE {
            tern_tensor *now = tern_models_loss(m, &in);
            assert_non_null(now);
            losses[step] = tern_item(now);
            tern_optim_zero_grad(optimizer);
            if (step < 5) {
                assert_ok(tern_backward(now));
                assert_ok(tern_optim_step(optimizer));
            }
        }
    tern_optim_free(optimizer);
    if (other && has_losses(other, losses)) {
        print_message("a number before ReLU is on the other side of zero\n");
        r = other;
    }
    assert_true(has_losses(r, losses));
    assert_ok(tern_nn_each_buffer(m, compare_after, r));
}

/* ---- files ----------------------------------------------------------------------------------- */

void models_compare_files(const char *folder, const char *from)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    tern_state_dict *a = tern_load(path, NULL);
    tern_state_dict *b = tern_load(from, NULL);
    if (!b) {
        tern_clear_error();
        snprintf(path, sizeof path, "%s/model.safetensors", from);
        b = tern_load(path, NULL);
    }
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(tern_state_dict_count(a), tern_state_dict_count(b));
    for (int i = 0; i < tern_state_dict_count(b); i++)
        assert_same(tern_state_dict_get(a, tern_state_dict_key_at(b, i)), tern_state_dict_at(b, i));
    assert_string_equal(tern_state_dict_metadata(a, "format"), "pt");
    tern_state_dict_free(a);
    tern_state_dict_free(b);
}
