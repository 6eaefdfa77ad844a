/* muon.c -- Muon: momentum whose singular values are all brought near one, by Newton and Schulz
 * (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon; torch.optim.Muon).
 *
 * X = a X + (b A + c A^2) X with A = X X^T, five times: products that each device has its own way
 * for. Then one launch moves all parameters. */
#include "optim/optimizer.h"
#include <math.h>

enum { MOMENTUM = 2, A, B, C, EPS };

typedef struct settings {
    int steps;
    bool no_nesterov;
    tern_muon_adjust adjust;
} settings;

static void resolve(const double *option, double *number)
{
    for (int i = 0; i < OPTIM_OPTIONS; i++)
        number[i] = option[i];
}

/* From float32, where PyTorch takes bfloat16. X is wide: of fewer rows than columns. */
static tern_tensor *orthogonalize(tern_tensor *x, const double *option, int steps)
{
    bool tall = tern_size(x, 0) > tern_size(x, 1);
    x = tall ? tern_t(x) : x;
    tern_tensor *norm = tern_sqrt(tern_sum(tern_square(x)));
    x = tern_div(x, tern_clamp(norm, option[EPS], INFINITY));
    for (int i = 0; i < steps; i++) {
        tern_tensor *gram = tern_matmul(x, tern_t(x));
        tern_tensor *other =
            tern_add(tern_mul_scalar(gram, tern_scalar_real(option[B])),
                     tern_mul_scalar(tern_matmul(gram, gram), tern_scalar_real(option[C])));
        x = tern_add(tern_mul_scalar(x, tern_scalar_real(option[A])), tern_matmul(other, x));
    }
    return tern_contiguous(tall ? tern_t(x) : x);
}

static double adjustment(const tern_tensor *x, tern_muon_adjust how)
{
    double rows = (double)tern_size(x, 0), columns = (double)tern_size(x, 1);
    if (how == TERN_MUON_MATCH_RMS_ADAMW)
        return 0.2 * sqrt(fmax(rows, columns));
    return sqrt(fmax(1, rows / columns));
}

static tern_status prepare(tern_optimizer *o, tern_optim_batch *b, tern_optim_columns *c,
                           tern_foreach_call *call)
{
    const settings *s = o->data;
    const double *option = o->groups[o->slots[b->slot[0]].group].option;
    tern_scalar momentum = tern_scalar_real(option[MOMENTUM]),
                fresh = tern_scalar_real(1 - option[MOMENTUM]);
    (void)call;
    for (int i = 0; i < b->count; i++) {
        if (!c->grad[i] || tern_numel(c->grad[i]) == 0)
            continue;
        tern_tensor *grad = c->grad[i];
        tern_tensor *buffer =
            tern_add(tern_mul_scalar(c->state[0][i], momentum), tern_mul_scalar(grad, fresh));
        tern_tensor *d = s->no_nesterov ? buffer
                                        : tern_add(tern_mul_scalar(buffer, momentum),
                                                   tern_mul_scalar(grad, fresh));
        double factor = adjustment(grad, s->adjust);
        c->state[1][i] = buffer;
        c->state[2][i] =
            tern_mul_scalar(orthogonalize(d, option, s->steps), tern_scalar_real(factor));
        if (!buffer || !c->state[2][i])
            return tern_last_status();
    }
    return TERN_OK;
}

static tern_status check_parameter(const tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x);
    char text[128];
    if (shape.ndim == 2)
        return TERN_OK;
    return tern_fail(TERN_ERR_SHAPE,
                     "tern_optim_muon: Muon only supports 2D parameters whereas we found a "
                     "parameter with size: %s",
                     tern_format_list(text, sizeof text, shape.dims, shape.ndim));
}

static const tern_optim_kind muon = {.name = "tern_optim_muon",
                                     .many = {"sgd_variants", "muon"},
                                     .few = {"sgd_variants", "muon_few"},
                                     .only_wide = true,
                                     .option = {OPTIM_LR,
                                                OPTIM_WEIGHT_DECAY,
                                                OPTIM_MOMENTUM,
                                                {"a", "coefficient", -INFINITY, INFINITY},
                                                {"b", "coefficient", -INFINITY, INFINITY},
                                                {"c", "coefficient", -INFINITY, INFINITY},
                                                OPTIM_EPS},
                                     .state = {"momentum_buffer"},
                                     .resolve = resolve,
                                     .prepare = prepare,
                                     .check_parameter = check_parameter,
                                     .free_data = tern_free};

static tern_optimizer *finish(tern_optimizer *self, const tern_muon_options *options)
{
    tern_muon_options o = options ? *options : (tern_muon_options){0};
    const double numbers[] = {tern_option(o.weight_decay, 0.1), tern_option(o.momentum, 0.95),
                              tern_option(o.ns_a, 3.4445),      tern_option(o.ns_b, -4.775),
                              tern_option(o.ns_c, 2.0315),      tern_option(o.eps, 1e-7)};
    self = tern_optim_finish(self, numbers, 6, 1, TERN_OPTIM_MOMENTUM);
    settings *s = self ? tern_alloc(sizeof *s) : NULL;
    if (!s) {
        tern_optim_free(self);
        return NULL;
    }
    *s = (settings){o.ns_steps > 0 ? o.ns_steps : 5, o.no_nesterov, o.adjust_lr};
    self->data = s;
    return self;
}

OPTIM_CONSTRUCTORS(muon, tern_muon_options, muon, finish)
