/* word_pieces.c -- BERT's WordPiece: the tokenizer.json of a list of tokens, and vocab.txt
 * files. */
#include "models/tokenizer/maker.h"

#define MARK "\xe2\x96\x81" /* replaces a space */

/* Converts the spelling of GGUF files: "word" has a leading mark there, and "##ing" no ##. */
static void put_word_pieces(tk_maker *m)
{
    tk_out_text(&m->o, ",\"vocab\":{");
    for (size_t i = 0; i < m->v.n; i++) {
        const tk_text_of *t = &m->v.tokens[i];
        bool begins = t->n >= 3 && memcmp(t->text, MARK, 3) == 0;
        bool as_it_is = m->v.types[i] == TK_CONTROL || m->v.types[i] == TK_UNKNOWN ||
                        (t->n > 2 && t->text[0] == '[' && t->text[t->n - 1] == ']');
        tk_out_text(&m->o, i ? "," : "");
        if (as_it_is || begins)
            tk_out_quoted(&m->o, "", t->text + (as_it_is ? 0 : 3), t->n - (as_it_is ? 0 : 3));
        else
            tk_out_quoted(&m->o, "##", t->text, t->n);
        tk_out_text(&m->o, ":");
        tk_out_number(&m->o, (int64_t)i);
    }
    tk_out_text(&m->o, "}");
}

tern_status tk_make_bert(tk_maker *m)
{
    tk_make_added(m, true);
    tk_out_text(&m->o, ",\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
                       "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":");
    tk_out_text(&m->o, m->lowercase ? "true" : "false");
    tk_out_text(&m->o, "},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}");
    tk_make_post(m, m->add_bos ? m->bos : -1, m->add_eos ? m->separator : -1, true);
    tk_out_text(&m->o, ",\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
                       "\"model\":{\"type\":\"WordPiece\"");
    tk_make_unknown(m);
    tk_out_text(&m->o, ",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100");
    if (m->marked)
        put_word_pieces(m);
    else
        tk_make_vocab(m);
    tk_out_text(&m->o, "}}");
    return m->o.status;
}

/* ---- vocab.txt --------------------------------------------------------------------------- */

/* Reads the next line; a carriage return and spaces at its end are no part of the token. */
static size_t next_line(const char *bytes, size_t n, size_t *at, tk_text_of *line)
{
    const char *end = memchr(bytes + *at, '\n', n - *at);
    size_t from = *at, to = end ? (size_t)(end - bytes) : n;
    *at = end ? to + 1 : n;
    while (to > from && (bytes[to - 1] == '\r' || bytes[to - 1] == ' '))
        to--;
    *line = (tk_text_of){bytes + from, to - from};
    return line->n;
}

static tern_status read_lines(tk_maker *m, const char *bytes, size_t n)
{
    static const char *const control[] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
    size_t lines = 0, i = 0;
    tk_text_of line;
    for (size_t at = 0; at < n; lines++)
        next_line(bytes, n, &at, &line);
    TK_TRY(tk_vocabulary_reserve(m->where, &m->v, lines, false));
    for (size_t at = 0; at < n; i++) {
        next_line(bytes, n, &at, &line);
        if (tk_utf8_end(line.text, line.n) != line.n || memchr(line.text, 0, line.n))
            return tern_fail(TERN_ERR_IO, "%s: line %zu is not UTF-8, or has a zero byte in it",
                             m->where, i + 1);
        if (line.n)
            TK_TRY(tk_vocabulary_set(m->where, "a vocab.txt", &m->v, i, line));
    }
    int64_t *const ids[] = {&m->unknown, &m->bos, &m->separator, &m->pad};
    for (size_t k = 0; k < sizeof control / sizeof *control; k++) {
        int64_t id = tk_vocab_find(&m->v.table, control[k], strlen(control[k]));
        if (id < 0 && k < 3)
            return tern_fail(TERN_ERR_IO, "%s: a vocab.txt: %s is in none of its %zu lines",
                             m->where, control[k], lines);
        if (k < sizeof ids / sizeof *ids)
            *ids[k] = id;
        if (id >= 0)
            m->v.types[id] = TK_CONTROL;
    }
    return TERN_OK;
}

tern_tokenizer *tk_read_word_list(const char *where, const char *path, const char *bytes, size_t n,
                                  const tk_settings *settings)
{
    tk_maker m = {.where = where, .eos = -1, .add_bos = true, .add_eos = true};
    (void)path;
    m.lowercase = tk_bool(settings->config, "do_lower_case", true);
    tern_status status = read_lines(&m, bytes, n);
    if (status == TERN_OK)
        status = tk_make_bert(&m);
    tern_tokenizer *t = tk_make(&m, status);
    if (t)
        t->eos_id = m.separator;
    tk_maker_free(&m);
    return t;
}
