/* sentence_file.c -- SentencePiece's .model files: a protobuf of the pieces, the training options
 * and the normalization. */
#include "models/tokenizer/maker.h"
#include <math.h>
#include <stdio.h>

enum { MOST_PIECES = 1 << 24, MOST_BYTES = 65535 };

/* ---- protobuf ---------------------------------------------------------------------------- */

/* The unread bytes of a message. */
typedef struct message {
    const unsigned char *at, *end;
} message;

/* A field: an integer, the bits of a float, or bytes. */
typedef struct field {
    uint64_t number, value;
    unsigned wire;
    message bytes;
} field;

static bool next_number(message *m, uint64_t *x)
{
    *x = 0;
    for (unsigned shift = 0; m->at < m->end && shift < 70; shift += 7) {
        const unsigned char c = *m->at++;
        *x |= shift < 64 ? (uint64_t)(c & 127) << shift : 0;
        if (c < 128)
            return true;
    }
    return false;
}

/* Reads a field from a message that has bytes left; returns false if the bytes are invalid. */
static bool next_field(message *m, field *f)
{
    uint64_t tag;
    if (!next_number(m, &tag))
        return false;
    *f = (field){.number = tag >> 3, .wire = (unsigned)(tag & 7)};
    if (f->wire == 0)
        return f->number && next_number(m, &f->value);
    const size_t left = (size_t)(m->end - m->at);
    size_t n = f->wire == 5 ? 4 : 8;
    if (f->wire == 2) {
        if (!next_number(m, &f->value) || f->value > (size_t)(m->end - m->at))
            return false;
        n = (size_t)f->value;
        f->bytes = (message){m->at, m->at + n};
    } else if ((f->wire != 5 && f->wire != 1) || left < n) {
        return false;
    }
    for (size_t i = 0; f->wire == 5 && i < 4; i++)
        f->value |= (uint64_t)m->at[i] << 8 * i;
    m->at += n;
    return f->number != 0;
}

bool tk_is_sentence_piece(const char *bytes, size_t n)
{
    message m = {(const unsigned char *)bytes, (const unsigned char *)bytes + n};
    field f;
    bool pieces = false;
    if (n < 2 || bytes[0] != 0x0a)
        return false;
    while (m.at < m.end) {
        if (!next_field(&m, &f) ||
            ((f.number == 1 || f.number == 2 || f.number == 3) && f.wire != 2))
            return false;
        pieces = pieces || f.number == 1;
    }
    return pieces;
}

/* ---- the messages ------------------------------------------------------------------------ */

typedef struct model_file {
    tk_maker m;
    int64_t type; /* 1: unigram, 2: BPE */
    char surface[256];
} model_file;

static tern_status bad(const model_file *f, const char *what)
{
    return tern_fail(TERN_ERR_IO, "%s: a SentencePiece model: %s", f->m.where, what);
}

static int64_t whole(const field *f)
{
    return (int32_t)(uint32_t)f->value;
}

static tern_status read_piece(model_file *to, size_t i, message piece)
{
    field f;
    tk_text_of text = {"", 0};
    int64_t type = TK_NORMAL;
    float score = 0;
    while (piece.at < piece.end) {
        if (!next_field(&piece, &f))
            return bad(to, "a piece is cut off");
        if (f.number == 1 && f.wire == 2)
            text = (tk_text_of){(const char *)f.bytes.at, (size_t)(f.bytes.end - f.bytes.at)};
        const uint32_t bits = (uint32_t)f.value;
        if (f.number == 2 && f.wire == 5)
            memcpy(&score, &bits, sizeof score);
        if (f.number == 3 && f.wire == 0)
            type = whole(&f);
    }
    if (!text.n || text.n > MOST_BYTES || type < TK_NORMAL || type > TK_BYTE || !isfinite(score) ||
        tk_utf8_end(text.text, text.n) != text.n || memchr(text.text, 0, text.n))
        return tern_fail(TERN_ERR_IO,
                         "%s: a SentencePiece model: piece %zu is '%.*s' of type %lld with score "
                         "%g: 1 to 65535 bytes of UTF-8, type 1 to 6 and a number are expected",
                         to->m.where, i, text.n < 80 ? (int)text.n : 80, text.text, (long long)type,
                         (double)score);
    to->m.v.types[i] = (int32_t)type;
    to->m.v.scores[i] = score;
    return tk_vocabulary_set(to->m.where, "a SentencePiece model", &to->m.v, i, text);
}

static tern_status read_training(model_file *to, message m)
{
    field f;
    while (m.at < m.end) {
        if (!next_field(&m, &f))
            return bad(to, "trainer_spec is cut off");
        const size_t n = (size_t)(f.bytes.end - f.bytes.at);
        if (f.number == 44 && f.wire == 2 && n < sizeof to->surface &&
            tk_utf8_end((const char *)f.bytes.at, n) == n) {
            memcpy(to->surface, f.bytes.at, n);
            to->surface[n] = 0;
        }
        if (f.wire != 0)
            continue;
        int64_t *const ids[] = {&to->m.unknown, &to->m.bos, &to->m.eos, &to->m.pad};
        if (f.number >= 40 && f.number <= 43)
            *ids[f.number - 40] = whole(&f);
        if (f.number == 3)
            to->type = whole(&f);
        if (f.number == 24)
            to->m.behind = f.value != 0;
        if (f.number == 35)
            to->m.byte_fallback = f.value != 0;
    }
    return TERN_OK;
}

static tern_status read_normalizer(model_file *to, message m)
{
    field f;
    while (m.at < m.end) {
        if (!next_field(&m, &f))
            return bad(to, "normalizer_spec is cut off");
        if (f.number == 2 && f.wire == 2) {
            to->m.charsmap = f.bytes.at;
            to->m.n_charsmap = (size_t)(f.bytes.end - f.bytes.at);
        }
        if (f.number == 3 && f.wire == 0)
            to->m.space = f.value != 0;
        if (f.number == 4 && f.wire == 0)
            to->m.spaces_once = f.value != 0;
        if (f.number == 5 && f.wire == 0 && !f.value)
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "%s: a SentencePiece model whose escape_whitespaces is false is not "
                             "supported",
                             to->m.where);
    }
    return TERN_OK;
}

static tern_status read_fields(model_file *to, message all)
{
    field f;
    size_t count = 0;
    for (message m = all; m.at < m.end && next_field(&m, &f);)
        count += f.number == 1;
    if (count > MOST_PIECES)
        return bad(to, "there are more than 2^24 pieces");
    TK_TRY(tk_vocabulary_reserve(to->m.where, &to->m.v, count, true));
    for (count = 0; all.at < all.end;) {
        if (!next_field(&all, &f))
            return bad(to, "a field is cut off");
        if (f.wire != 2)
            continue;
        if (f.number == 1)
            TK_TRY(read_piece(to, count++, f.bytes));
        if (f.number == 2)
            TK_TRY(read_training(to, f.bytes));
        if (f.number == 3)
            TK_TRY(read_normalizer(to, f.bytes));
        if (f.number == 5 && f.bytes.at < f.bytes.end) {
            message denormalizer = f.bytes;
            while (denormalizer.at < denormalizer.end && next_field(&denormalizer, &f))
                if (f.number == 2 && f.wire == 2 && f.value)
                    return tern_fail(TERN_ERR_UNSUPPORTED,
                                     "%s: a SentencePiece model whose denormalizer_spec has a "
                                     "charsmap is not supported",
                                     to->m.where);
        }
    }
    return TERN_OK;
}

/* ---- checks -------------------------------------------------------------------------------- */

/* Sets ids without a piece to -1; the unknown id is that of the piece of type TK_UNKNOWN. */
static tern_status check_ids(model_file *f)
{
    int64_t *const ids[] = {&f->m.bos, &f->m.eos, &f->m.pad};
    int64_t unknown = -1;
    for (size_t i = 0; i < f->m.v.n; i++)
        if (f->m.v.types[i] == TK_UNKNOWN) {
            if (unknown >= 0)
                return bad(f, "two pieces are of type unknown");
            unknown = (int64_t)i;
        }
    if (unknown < 0)
        return bad(f, "no piece is of type unknown");
    f->m.unknown = unknown;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (*ids[i] >= (int64_t)f->m.v.n ||
            (*ids[i] >= 0 && f->m.v.types[*ids[i]] != TK_CONTROL && *ids[i] != unknown))
            *ids[i] = -1;
    return TERN_OK;
}

static tern_status check_bytes(const model_file *f)
{
    for (unsigned byte = 0; byte < 256 && f->m.byte_fallback; byte++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", byte);
        int64_t id = tk_vocab_find(&f->m.v.table, text, 6);
        if (id < 0 || f->m.v.types[id] != TK_BYTE)
            return bad(f, "byte_fallback is true, and not all of <0x00> to <0xFF> are pieces");
    }
    for (size_t i = 0; i < f->m.v.n; i++)
        if (f->m.v.types[i] == TK_BYTE &&
            (f->m.v.tokens[i].n != 6 || strncmp(f->m.v.tokens[i].text, "<0x", 3) != 0))
            return bad(f, "a piece of type byte is not called <0x00> to <0xFF>");
    return TERN_OK;
}

/* Sets add_bos and add_eos; without a config by Llama's rule for BPE and T5's for unigram
 * models. */
static void read_config(model_file *f, const json_t *config)
{
    f->m.add_bos = tk_bool(config, "add_bos_token", f->type == 2) && f->m.bos >= 0;
    f->m.add_eos = tk_bool(config, "add_eos_token", f->type == 1) && f->m.eos >= 0;
}

/* Refuses models whose classes in transformers use other ids or splits. */
static tern_status check_class(const model_file *f, const json_t *config)
{
    static const char *const known[] = {"Llama", "CodeLlama", "Gemma", "T5", "PreTrained"};
    const char *name = json_string_value(json_object_get(config, "tokenizer_class"));
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (strncmp(name, known[i], strlen(known[i])) == 0)
            return TERN_OK;
    return !name ? TERN_OK
                 : tern_fail(TERN_ERR_UNSUPPORTED,
                             "%s: tokenizer_class is %.80s, whose ids are not those of the "
                             "SentencePiece model: its tokenizer.json is expected",
                             f->m.where, name);
}

static tern_status make(model_file *f, message all, const json_t *config)
{
    TK_TRY(check_class(f, config));
    TK_TRY(read_fields(f, all));
    TK_TRY(check_ids(f));
    TK_TRY(check_bytes(f));
    if (f->type != 1 && f->type != 2)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: a SentencePiece model of type %s: unigram or bpe is supported",
                         f->m.where,
                         f->type == 3   ? "word"
                         : f->type == 4 ? "char"
                                        : "unknown");
    tk_score_range(&f->m);
    read_config(f, config);
    return f->type == 2 ? tk_make_llama(&f->m) : tk_make_t5(&f->m);
}

tern_tokenizer *tk_read_sentence_piece(const char *where, const char *path, const char *bytes,
                                       size_t n, const tk_settings *settings)
{
    model_file f = {
        .m = {.where = where, .bos = 1, .eos = 2, .pad = -1, .space = true, .spaces_once = true},
        .type = 1,
        .surface = " \xe2\x81\x87 "};
    const message all = {(const unsigned char *)bytes, (const unsigned char *)bytes + n};
    (void)path;
    f.m.surface = f.surface;
    tern_tokenizer *t = tk_make(&f.m, make(&f, all, settings->config));
    if (t && tk_make_sentence(&f.m, t) != TERN_OK) {
        tern_tokenizer_free(t);
        t = NULL;
    }
    tk_maker_free(&f.m);
    return t;
}
