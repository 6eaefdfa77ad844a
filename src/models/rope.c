/* rope.c -- rotary position embeddings (Su et al. 2021) and their scaling to longer sequences. */
#include "models/model.h"
#include <string.h>

static const char *const type_names[] = {"",     "default",  "linear", "dynamic",
                                         "yarn", "longrope", "llama3"};

static double number(const json_t *rope, const char *name, double absent)
{
    const json_t *x = json_object_get(rope, name);
    return json_is_number(x) ? json_number_value(x) : absent;
}

static tern_status type_of(const models_model *m, const json_t *rope, models_rope_type *type)
{
    const json_t *name = json_object_get(rope, "rope_type");
    name = name ? name : json_object_get(rope, "type");
    const char *text = json_is_string(name) ? json_string_value(name) : "default";
    *type = strcmp(text, "su") == 0 ? ROPE_LONGROPE : ROPE_NONE;
    for (int i = ROPE_DEFAULT; i <= ROPE_LLAMA3; i++)
        if (strcmp(text, type_names[i]) == 0)
            *type = (models_rope_type)i;
    if (*type)
        return TERN_OK;
    return tern_fail(TERN_ERR_UNSUPPORTED,
                     "config.json of %s: rope_type \"%.40s\" is none of default, linear, dynamic, "
                     "yarn, longrope, llama3",
                     m->kind->name, text);
}

/* Refuses unknown fields, which could change the angles. */
static tern_status check_fields(const models_model *m, json_t *rope)
{
    static const char *const known[] = {"rope_type",
                                        "type",
                                        "rope_theta",
                                        "factor",
                                        "original_max_position_embeddings",
                                        "low_freq_factor",
                                        "high_freq_factor",
                                        "beta_fast",
                                        "beta_slow",
                                        "attention_factor",
                                        "mscale",
                                        "mscale_all_dim",
                                        "long_factor",
                                        "short_factor",
                                        "partial_rotary_factor",
                                        "max_position_embeddings",
                                        "truncate",
                                        NULL};
    const char *name;
    json_t *value;
    json_object_foreach(rope, name, value)
    {
        int i = 0;
        while (known[i] && strcmp(known[i], name) != 0)
            i++;
        if (!known[i] || (strcmp(name, "truncate") == 0 && !json_is_true(value)))
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "config.json of %s: `%s` of the rotary positions is not known",
                             m->kind->name, name);
    }
    return TERN_OK;
}

static tern_status check_factors(const models_model *m, const models_rope *r)
{
    size_t pairs = (size_t)((double)m->c.head_dim * r->partial / 2);
    if (r->type == ROPE_LONGROPE &&
        (json_array_size(r->long_factor) != pairs || json_array_size(r->short_factor) != pairs))
        return tern_fail(TERN_ERR_IO,
                         "config.json of %s: long_factor and short_factor are lists of %zu numbers",
                         m->kind->name, pairs);
    if (!(r->theta > 0) || !(r->factor > 0) || !(r->original > 0) || pairs < 1 ||
        pairs > MODELS_MOST_PAIRS)
        return tern_fail(TERN_ERR_IO,
                         "config.json of %s: rotary positions of theta %g, factor %g and %zu pairs",
                         m->kind->name, r->theta, r->factor, pairs);
    return TERN_OK;
}

/* Reads *r from rope, the object of the scaling's fields, or NULL. */
static tern_status read_from(const models_model *m, json_t *rope, double theta, models_rope *r)
{
    TRY(type_of(m, rope, &r->type));
    if (rope)
        TRY(check_fields(m, rope));
    r->theta = number(rope, "rope_theta", theta);
    r->partial = number(rope, "partial_rotary_factor", number(m->json, "partial_rotary_factor", 1));
    /* Phi-3 has original_max_position_embeddings outside rope_scaling. */
    double places = (double)(m->c.places ? m->c.places : 1);
    double outer = number(m->json, "original_max_position_embeddings", places);
    r->original = number(rope, "original_max_position_embeddings", outer);
    r->factor = number(rope, "factor", r->type == ROPE_LONGROPE ? places / r->original : 1);
    r->low = number(rope, "low_freq_factor", 1);
    r->high = number(rope, "high_freq_factor", 4);
    r->fast = number(rope, "beta_fast", 32);
    r->slow = number(rope, "beta_slow", 1);
    r->attention = number(rope, "attention_factor", 0);
    r->mscale = number(rope, "mscale", 0);
    r->mscale_all = number(rope, "mscale_all_dim", 0);
    r->long_factor = json_object_get(rope, "long_factor");
    r->short_factor = json_object_get(rope, "short_factor");
    return check_factors(m, r);
}

static json_t *object(const json_t *json, const char *name)
{
    json_t *x = json_object_get(json, name);
    return json_is_object(x) ? x : NULL;
}

tern_status models_read_rope(models_model *m, double theta)
{
    json_t *rope = object(m->json, "rope_parameters");
    rope = rope ? rope : object(m->json, "rope_scaling");
    return read_from(m, rope, number(m->json, "rope_theta", theta), &m->c.rope);
}

tern_status models_read_rope_of(models_model *m, const char *layers, const char *field,
                                double theta, bool scaled, models_rope *r)
{
    json_t *rope = object(object(m->json, "rope_parameters"), layers);
    rope = rope || !scaled ? rope : object(m->json, "rope_scaling");
    return read_from(m, rope, number(m->json, field, theta), r);
}

/* ---- frequencies ----------------------------------------------------------------------------- */

/* Llama 3.1: frequencies of wavelengths that are long relative to the trained length are divided by
 * the factor, high frequencies stay, and those between are interpolated. */
static double llama3(const models_rope *r, double f)
{
    double wave = 2 * M_PI / f, share;
    if (wave > r->original / r->low)
        return f / r->factor;
    if (wave < r->original / r->high)
        return f;
    share = (r->original / wave - r->low) / (r->high - r->low);
    return (1 - share) * f / r->factor + share * f;
}

/* Returns the (fractional) pair that turns `turns` times within the trained length (Peng et al.
 * 2023). */
static double pair_of(const models_rope *r, double turns, double dim)
{
    return dim * log(r->original / (turns * 2 * M_PI)) / (2 * log(r->theta));
}

static double yarn(const models_rope *r, double f, double i, double dim)
{
    double low = fmax(floor(pair_of(r, r->fast, dim)), 0);
    double high = fmin(ceil(pair_of(r, r->slow, dim)), dim - 1);
    double ramp = fmin(fmax((i - low) / fmax(high - low, 0.001), 0), 1);
    return f / r->factor * ramp + f * (1 - ramp);
}

static double mscale(double factor, double m)
{
    return factor <= 1 ? 1 : 0.1 * m * log(factor) + 1;
}

/* Returns the factor on cosines and sines. */
static double attention_factor(const models_rope *r)
{
    if (r->attention > 0)
        return r->attention;
    if (r->type == ROPE_YARN && r->mscale && r->mscale_all)
        return mscale(r->factor, r->mscale) / mscale(r->factor, r->mscale_all);
    if (r->type == ROPE_YARN)
        return mscale(r->factor, 1);
    if (r->type == ROPE_LONGROPE && r->factor > 1)
        return sqrt(1 + log(r->factor) / log(r->original));
    return 1;
}

double models_rope_frequencies(const models_config *c, const models_rope *r, int64_t length,
                               double *frequency)
{
    int64_t pairs = (int64_t)((double)c->head_dim * r->partial) / 2;
    double dim = 2 * (double)pairs, theta = r->theta, n = (double)length;
    if (r->type == ROPE_DYNAMIC && n > (double)c->places)
        theta *= pow(r->factor * n / (double)c->places - (r->factor - 1), dim / (dim - 2));
    for (int64_t i = 0; i < pairs; i++) {
        double f = pow(theta, -2 * (double)i / dim);
        if (r->type == ROPE_LINEAR)
            f /= r->factor;
        else if (r->type == ROPE_LLAMA3)
            f = llama3(r, f);
        else if (r->type == ROPE_YARN)
            f = yarn(r, f, (double)i, dim);
        else if (r->type == ROPE_LONGROPE)
            f /= json_number_value(
                json_array_get(n > r->original ? r->long_factor : r->short_factor, (size_t)i));
        frequency[i] = f;
    }
    return attention_factor(r);
}

/* Angles are float32, as in transformers, whatever the dtype of the model. */
tern_status models_rope_tables(const models_config *c, const models_rope *r, tern_tensor *positions,
                               int64_t length, tern_tensor **cos, tern_tensor **sin)
{
    double frequency[MODELS_MOST_PAIRS];
    float single[MODELS_MOST_PAIRS];
    double factor = models_rope_frequencies(c, r, length, frequency);
    int64_t pairs = (int64_t)((double)c->head_dim * r->partial) / 2;
    for (int64_t i = 0; i < pairs; i++)
        single[i] = (float)frequency[i];
    tern_tensor *f = tern_from_data(single, TERN_SHAPE(pairs), TERN_F32, tern_device(positions));
    tern_tensor *angles = tern_mul(tern_unsqueeze(tern_to_dtype(positions, TERN_F32), -1), f);
    *cos = tern_cos(angles);
    *sin = tern_sin(angles);
    if (factor != 1) {
        *cos = tern_mul_scalar(*cos, tern_scalar_real(factor));
        *sin = tern_mul_scalar(*sin, tern_scalar_real(factor));
    }
    return *cos && *sin ? TERN_OK : tern_last_status();
}
