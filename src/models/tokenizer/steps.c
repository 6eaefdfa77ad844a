/* steps.c -- reads the normalizers, pre-tokenizers and decoders of tokenizer.json by their type and
 * runs them in order. */
#include "models/tokenizer/internal.h"

/* ---- fields -------------------------------------------------------------------------------- */

bool tk_bool(const json_t *json, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(json, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

int64_t tk_int(const json_t *json, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(json, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

const char *tk_string(const json_t *json, const char *key, size_t *n)
{
    const json_t *value = json_object_get(json, key);
    *n = json_string_length(value);
    return json_string_value(value);
}

tern_status tk_need_text(const char *function, const json_t *json, const char *key, char **text,
                         size_t *n)
{
    const char *found = tk_string(json, key, n);
    if (!found)
        return tern_fail(TERN_ERR_IO, "%s: %s needs \"%s\", a text", function,
                         json_string_value(json_object_get(json, "type")), key);
    free(*text);
    *text = tk_copy(found, *n);
    return *text ? TERN_OK : TERN_ERR_MEMORY;
}

tern_status tk_need_char(const char *function, const json_t *json, const char *key,
                         uint32_t otherwise, uint32_t *c)
{
    size_t n, at = 0;
    const char *text = tk_string(json, key, &n);
    *c = otherwise;
    if (text && n)
        *c = tk_next(text, &at);
    if (at == n && (text || otherwise))
        return TERN_OK;
    return tern_fail(TERN_ERR_IO, "%s: %s needs \"%s\", a text of one character", function,
                     json_string_value(json_object_get(json, "type")), key);
}

/* ---- reading ------------------------------------------------------------------------------- */

void tk_step_free(tk_step *step)
{
    if (!step)
        return;
    for (size_t i = 0; i < step->n_steps; i++)
        tk_step_free(step->steps[i]);
    free(step->steps);
    tk_pattern_free(step->pattern);
    free(step->text);
    free(step->other);
    free(step->table);
    free(step);
}

static tern_status read_step(const char *function, const char *what, const tk_kind *kinds,
                             const json_t *json, int depth, tk_step **out);

static tern_status read_sequence(const char *function, const char *what, const tk_kind *kinds,
                                 const json_t *json, int depth, tk_step *step)
{
    const char *const keys[] = {"normalizers", "pretokenizers", "decoders"};
    const json_t *list = NULL;
    for (int i = 0; i < 3 && !list; i++)
        list = json_object_get(json, keys[i]);
    if (!json_is_array(list))
        return tern_fail(TERN_ERR_IO, "%s: a Sequence of the %s has no list", function, what);
    step->steps = calloc(json_array_size(list) + 1, sizeof *step->steps);
    if (!step->steps)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for the %s", function, what);
    for (; step->n_steps < json_array_size(list); step->n_steps++)
        TK_TRY(read_step(function, what, kinds, json_array_get(list, step->n_steps), depth + 1,
                         &step->steps[step->n_steps]));
    return TERN_OK;
}

static tern_status read_step(const char *function, const char *what, const tk_kind *kinds,
                             const json_t *json, int depth, tk_step **out)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    tern_status status = TERN_OK;
    *out = NULL;
    if (!type || depth > 16)
        return tern_fail(TERN_ERR_IO, "%s: the %s %s", function, what,
                         type ? "is nested too deeply" : "has no \"type\"");
    while (kinds->type && strcmp(kinds->type, type) != 0 && strcmp(type, "Sequence") != 0)
        kinds++;
    if (!kinds->type)
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: the %s is of type %s, which is not supported",
                         function, what, type);
    tk_step *step = calloc(1, sizeof *step);
    if (!step)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for the %s", function, what);
    if (strcmp(type, "Sequence") == 0)
        status = read_sequence(function, what, kinds, json, depth, step);
    else
        step->kind = kinds, status = kinds->read ? kinds->read(step, function, json) : TERN_OK;
    if (status != TERN_OK)
        tk_step_free(step);
    else
        *out = step;
    return status;
}

tern_status tk_step_read(const char *function, const char *what, const tk_kind *kinds,
                         const json_t *json, tk_step **step)
{
    *step = NULL;
    return !json || json_is_null(json) ? TERN_OK : read_step(function, what, kinds, json, 0, step);
}

/* ---- running ------------------------------------------------------------------------------- */

tern_status tk_normalize(const tk_step *step, tk_matching *m, tk_text *value)
{
    tk_text next = {0};
    if (step && !step->kind) {
        for (size_t i = 0; i < step->n_steps; i++)
            TK_TRY(tk_normalize(step->steps[i], m, value));
        return TERN_OK;
    }
    if (!step)
        return TERN_OK;
    tern_status status = step->kind->normalize(step, m, value, &next);
    tk_text_free(value);
    *value = next;
    return status;
}

tern_status tk_split(const tk_step *step, tk_matching *m, tk_pieces *value)
{
    tk_pieces next = {0};
    if (step && !step->kind) {
        for (size_t i = 0; i < step->n_steps; i++)
            TK_TRY(tk_split(step->steps[i], m, value));
        return TERN_OK;
    }
    if (!step)
        return TERN_OK;
    tern_status status = step->kind->split(step, m, value, &next);
    tk_pieces_free(value);
    *value = next;
    return status;
}

tern_status tk_decode(const tk_step *step, tk_matching *m, tk_words *value)
{
    tk_words next = {0};
    if (step && !step->kind) {
        for (size_t i = 0; i < step->n_steps; i++)
            TK_TRY(tk_decode(step->steps[i], m, value));
        return TERN_OK;
    }
    if (!step)
        return TERN_OK;
    tern_status status = step->kind->decode(step, m, value, &next);
    tk_words_free(value);
    *value = next;
    return status;
}
