/* weight_norm.c -- weight norm, w = g v / ||v||, and spectral norm, w / sigma with sigma the
 * largest singular value of w (Salimans & Kingma 2016; Miyato et al. 2018). */
#include "base/option.h"
#include "nn/module.h"

/* Makes `name` a computed parameter from the members from number `first` on, if status is TERN_OK.
 * After an error removes these members and returns NULL. */
static tern_module *finish(tern_module *m, const char *name, tern_formula formula, int first,
                           tern_status status)
{
    if (status == TERN_OK && tern_nn_set_formula(m, name, formula))
        return m;
    while (m->count > first) {
        tern_release(m->members[m->count - 1].tensor);
        tern_nn_drop_member(m, m->count - 1);
    }
    return NULL;
}

/* ---- weight norm: g v / ||v|| -------------------------------------------------------------- */

static tern_tensor *weight_norm(tern_module *m, tern_member *weight)
{
    return tern_weight_norm(tern_nn_part(m, weight, "_v"), tern_nn_part(m, weight, "_g"),
                            weight->formula.dim);
}

/* Adds g = ||x|| over all dims except dim, and v = x, from which x is computed again. */
static tern_status add_norm_and_direction(tern_module *m, const char *name, tern_tensor *x, int dim)
{
    tern_tensor *g = NULL, *v = NULL;
    TERN_NO_GRAD {
        g = tern_norm_except_dim(x, 2, dim);
        v = tern_clone(x);
    }
    TERN_TRY(tern_nn_add_part(m, name, "_g", MEMBER_PARAMETER, g));
    return tern_nn_add_part(m, name, "_v", MEMBER_PARAMETER, v);
}

tern_module *tern_nn_weight_norm(tern_module *m, const char *name, int dim)
{
    name = name ? name : "weight";
    tern_tensor *x = tern_nn_to_compute(m, name, dim, "tern_nn_weight_norm");
    tern_status status = TERN_OK;
    if (!x)
        return NULL;
    int first = m->count;
    TERN_SCOPE
        status = add_norm_and_direction(m, name, x, dim);
    return finish(m, name, (tern_formula){.compute = weight_norm, .dim = dim}, first, status);
}

tern_module *tern_nn_remove_weight_norm(tern_module *m, const char *name)
{
    static const char *const suffixes[] = {"_g", "_v", NULL};
    return tern_nn_remove_formula(m, name ? name : "weight", weight_norm, suffixes,
                                  "tern_nn_remove_weight_norm");
}

/* ---- spectral norm: w / (u W v), u and v from power iterations ----------------------------- */

/* Returns w as a matrix: dim first, the other dims flattened. */
static tern_tensor *matrix_of(tern_tensor *w, int dim)
{
    tern_tensor *rows = dim > 0 ? tern_movedim(w, TERN_DIMS(dim), TERN_DIMS(0)) : w;
    return rows ? tern_reshape(rows, TERN_SHAPE(tern_size(rows, 0), -1)) : NULL;
}

/* Sets the i-th next value of a formula. */
static void set_next(tern_formula *f, int i, const char *suffix, tern_tensor *x)
{
    tern_release(f->next[i].x);
    f->next[i].suffix = suffix;
    f->next[i].x = tern_keep(x);
}

/* In training v = normalize(W^T u), u = normalize(W v); then sigma = u W v. The gradient flows
 * through sigma, with u and v as constants. */
static tern_tensor *spectral_norm(tern_module *m, tern_member *weight)
{
    tern_formula *f = &weight->formula;
    tern_tensor *w = tern_nn_part(m, weight, "_orig"), *matrix = matrix_of(w, f->dim);
    tern_tensor *u = tern_nn_part(m, weight, "_u"), *v = tern_nn_part(m, weight, "_v");
    tern_tensor *across = tern_transpose(matrix, 0, 1);
    TERN_NO_GRAD {
        if (!m->training) { /* a later forward in training may write u and v before this backward */
            u = tern_clone(u);
            v = tern_clone(v);
        }
        for (int i = 0; m->training && i < f->iterations; i++) {
            v = tern_normalize(tern_mv(across, u), 2, 0, f->eps);
            u = tern_normalize(tern_mv(matrix, v), 2, 0, f->eps);
        }
    }
    tern_tensor *y = tern_div(w, tern_dot(u, tern_mv(matrix, v)));
    if (y && m->training) {
        set_next(f, 0, "_u", u);
        set_next(f, 1, "_v", v);
    }
    return y;
}

/* Returns a random unit vector of the size of that dim of the matrix. */
static tern_tensor *random_direction(tern_tensor *matrix, int dim, double eps)
{
    tern_shape each = TERN_SHAPE(tern_size(matrix, dim));
    tern_tensor *x = tern_randn(each, tern_dtype_of(matrix), tern_device(matrix));
    return tern_normalize(x, 2, 0, eps);
}

static tern_status add_directions(tern_module *m, const char *name, tern_tensor *x, int dim,
                                  double eps)
{
    tern_tensor *copy = NULL, *u = NULL, *v = NULL;
    TERN_NO_GRAD {
        tern_tensor *matrix = matrix_of(x, dim);
        u = matrix ? random_direction(matrix, 0, eps) : NULL;
        v = u ? random_direction(matrix, 1, eps) : NULL;
        copy = tern_clone(x);
    }
    TERN_TRY(tern_nn_add_part(m, name, "_orig", MEMBER_PARAMETER, copy));
    TERN_TRY(tern_nn_add_part(m, name, "_u", MEMBER_BUFFER, u));
    return tern_nn_add_part(m, name, "_v", MEMBER_BUFFER, v);
}

tern_module *tern_nn_spectral_norm(tern_module *m, const char *name,
                                   const tern_spectral_norm_options *options)
{
    tern_spectral_norm_options o = tern_read_spectral_norm(options);
    tern_formula f = {
        .compute = spectral_norm, .dim = o.dim, .iterations = o.n_power_iterations, .eps = o.eps};
    name = name ? name : "weight";
    tern_tensor *x = tern_nn_to_compute(m, name, o.dim, "tern_nn_spectral_norm");
    tern_status status = TERN_OK;
    if (!x)
        return NULL;
    if (f.iterations < 1 || o.dim < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nn_spectral_norm: Expected n_power_iterations to be positive, "
                              "but got n_power_iterations=%d (dim %d)",
                              f.iterations, o.dim);
    int first = m->count;
    TERN_SCOPE
        status = add_directions(m, name, x, o.dim, f.eps);
    return finish(m, name, f, first, status);
}

tern_module *tern_nn_remove_spectral_norm(tern_module *m, const char *name)
{
    static const char *const suffixes[] = {"_orig", "_u", "_v", NULL};
    return tern_nn_remove_formula(m, name ? name : "weight", spectral_norm, suffixes,
                                  "tern_nn_remove_spectral_norm");
}
