/* test_models_parallel.c -- pretrained models on several devices of a process: one device's losses, adapters and logits. */
#include "models.h"
#include <math.h>
#include <stdio.h>

/* A language model with an adapter, a classifier of texts, one beside an encoder. */
static const struct {
    const char *name, *targets;
} cases[] = {{"phi3", ".*(qkv|o|down)_proj"},
             {"gemma3", ".*(q|v|up)_proj"},
             {"modernbert", ".*(Wqkv|Wo)"},
             {"t5", ".*\\.(q|v)"}};

static const char *folder_of(const char *name)
{
    return strcmp(name, "t5") == 0 ? TEST_FOLDER "/golden/t5" : models_path(name, NULL);
}

static tern_module *load(int i, const char *device)
{
    tern_module *m = models_load(folder_of(cases[i].name), device);
    tern_manual_seed(3);
    assert_non_null(tern_lora_add(
        m, &(tern_lora_options){.r = 2, .alpha = 4, .target_pattern = cases[i].targets}));
    return tern_nn_train(m, true);
}

static double step(tern_module *m, tern_optimizer *optimizer, const tern_model_inputs *in)
{
    double value = 0;
    TERN_SCOPE {
        tern_tensor *loss = tern_models_loss(m, in);
        assert_non_null(loss);
        tern_optim_zero_grad(optimizer);
        assert_ok(tern_backward(loss));
        assert_ok(tern_optim_step(optimizer));
        value = tern_item(loss);
    }
    return value;
}

static void several_devices_learn_what_one_learns(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i += test_thorough(device) ? 1 : 2)
        TERN_SCOPE {
            const char *devices[] = {device, "cpu", device};
            char path[1100];
            snprintf(path, sizeof path, "%s/reference.safetensors", folder_of(cases[i].name));
            tern_state_dict *r = models_read(path, device);
            tern_model_inputs in = models_inputs(r);
            tern_module *one = load(i, device), *inner = load(i, device);
            tern_module *m = tern_nn_data_parallel(inner, devices, 2 + i % 2, NULL);
            assert_non_null(m);
            tern_optimizer *a = tern_optim_adamw(one, 1e-2, NULL);
            tern_optimizer *b = tern_optim_adamw(m, 1e-2, NULL);
            for (int k = 0; k < 5; k++) {
                double expected = step(one, a, &in), loss = step(m, b, &in);
                assert_true(fabs(loss - expected) <= 2e-5 * fabs(expected));
            }
            tern_model_outputs own, all;
            TERN_NO_GRAD {
                in.labels = NULL;
                in.decoder_input_ids = strcmp(cases[i].name, "t5") == 0 ? in.input_ids : NULL;
                assert_ok(tern_models_call(tern_nn_eval(one), &in, &own));
                assert_ok(tern_models_call(tern_nn_eval(m), &in, &all));
            }
            assert_near(all.logits, own.logits, 1e-4, 0);
            tern_optim_free(a);
            tern_optim_free(b);
            tern_state_dict_free(r);
            tern_nn_free(m);
            tern_nn_free(one);
        }
}

static void what_can_not_be_shared_out_is_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        const char *devices[] = {"cpu", "cpu"};
        tern_module *m =
            tern_nn_data_parallel(models_load(models_path("clip", NULL), "cpu"), devices, 2, NULL);
        tern_state_dict *r = models_reference("clip", "reference.safetensors", "cpu");
        tern_model_inputs in = models_inputs(r);
        assert_null(tern_models_loss(m, &in));
        assert_error(TERN_ERR_UNSUPPORTED, "CLIPModel is not one of rows");
        in.cu_seqlens = in.labels;
        assert_null(tern_models_loss(m, &in));
        assert_error(TERN_ERR_UNSUPPORTED, "do not go into DataParallel");
        tern_nn_free(m);
        m = tern_nn_data_parallel(tern_nn_relu(), devices, 2, NULL);
        assert_null(tern_models_loss(m, &in));
        assert_error(TERN_ERR_ARGUMENT, "is no model");
        tern_nn_free(m);
        tern_state_dict_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(several_devices_learn_what_one_learns),
        TEST(what_can_not_be_shared_out_is_refused),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
