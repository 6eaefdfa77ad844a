/* lora.c -- a pretrained language model fine-tuned with LoRA by the ranks that a launcher started, against the whole batch
 * on one of them: the same losses, the same adapter.
 *
 *   mpirun -n N lora RANKS MODEL [DEVICE] */
#include "ranks.h"
#include <math.h>
#include <tern/models.h>

enum { EACH = 2, LENGTH = 12, STEPS = 5 };

static tern_module *load(const char *directory)
{
    tern_module *m =
        tern_models_from_pretrained(directory, &(tern_pretrained_options){.dtype = TERN_F32});
    tern_manual_seed(3);
    CHECK(tern_lora_add(
              m, &(tern_lora_options){.r = 4, .alpha = 8, .target_pattern = ".*(qkv|o|down)_proj"}),
          "adapter");
    return tern_nn_train(m, true);
}

static tern_tensor *loss_of(tern_module *m, tern_tensor *ids)
{
    return tern_models_loss(m, &(tern_model_inputs){.input_ids = ids, .labels = ids});
}

static double step(tern_module *m, tern_optimizer *optimizer, tern_tensor *ids)
{
    double value = 0;
    TERN_SCOPE {
        tern_tensor *loss = loss_of(m, ids);
        tern_optim_zero_grad(optimizer);
        CHECK(tern_backward(loss) == TERN_OK, "backward");
        CHECK(tern_optim_step(optimizer) == TERN_OK, "step");
        value = tern_item(loss);
    }
    return value;
}

typedef struct comparison {
    tern_module *other;
    int trained;
} comparison;

static tern_status compare(const char *path, tern_tensor *x, void *user)
{
    comparison *c = user;
    tern_tensor *y = tern_nn_parameter(c->other, path);
    TERN_SCOPE
        CHECK(tern_item(tern_max(tern_abs(tern_sub(x, y)))) <= 2e-5, "%s", path);
    c->trained += tern_requires_grad(x);
    return TERN_OK;
}

int main(int argc, char **argv)
{
    leave_pid();
    CHECK(argc > 2, "usage: lora RANKS MODEL [DEVICE]");
    tern_dist_init_process_group(
        NULL, &(tern_dist_init_options){.timeout = 60, .device = argc > 3 ? argv[3] : NULL});
    int rank = tern_dist_get_rank(NULL), ranks = tern_dist_get_world_size(NULL);
    CHECK(tern_last_status() == TERN_OK && ranks == atoi(argv[1]), "%d ranks", ranks);
    tern_module *inner = load(argv[2]), *whole = load(argv[2]);
    tern_module *m = tern_nn_distributed_data_parallel(inner, NULL);
    CHECK(m, "made");
    tern_optimizer *own = tern_optim_adamw(m, 1e-2, NULL),
                   *one = tern_optim_adamw(whole, 1e-2, NULL);
    tern_manual_seed(5);
    TERN_SCOPE
        for (int i = 0; i < STEPS; i++) {
            tern_tensor *ids =
                tern_randint(3, 60, TERN_SHAPE(EACH * ranks, LENGTH), TERN_I64, "cpu");
            ids = tern_to(ids, NULL);
            double loss = step(m, own, tern_narrow(ids, 0, EACH * rank, EACH));
            double expected = step(whole, one, ids);
            tern_tensor *mean = tern_full(TERN_SHAPE(1), loss / ranks, TERN_F64, "cpu");
            CHECK(tern_dist_all_reduce(mean, NULL) == TERN_OK, "mean of losses");
            CHECK(fabs(tern_item(mean) - expected) <= 1e-5 * expected, "step %d: %.7f and %.7f", i,
                  tern_item(mean), expected);
        }
    comparison c = {.other = whole};
    CHECK(tern_nn_each_parameter(inner, compare, &c) == TERN_OK && c.trained > 0, "adapters");
    tern_optim_free(own);
    tern_optim_free(one);
    tern_nn_free(m);
    tern_nn_free(whole);
    CHECK(tern_last_status() == TERN_OK, "at the end");
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    return 0;
}
