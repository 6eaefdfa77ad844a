/* vocab.c -- tokens by text and by id, pairs, and prefixes: hash tables with open addressing. */
#include "models/tokenizer/model.h"

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static uint64_t hash(const char *text, size_t n)
{
    uint64_t h = n, word = 0;
    for (; n >= 8; n -= 8, text += 8) {
        memcpy(&word, text, 8);
        h = mix(h ^ word);
    }
    word = 0;
    if (n)
        memcpy(&word, text, n);
    return mix(h * 31 ^ word);
}

/* Allocates a power of two of slots, at most half of them filled by count entries. */
static tern_status slots_for(size_t count, size_t each, size_t *n, void **slots)
{
    *n = 16;
    while (*n < count * 2)
        *n *= 2;
    *slots = count < SIZE_MAX / 64 ? calloc(*n, each) : NULL;
    return *slots
               ? TERN_OK
               : tern_fail(TERN_ERR_MEMORY, "tern_tokenizer: no memory for a table of %zu", count);
}

/* ---- texts --------------------------------------------------------------------------------- */

static tk_slot *slot_of(const tk_vocab *v, const char *text, size_t n, uint32_t h)
{
    size_t at = h & (v->n_slots - 1);
    for (; v->slots[at].next_id; at = (at + 1) & (v->n_slots - 1)) {
        if (v->slots[at].hash != h)
            continue;
        tk_entry e = v->entries[v->slots[at].next_id - 1];
        if (e.n == n && memcmp(v->arena + e.at, text, n) == 0)
            break;
    }
    return &v->slots[at];
}

tern_status tk_vocab_reserve(tk_vocab *v, size_t count)
{
    tk_vocab grown = *v;
    if (count * 2 <= v->n_slots)
        return TERN_OK;
    TK_TRY(slots_for(count, sizeof *v->slots, &grown.n_slots, (void **)&grown.slots));
    for (size_t i = 0; i < v->n_slots; i++)
        if (v->slots[i].next_id) {
            size_t at = v->slots[i].hash & (grown.n_slots - 1);
            while (grown.slots[at].next_id)
                at = (at + 1) & (grown.n_slots - 1);
            grown.slots[at] = v->slots[i];
        }
    free(v->slots);
    *v = grown;
    return TERN_OK;
}

tern_status tk_vocab_add(tk_vocab *v, const char *text, size_t n, uint32_t id)
{
    if (n >= UINT32_MAX - v->arena_n)
        return tern_fail(TERN_ERR_UNSUPPORTED, "tern_tokenizer: more than 4 GB of tokens");
    if (v->n_slots < 2 * (v->count + 1))
        TK_TRY(tk_vocab_reserve(v, 2 * (v->count + 8)));
    TK_TRY(TK_RESERVE(v->arena, v->arena_capacity, v->arena_n, n + 1));
    if (id >= v->n)
        TK_TRY(TK_RESERVE(v->entries, v->capacity, v->n, id + 1 - v->n));
    for (; v->n <= id; v->n++)
        v->entries[v->n] = (tk_entry){0, UINT32_MAX};
    const uint32_t h = (uint32_t)hash(text, n);
    tk_slot *slot = slot_of(v, text, n, h);
    v->count += !slot->next_id;
    *slot = (tk_slot){h, id + 1};
    v->entries[id] = (tk_entry){(uint32_t)v->arena_n, (uint32_t)n};
    memcpy(v->arena + v->arena_n, text, n);
    v->arena[v->arena_n + n] = 0;
    v->arena_n += n + 1;
    return TERN_OK;
}

int64_t tk_vocab_find(const tk_vocab *v, const char *text, size_t n)
{
    return v->n_slots ? (int64_t)slot_of(v, text, n, (uint32_t)hash(text, n))->next_id - 1 : -1;
}

const char *tk_vocab_text(const tk_vocab *v, int64_t id, size_t *n)
{
    *n = 0;
    if (id < 0 || (uint64_t)id >= v->n || v->entries[id].n == UINT32_MAX)
        return NULL;
    *n = v->entries[id].n;
    return v->arena + v->entries[id].at;
}

void tk_vocab_free(tk_vocab *v)
{
    free(v->arena);
    free(v->entries);
    free(v->slots);
    *v = (tk_vocab){0};
}

/* ---- pairs --------------------------------------------------------------------------------- */

static struct tk_pair *pair_slot(const tk_pairs *p, uint32_t a, uint32_t b)
{
    uint64_t key = ((uint64_t)a << 32 | b) + 1;
    size_t at = mix(key) & (p->n_slots - 1);
    while (p->slots[at].key && p->slots[at].key != key)
        at = (at + 1) & (p->n_slots - 1);
    return &p->slots[at];
}

tern_status tk_pairs_reserve(tk_pairs *p, size_t count)
{
    tk_pairs grown = *p;
    if (count * 2 <= p->n_slots)
        return TERN_OK;
    TK_TRY(slots_for(count, sizeof *p->slots, &grown.n_slots, (void **)&grown.slots));
    for (size_t i = 0; i < p->n_slots; i++)
        if (p->slots[i].key) {
            uint64_t key = p->slots[i].key - 1;
            *pair_slot(&grown, (uint32_t)(key >> 32), (uint32_t)key) = p->slots[i];
        }
    free(p->slots);
    *p = grown;
    return TERN_OK;
}

void tk_pairs_set(tk_pairs *p, uint32_t a, uint32_t b, uint32_t rank, uint32_t id)
{
    struct tk_pair *slot = pair_slot(p, a, b);
    p->count += !slot->key;
    *slot = (struct tk_pair){((uint64_t)a << 32 | b) + 1, rank, id};
}

const struct tk_pair *tk_pairs_find(const tk_pairs *p, uint32_t a, uint32_t b)
{
    const struct tk_pair *slot = p->n_slots ? pair_slot(p, a, b) : NULL;
    return slot && slot->key ? slot : NULL;
}

/* ---- prefixes ------------------------------------------------------------------------------ */

static tern_status add_node(tk_trie *t)
{
    TK_TRY(TK_RESERVE(t->values, t->capacity, t->n, 1));
    t->values[t->n++] = 0;
    return t->n < UINT32_MAX ? TERN_OK
                             : tern_fail(TERN_ERR_UNSUPPORTED, "tern_tokenizer: too many tokens");
}

tern_status tk_trie_add(tk_trie *t, const char *text, size_t n, uint32_t value)
{
    uint32_t node = 0;
    if (t->n == 0)
        TK_TRY(add_node(t));
    for (size_t i = 0; i < n; i++) {
        const struct tk_pair *edge = tk_pairs_find(&t->edges, node, (uint8_t)text[i]);
        if (edge) {
            node = edge->id;
            continue;
        }
        if (t->edges.n_slots < 2 * (t->edges.count + 1))
            TK_TRY(tk_pairs_reserve(&t->edges, 2 * (t->edges.count + 8)));
        TK_TRY(add_node(t));
        tk_pairs_set(&t->edges, node, (uint8_t)text[i], 0, (uint32_t)(t->n - 1));
        node = (uint32_t)(t->n - 1);
    }
    t->values[node] = value + 1;
    return TERN_OK;
}

bool tk_trie_step(const tk_trie *t, uint32_t *node, uint8_t byte, int64_t *value)
{
    const struct tk_pair *edge = t->n ? tk_pairs_find(&t->edges, *node, byte) : NULL;
    if (!edge)
        return false;
    *node = edge->id;
    *value = (int64_t)t->values[edge->id] - 1;
    return true;
}

void tk_trie_free(tk_trie *t)
{
    free(t->edges.slots);
    free(t->values);
    *t = (tk_trie){0};
}
