/* precompiled.c -- the table of replacements in sentencepiece models: darts-clone's double array of
 * byte strings, and the replacement texts, in base64. */
#include "models/tokenizer/maker.h"
#include <utf8proc.h>

/* bytes: the size of the array in bytes, its 32-bit units, and the zero-terminated replacement
 * texts. */
tern_status tk_precompiled_table(tk_step *step, const char *function, const void *bytes, size_t n)
{
    uint32_t size = 0;
    if (n >= 4)
        memcpy(&size, bytes, 4);
    if (n < 5 || size > n - 4 || size % 4 || (((const char *)bytes)[n - 1] != 0 && size != n - 4))
        return tern_fail(TERN_ERR_IO, "%s: precompiled_charsmap is not a table of %zu bytes",
                         function, n);
    step->n_table = size / 4;
    step->n_text = n - 4 - size;
    step->table = malloc(size + 1);
    step->text = tk_copy((const char *)bytes + 4 + size, step->n_text);
    if (!step->table || !step->text)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for %zu bytes", function, n);
    memcpy(step->table, (const char *)bytes + 4, size);
    return TERN_OK;
}

tern_status tk_precompiled_read(tk_step *step, const char *function, const json_t *json)
{
    size_t n;
    const char *text = tk_string(json, "precompiled_charsmap", &n);
    if (!text) /* null: nothing is replaced */
        return TERN_OK;
    uint8_t *bytes = malloc(n + 1);
    if (!bytes)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for %zu bytes", function, n);
    n = tk_base64(text, n, bytes);
    tern_status status =
        n == SIZE_MAX ? tern_fail(TERN_ERR_IO, "%s: precompiled_charsmap is not base64", function)
                      : tk_precompiled_table(step, function, bytes, n);
    free(bytes);
    return status;
}

#define OFFSET(unit) ((unit) >> 10 << (((unit)&512) >> 6))

/* Returns the replacement of a prefix of the n bytes, and the prefix's length; NULL if there is
 * none. The prefix is the longest one, or the shortest one, which Hugging Face's reader uses for
 * all n bytes. */
static const char *look_up(const tk_step *step, const char *key, size_t n, bool longest,
                           size_t *length)
{
    const uint32_t *units = step->table;
    const char *found = NULL;
    size_t at = 0;
    if (step->n_table == 0)
        return NULL;
    at ^= OFFSET(units[0]);
    for (size_t i = 0; i < n && (longest || !found); i++) {
        uint8_t c = (uint8_t)key[i];
        at ^= c;
        if (c == 0 || at >= step->n_table || (units[at] & 0x800000ffu) != c)
            break;
        bool leaf = units[at] >> 8 & 1;
        at ^= OFFSET(units[at]);
        uint32_t value = leaf && at < step->n_table ? units[at] & 0x7fffffffu : UINT32_MAX;
        if (value < step->n_text) {
            found = step->text + value;
            *length = i + 1;
        }
        if (leaf && !found)
            break;
    }
    return found;
}

const char *tk_precompiled_longest(const tk_step *step, const char *text, size_t n, size_t *length)
{
    return look_up(step, text, n, true, length);
}

/* Appends a replacement; its last changes account for the difference in the number of
 * characters. */
static tern_status put(const char *text, size_t old, tk_changes *list)
{
    size_t n = tk_utf8_end(text, strlen(text)), count = 0, i = 0;
    for (size_t at = 0; at < n; count++)
        tk_next(text, &at);
    for (size_t at = 0; at < n; i++) {
        uint32_t c = tk_next(text, &at);
        bool last = i + 1 == count;
        TK_TRY(tk_changes_add(list, c,
                              i >= old              ? 1
                              : last && old > count ? -(int32_t)(old - count)
                                                    : 0));
    }
    if (count == 0 && list->n) /* removed characters are counted with the character before */
        list->list[list->n - 1].change -= (int32_t)old;
    return TERN_OK;
}

static tern_status replace(const tk_step *step, const tk_text *in, tk_changes *list)
{
    for (size_t at = 0; at < in->n;) { /* by grapheme cluster */
        utf8proc_int32_t state = 0;
        size_t from = at, count = 1, length;
        for (uint32_t c = tk_next(in->data, &at); at < in->n; count++) {
            size_t next = at;
            uint32_t other = tk_next(in->data, &next);
            if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)c, (utf8proc_int32_t)other,
                                                 &state))
                break;
            c = other;
            at = next;
        }
        const char *text =
            at - from < 6 ? look_up(step, in->data + from, at - from, false, &length) : NULL;
        if (text) {
            TK_TRY(put(text, count, list));
            continue;
        }
        for (size_t one = from; one < at;) {
            size_t start = one;
            uint32_t c = tk_next(in->data, &one);
            text = look_up(step, in->data + start, one - start, false, &length);
            TK_TRY(text ? put(text, 1, list) : tk_changes_add(list, c, 0));
        }
    }
    return TERN_OK;
}

tern_status tk_precompiled(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out)
{
    tk_changes list = {0};
    (void)m;
    if (!step->table)
        return tk_text_add(out, in->data, in->n, in->origin);
    tern_status status = replace(step, in, &list);
    if (status == TERN_OK)
        status = tk_transform(in, &list, 0, out);
    free(list.list);
    return status;
}
