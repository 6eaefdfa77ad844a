/* unicode.c -- characters: UTF-8, classes, lowercase, normal forms. */
#include "models/tokenizer/internal.h"
#include <utf8proc.h>

/* ---- UTF-8 --------------------------------------------------------------------------------- */

uint32_t tk_next(const char *text, size_t *at)
{
    const unsigned char *c = (const unsigned char *)text + *at;
    if (c[0] < 0x80)
        return *at += 1, c[0];
    if (c[0] < 0xe0)
        return *at += 2, (c[0] & 31u) << 6 | (c[1] & 63u);
    if (c[0] < 0xf0)
        return *at += 3, (c[0] & 15u) << 12 | (c[1] & 63u) << 6 | (c[2] & 63u);
    return *at += 4, (c[0] & 7u) << 18 | (c[1] & 63u) << 12 | (c[2] & 63u) << 6 | (c[3] & 63u);
}

size_t tk_put(uint32_t c, char bytes[4])
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)bytes);
}

size_t tk_utf8_end(const char *text, size_t n)
{
    const unsigned char *c = (const unsigned char *)text;
    for (size_t at = 0, more; at < n; at += more + 1) {
        more = c[at] < 0x80 ? 0 : c[at] < 0xe0 ? 1 : c[at] < 0xf0 ? 2 : 3;
        if (c[at] >= 0xf5 || (c[at] >= 0x80 && c[at] < 0xc2) || more >= n - at)
            return at;
        unsigned char low = c[at] == 0xe0 ? 0xa0 : c[at] == 0xf0 ? 0x90 : 0x80;
        unsigned char high = c[at] == 0xed ? 0x9f : c[at] == 0xf4 ? 0x8f : 0xbf;
        for (size_t i = 1; i <= more; i++, low = 0x80, high = 0xbf)
            if (c[at + i] < low || c[at + i] > high)
                return at;
    }
    return n;
}

/* ---- classes ------------------------------------------------------------------------------- */

/* Whether the general category of c is one of those whose bits are set. */
static bool is_of(uint32_t c, uint32_t categories)
{
    return categories >> utf8proc_category((utf8proc_int32_t)c) & 1;
}

#define BIT(category) (1u << UTF8PROC_CATEGORY_##category)
static const uint32_t marks = BIT(MN) | BIT(MC) | BIT(ME);

bool tk_is_white(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

bool tk_is_punctuation(uint32_t c)
{
    if (c < 128)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
               (c >= 123 && c <= 126);
    return is_of(c, BIT(PC) | BIT(PD) | BIT(PS) | BIT(PE) | BIT(PI) | BIT(PF) | BIT(PO));
}

bool tk_is_numeric(uint32_t c)
{
    return is_of(c, BIT(ND) | BIT(NL) | BIT(NO));
}

bool tk_is_word(uint32_t c)
{
    bool circled =
        (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f189 && (c - 0x1f130) % 32 < 26);
    return circled || c == 0x200c || c == 0x200d ||
           is_of(c, marks | BIT(LU) | BIT(LL) | BIT(LT) | BIT(LM) | BIT(LO) | BIT(ND) | BIT(NL) |
                        BIT(PC));
}

bool tk_is_other(uint32_t c)
{
    return is_of(c, BIT(CC) | BIT(CF) | BIT(CO) | BIT(CS));
}

bool tk_is_mark(uint32_t c)
{
    return is_of(c, marks);
}

bool tk_is_nonspacing(uint32_t c)
{
    return is_of(c, BIT(MN));
}

int tk_lower(uint32_t c, uint32_t to[2])
{
    to[1] = 0x307; /* used for U+0130, the one letter that becomes two */
    to[0] = c == 0x130 ? 'i' : (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return c == 0x130 ? 2 : 1;
}

/* GPT-2's alphabet: printable bytes of Latin-1 stand for themselves, the others for U+0100 and
 * up. */
static bool is_printable(uint32_t b)
{
    return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
}

uint32_t tk_byte_to_char(uint8_t byte)
{
    /* Counts the unprintable bytes before this one: 33 up to the space, 34 from 0x7f to 0xa0, and
     * 0xad. */
    return is_printable(byte) ? byte
           : byte <= 32       ? 256u + byte
           : byte == 0xad     ? 323u
                              : byte - 127u + 289u;
}

int tk_char_to_byte(uint32_t c)
{
    if (c < 256)
        return is_printable(c) ? (int)c : -1;
    return c > 323 ? -1 : c == 323 ? 0xad : c <= 288 ? (int)c - 256 : (int)c - 289 + 127;
}

/* ---- changes ------------------------------------------------------------------------------- */

tern_status tk_changes_add(tk_changes *to, uint32_t c, int32_t change)
{
    TK_TRY(TK_RESERVE(to->list, to->capacity, to->n, 1));
    to->list[to->n++] = (tk_change){c, change};
    return TERN_OK;
}

tern_status tk_transform(const tk_text *from, const tk_changes *list, size_t dropped, tk_text *to)
{
    size_t at = 0;
    for (; dropped > 0 && at < from->n; dropped--)
        tk_next(from->data, &at);
    for (size_t i = 0; i < list->n; i++) {
        char bytes[4];
        int32_t change = list->list[i].change;
        tk_range origin = {0, 0};
        if (change <= 0 && at < from->n)
            origin = from->origin[at];
        else if (at > 0)
            origin = from->origin[at - 1];
        else if (from->n)
            origin = (tk_range){from->origin[0].from, from->origin[0].from};
        for (int32_t k = change; k <= 0 && at < from->n; k++)
            tk_next(from->data, &at);
        TK_TRY(tk_text_add_at(to, bytes, tk_put(list->list[i].c, bytes), origin));
    }
    return TERN_OK;
}

/* ---- normal forms -------------------------------------------------------------------------- */

static int class_of(uint32_t c)
{
    return c < 0x300 ? 0 : utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
}

/* Sorts marks by combining class; the order within a class is kept. */
static tern_status order(tk_change *list, size_t n)
{
    size_t at[257] = {0};
    if (n < 2)
        return TERN_OK;
    tk_change *copy = malloc(n * sizeof *copy);
    if (!copy)
        return tern_fail(TERN_ERR_MEMORY, "tern_tokenizer: no memory for %zu characters", n);
    memcpy(copy, list, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        at[class_of(copy[i].c) + 1]++;
    for (int k = 0; k < 256; k++)
        at[k + 1] += at[k];
    for (size_t i = 0; i < n; i++)
        list[at[class_of(copy[i].c)]++] = copy[i];
    free(copy);
    return TERN_OK;
}

static tern_status decompose(const char *text, size_t n, bool compatible, tk_changes *to)
{
    size_t start = to->n;
    utf8proc_option_t options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    for (size_t at = 0; at < n;) {
        utf8proc_int32_t parts[32];
        int last;
        uint32_t c = tk_next(text, &at);
        utf8proc_ssize_t count = 1;
        parts[0] = (utf8proc_int32_t)c;
        if (c >= 0xa0)
            count = utf8proc_decompose_char(parts[0], parts, 32, options, &last);
        for (utf8proc_ssize_t i = 0; i < count && i < 32; i++) {
            if (class_of((uint32_t)parts[i]) == 0) {
                if (to->n > start)
                    TK_TRY(order(to->list + start, to->n - start));
                start = to->n + 1;
            }
            TK_TRY(tk_changes_add(to, (uint32_t)parts[i], i > 0));
        }
    }
    return to->n > start ? order(to->list + start, to->n - start) : TERN_OK;
}

/* Returns the composition of a and b, or 0 if there is none. */
static uint32_t compose(uint32_t a, uint32_t b)
{
    utf8proc_int32_t both[2] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b};
    if (b < 0x300 || !(tk_is_mark(b) || (b >= 0x1100 && b < 0x1200)))
        return 0;
    return utf8proc_normalize_utf32(both, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1
               ? (uint32_t)both[0]
               : 0;
}

/* Composes in place: a starter composes with a mark unless a mark of the same or a higher class is
 * between them. */
static void compose_all(tk_changes *in)
{
    size_t starter = SIZE_MAX, n = 0;
    int last = -1; /* class of the last character kept since the starter; -1: none */
    for (size_t i = 0; i < in->n; i++) {
        tk_change c = in->list[i];
        int class = class_of(c.c);
        if (starter != SIZE_MAX && last < class) {
            uint32_t one = compose(in->list[starter].c, c.c);
            if (one) {
                in->list[starter].c = one;
                in->list[starter].change += c.change - 1;
                continue;
            }
        }
        in->list[n] = c;
        if (class == 0)
            starter = n, last = -1;
        else
            last = class;
        n++;
    }
    in->n = n;
}

tern_status tk_normal_form(const char *text, size_t n, bool composed, bool compatible,
                           tk_changes *to)
{
    TK_TRY(decompose(text, n, compatible, to));
    if (composed)
        compose_all(to);
    return TERN_OK;
}
