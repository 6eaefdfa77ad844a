/* structure.c -- trees of a file's parts: made, written, changed (structure.h). */
#include "structure.h"
#include "../archive.h"
#include <stdio.h>

enum { CAPACITY = 1 << 28, MOST_BYTES = 1 << 18, MOST_PARTS = 1 << 15, MOST_DEPTH = 200 };

static uint8_t arena[CAPACITY]; /* of which a tree touches what it needs */
static size_t used;

void *structure_room(size_t n)
{
    n = (n + 15) & ~(size_t)15;
    if (n > CAPACITY - used) {
        fprintf(stderr, "fuzz_structure: a tree is too large\n");
        abort();
    }
    used += n;
    return memset(arena + used - n, 0, n);
}

void structure_clear(void)
{
    used = 0;
}

part *part_bytes(const void *at, size_t n)
{
    part *p = structure_room(sizeof *p);
    *p = (part){.kind = PART_BYTES, .content = {structure_room(n + 1), n}};
    if (n)
        memcpy(p->content.at, at, n);
    return p;
}

part *part_text(const char *text)
{
    return part_bytes(text, strlen(text));
}

part *part_number(int width, uint64_t value)
{
    part *p = structure_room(sizeof *p);
    *p = (part){.kind = PART_NUMBER, .width = width, .value = value};
    return p;
}

part *part_saying(int width, part_says says, part *of)
{
    part *p = part_number(width, 0);
    p->says = says;
    p->of = of;
    return p;
}

part *part_group(void)
{
    part *p = structure_room(sizeof *p);
    *p = (part){.kind = PART_GROUP};
    return p;
}

/* Room for one more at place i. */
static void insert(part *group, int i, part *child)
{
    if ((group->n & (group->n - 1)) == 0) {
        part **grown = structure_room(sizeof(part *) * (size_t)(2 * group->n + 1));
        if (group->n)
            memcpy(grown, group->children, sizeof(part *) * (size_t)group->n);
        group->children = grown;
    }
    memmove(group->children + i + 1, group->children + i, sizeof(part *) * (size_t)(group->n - i));
    group->children[i] = child;
    group->n++;
}

part *part_add(part *group, part *child)
{
    insert(group, group->n, child);
    return child;
}

/* ---- bytes of a tree ------------------------------------------------------------------------- */

static blob make(part *p, int depth);

static void forget(part *p)
{
    p->is_made = false;
    for (int i = 0; i < p->n; i++)
        forget(p->children[i]);
}

static uint64_t said(const part *p, int depth)
{
    if (p->lies || p->says == SAYS_VALUE)
        return p->value;
    const blob of = p->says == SAYS_COUNT ? (blob){NULL, 0} : make(p->of, depth + 1);
    const uint64_t n = of.n + (uint64_t)p->more;
    return p->says == SAYS_LENGTH       ? n
           : p->says == SAYS_COUNT      ? (uint64_t)(p->of->n + p->more)
           : p->says == SAYS_COMPLEMENT ? ~n
           : p->says == SAYS_CRC        ? archive_crc(of.at, of.n)
                                        : n << 3 | 1;
}

static blob make_number(const part *p, int depth)
{
    uint64_t x = said(p, depth);
    blob b = {structure_room(10), 0};
    if (p->width == 0) {
        do {
            b.at[b.n++] = (uint8_t)((x & 127) | (x > 127 ? 128 : 0));
            x >>= 7;
        } while (x);
        return b;
    }
    for (int i = 0; i < p->width; i++)
        b.at[p->big ? p->width - 1 - i : i] = (uint8_t)(i < 8 ? x >> 8 * i : 0);
    b.n = (size_t)p->width;
    return b;
}

static void put(blob *to, const void *from, size_t n)
{
    if (n)
        memcpy(to->at + to->n, from, n);
    to->n += n;
}

static blob make_group(const part *p, int depth)
{
    const char *open = p->open ? p->open : "", *close = p->close ? p->close : "";
    const char *between = p->between ? p->between : "";
    size_t n = strlen(open) + strlen(close) + (size_t)p->align;
    for (int i = 0; i < p->n; i++)
        n += make(p->children[i], depth + 1).n + strlen(between);
    if (p->wrap)
        return p->wrap(p);
    if (n > MOST_BYTES)
        return (blob){arena, 0};
    blob b = {structure_room(n + 1), 0};
    put(&b, open, strlen(open));
    for (int i = 0; i < p->n; i++) {
        if (i)
            put(&b, between, strlen(between));
        put(&b, p->children[i]->made.at, p->children[i]->made.n);
    }
    put(&b, close, strlen(close));
    while (p->align && b.n % (size_t)p->align)
        put(&b, "", 1);
    return b;
}

static blob make(part *p, int depth)
{
    if (p->is_made || depth > MOST_DEPTH)
        return p->is_made ? p->made : (p->made = (blob){arena, 0});
    p->is_made = true;
    p->made = (blob){arena, 0};
    p->made = p->kind == PART_BYTES    ? p->content
              : p->kind == PART_NUMBER ? make_number(p, depth)
                                       : make_group(p, depth);
    return p->made;
}

blob structure_make(part *root)
{
    forget(root);
    return make(root, 0);
}

/* ---- changes --------------------------------------------------------------------------------- */

uint64_t structure_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static part *list[MOST_PARTS];
static int n_list;

static void add_all(part *p)
{
    if (n_list < MOST_PARTS)
        list[n_list++] = p;
    for (int i = 0; i < p->n; i++)
        add_all(p->children[i]);
}

static part *any(uint64_t *random)
{
    return list[structure_random(random) % (uint64_t)n_list];
}

/* A copy, whose numbers say of the copied parts what they said of the parts. */
typedef struct copied {
    const part *from;
    part *to;
} copied;

static part *copy(const part *p, copied *pairs, int *n)
{
    part *to = structure_room(sizeof *to);
    *to = *p;
    to->children = NULL;
    to->n = 0;
    if (*n < MOST_PARTS)
        pairs[(*n)++] = (copied){p, to};
    for (int i = 0; i < p->n; i++)
        part_add(to, copy(p->children[i], pairs, n));
    return to;
}

static part *copy_of(const part *p)
{
    static copied pairs[MOST_PARTS];
    int n = 0;
    part *to = copy(p, pairs, &n);
    for (int i = 0; i < n && n < 512; i++)
        for (int k = 0; pairs[i].to->of && k < n; k++)
            if (pairs[k].from == pairs[i].to->of) {
                pairs[i].to->of = pairs[k].to;
                break;
            }
    return to;
}

/* How many parts there are below p, itself too. */
static int weight(const part *p)
{
    int n = 1;
    for (int i = 0; i < p->n; i++)
        n += weight(p->children[i]);
    return n;
}

static void change_number(part *p, uint64_t *random)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   2,
                                   3,
                                   7,
                                   8,
                                   16,
                                   31,
                                   32,
                                   33,
                                   63,
                                   64,
                                   127,
                                   128,
                                   255,
                                   256,
                                   1000,
                                   32767,
                                   32768,
                                   65535,
                                   65536,
                                   0x7ffffff0,
                                   0x7fffffff,
                                   0x80000000,
                                   0xfffffffe,
                                   0xffffffff,
                                   0x100000000,
                                   0x100000001,
                                   UINT64_C(1) << 61,
                                   UINT64_C(1) << 62,
                                   INT64_MAX,
                                   UINT64_C(1) << 63,
                                   UINT64_MAX - 7,
                                   UINT64_MAX};
    uint64_t old = p->lies || p->says == SAYS_VALUE ? p->value : said(p, 0);
    switch (structure_random(random) % 6) {
    case 0:
        old += structure_random(random) % 9 - 4;
        break;
    case 1:
        old ^= UINT64_C(1) << structure_random(random) % 64;
        break;
    case 2:
        old *= 1 + structure_random(random) % 4;
        break;
    case 3:
        old = any(random)->value;
        break;
    default:
        old = odd[structure_random(random) % (sizeof odd / sizeof *odd)];
    }
    p->value = old;
    p->lies = true;
}

static void change_bytes(part *p, const char *const *words, uint64_t *random)
{
    blob old = p->content;
    size_t n_words = 0, at = old.n ? structure_random(random) % old.n : 0;
    while (words && words[n_words])
        n_words++;
    switch (structure_random(random) % 6) {
    case 0:
        if (old.n)
            old.at[at] = (uint8_t)structure_random(random);
        break;
    case 1:
        p->content.n = at;
        break;
    case 2: { /* longer */
        const size_t more = (size_t)1 << structure_random(random) % 12;
        p->content = (blob){structure_room(old.n + more), old.n + more};
        memcpy(p->content.at, old.at, old.n);
        if (old.n && structure_random(random) % 2)
            memset(p->content.at + old.n, old.at[at], more);
        break;
    }
    case 3: {
        const part *other = any(random);
        if (other->kind == PART_BYTES)
            p->content = part_bytes(other->content.at, other->content.n)->content;
        break;
    }
    default:
        if (n_words) {
            const char *word = words[structure_random(random) % n_words];
            p->content = part_text(word)->content;
        }
    }
}

static void change_group(part *p, uint64_t *random)
{
    const uint64_t what = structure_random(random) % 8;
    const int at = p->n ? (int)(structure_random(random) % (uint64_t)p->n) : 0;
    if (what == 0 && p->n) {
        memmove(p->children + at, p->children + at + 1, sizeof(part *) * (size_t)(p->n - at - 1));
        p->n--;
    } else if (what == 1 && p->n) {
        static const int times[] = {1, 1, 1, 2, 15, 70, 300};
        int k = times[structure_random(random) % (sizeof times / sizeof *times)];
        for (const int each = weight(p->children[at]); k > 0 && each * k < 4000; k--)
            insert(p, at, copy_of(p->children[at]));
    } else if (what == 2 && p->n) {
        const int other = (int)(structure_random(random) % (uint64_t)p->n);
        part *swapped = p->children[at];
        p->children[at] = p->children[other];
        p->children[other] = swapped;
    } else if (what == 3 || what == 4) {
        const part *other = any(random);
        if (weight(other) < 2000)
            insert(p, p->n ? at : 0, copy_of(other));
    } else if (what == 5) { /* inside of itself, again and again */
        int k = (int)(structure_random(random) % 40);
        for (const int each = weight(p); k > 0 && each * k > 2000;)
            k /= 2;
        for (part *inner = p; k > 0; k--) {
            part *within = copy_of(inner);
            insert(inner, inner->n ? at % inner->n : 0, within);
            inner = within;
            if (weight(within) > 200)
                break;
        }
    } else if (what == 6 && p->n) {
        part *other = any(random);
        p->children[at] = copy_of(weight(other) < 2000 ? other : p->children[at]);
    } else if (structure_random(random) % 8 == 0) {
        p->n = 0;
    }
}

void structure_change(part *root, const char *const *words, uint64_t *random)
{
    n_list = 0;
    add_all(root);
    if (n_list > MOST_PARTS / 2) /* of one that has swollen, no more */
        return;
    part *p = any(random);
    /* numbers and groups as often as bytes, of which there are most */
    for (int i = 0; i < 3 && p->kind == PART_BYTES; i++)
        p = any(random);
    if (p->kind == PART_NUMBER)
        change_number(p, random);
    else if (p->kind == PART_BYTES)
        change_bytes(p, words, random);
    else
        change_group(p, random);
}
