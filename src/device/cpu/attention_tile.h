/* attention_tile.h -- attention in one pass over the keys (Dao et al. 2022) with the tiles of
 * matrix products.
 *
 * A panel is the transpose of as many queries as two registers have lanes: the numbers of a query
 * are in one lane. Scores are s = k q', keys by lanes, so that maxima, exponentials and sums go
 * over rows and no lane needs another one; o' += v' e^(s - maximum), again lanes by queries. The
 * tiles read k and v in place. Some panels share a block of keys while it is in the cache. */

enum { PANEL = 2 * VECTOR / (int)sizeof(f32) };
_Static_assert(PANEL <= (int)TERN_ATTENTION_LANES, "room is reserved for the widest panel");

/* The state of a panel after some of the keys. */
typedef struct attention_panel {
    f32 *q, *o; /* transposed: width and value_width rows of PANEL */
    f32 top[PANEL], sum[PANEL];
    idx first, queries; /* the first query, and the number of lanes with a query */
    i32 begun;          /* o has been written */
} attention_panel;

static void attention_begin(const tern_host_attention *g, attention_panel *p, const f32 *q)
{
    p->begun = 0;
    SIMD for (idx i = 0; i < PANEL; i++)
    {
        p->top[i] = MINUS_INF_f32;
        p->sum[i] = 0;
    }
    for (idx e = 0; e < (idx)g->width; e++)
        for (idx i = 0; i < PANEL; i++)
            p->q[e * PANEL + i] = i < p->queries ? q[(p->first + i) * g->q.row + e * g->q.col] : 0;
}

typedef enum attention_sight { HIDDEN_ALL, SEEN_PARTLY, SEEN_ALL } attention_sight;

/* Returns whether a row of a mask hides n keys; at[j * step] is its element for key j. */
static attention_sight attention_row_sight(const u8 *at, idx step, idx n)
{
    u32 any = 0, all = 1;
    if (step == 1)
        TERN_PRAGMA(omp simd reduction(| : any) reduction(& : all)) for (idx j = 0; j < n; j++)
        {
            any |= at[j];
            all &= at[j];
        }
    else
        for (idx j = 0; j < n; j++) {
            any |= at[j * step];
            all &= at[j * step];
        }
    return all ? SEEN_ALL : any ? SEEN_PARTLY : HIDDEN_ALL;
}

/* Returns whether a mask of bools hides n keys from the panel's queries. */
static attention_sight attention_bools_sight(const tern_host_attention *g, const attention_panel *p,
                                             const u8 *at, idx n)
{
    idx rows = g->stride[2] == 0 ? 1 : p->queries;
    attention_sight first = attention_row_sight(at, (idx)g->stride[3], n);
    for (idx i = 1; i < rows && first != SEEN_PARTLY; i++)
        if (attention_row_sight(at + i * g->stride[2], (idx)g->stride[3], n) != first)
            return SEEN_PARTLY;
    return first;
}

/* Returns whether the band hides n keys from the panel's queries. */
static attention_sight attention_band_sight(const tern_host_attention *g, const attention_panel *p,
                                            idx key, idx n)
{
    idx before = (idx)g->before, after = (idx)g->after, last = p->first + p->queries - 1;
    if (!(g->flags & TERN_ATTENTION_BAND))
        return SEEN_ALL;
    if (key > last + after || key + n <= p->first - before)
        return HIDDEN_ALL;
    return key < last - before || key + n - 1 > p->first + after ? SEEN_PARTLY : SEEN_ALL;
}

/* Returns whether the band and the mask hide n keys. A mask of numbers is always read. */
static attention_sight attention_sees(const tern_host_attention *g, const attention_panel *p,
                                      idx mask_at, idx key, idx n)
{
    idx at = mask_at + p->first * (idx)g->stride[2] + key * (idx)g->stride[3];
    attention_sight band = attention_band_sight(g, p, key, n), bools;
    if (!g->mask || band == HIDDEN_ALL)
        return band;
    if (g->flags & TERN_ATTENTION_NUMBERS)
        return SEEN_PARTLY;
    bools = attention_bools_sight(g, p, (const u8 *)g->mask + at, n);
    return bools == SEEN_ALL ? band : bools;
}

/* Hides scores of n keys by the band and the mask, and adds the numbers of a mask of numbers. */
static void attention_hide(const tern_host_attention *g, const attention_panel *p, idx mask_at,
                           f32 *s, idx key, idx n)
{
    const u8 *bools = g->mask;
    const f32 *numbers = g->mask;
    for (idx i = 0; g->mask && i < p->queries; i++) {
        idx at = mask_at + (p->first + i) * (idx)g->stride[2] + key * (idx)g->stride[3];
        for (idx j = 0; j < n; j++, at += (idx)g->stride[3])
            if (g->flags & TERN_ATTENTION_NUMBERS)
                s[j * PANEL + i] += numbers[at];
            else if (!bools[at])
                s[j * PANEL + i] = MINUS_INF_f32;
    }
    for (idx j = 0; g->flags & TERN_ATTENTION_BAND && j < n; j++) {
        idx apart = key + j - p->first;
        for (idx i = 0; i < tern_smaller(apart - (idx)g->after, PANEL); i++)
            s[j * PANEL + i] = MINUS_INF_f32;
        for (idx i = tern_larger(apart + (idx)g->before + 1, 0); i < PANEL; i++)
            s[j * PANEL + i] = MINUS_INF_f32;
    }
}

/* Replaces scores of n keys by exponentials, and scales the earlier sums to the new maximum. */
static void attention_powers(const tern_host_attention *g, attention_panel *p, f32 *s, idx n)
{
    f32 top[PANEL], factor[PANEL], sum[PANEL];
    SIMD for (idx i = 0; i < PANEL; i++) top[i] = p->top[i];
    for (idx j = 0; j < n; j++)
        SIMD for (idx i = 0; i < PANEL; i++) top[i] =
            s[j * PANEL + i] > top[i] ? s[j * PANEL + i] : top[i];
    i32 grew = 0;
    for (idx i = 0; i < PANEL; i++)
        grew |= top[i] > p->top[i];
    SIMD for (idx i = 0; i < PANEL; i++)
    {
        f32 old = p->top[i], base = top[i] == MINUS_INF_f32 ? 0 : top[i]; /* no key is seen yet */
        p->top[i] = top[i];
        factor[i] = tern_exp_below_f32(old - base);
        top[i] = base;
        sum[i] = p->sum[i] * factor[i];
    }
    for (idx j = 0; j < n; j++)
        SIMD for (idx i = 0; i < PANEL; i++)
        {
            f32 e = tern_exp_below_f32(s[j * PANEL + i] - top[i]);
            s[j * PANEL + i] = e;
            sum[i] += e;
        }
    SIMD for (idx i = 0; i < PANEL; i++) p->sum[i] = sum[i];
    for (idx e = 0; grew && p->begun && e < (idx)g->value_width; e++)
        SIMD for (idx i = 0; i < PANEL; i++) p->o[e * PANEL + i] *= factor[i];
}

static void attention_keys(const tern_host_attention *g, attention_panel *p, const f32 *k,
                           const f32 *v, idx mask_at, f32 *s, idx key, idx n)
{
    attention_sight sight = attention_sees(g, p, mask_at, key, n);
    if (sight == HIDDEN_ALL)
        return;
    finish_f32 f = {(f32)g->scale, 0, NULL, PANEL};
    strips_f32(n, (idx)g->width, k + key * g->k.row, (idx)g->k.row, (idx)g->k.col, p->q, PANEL, 0,
               s, PANEL, &f);
    f32 cap = (f32)g->softcap;
    if (cap > 0)
        SIMD for (idx i = 0; i < n * PANEL; i++) s[i] = cap * tern_tanh_f32(s[i] / cap);
    if (sight == SEEN_PARTLY)
        attention_hide(g, p, mask_at, s, key, n);
    attention_powers(g, p, s, n);
    f = (finish_f32){1, (f32)p->begun, NULL, PANEL};
    strips_f32((idx)g->value_width, n, v + key * g->v.row, (idx)g->v.col, (idx)g->v.row, s, PANEL,
               0, p->o, PANEL, &f);
    p->begun = 1;
}

static void attention_end(const tern_host_attention *g, const attention_panel *p, f32 *out,
                          f32 *lses)
{
    for (idx i = 0; i < p->queries; i++) {
        f32 z = p->sum[i], one = z == 0 ? 0 : 1 / z;
        f32 *to = out + (p->first + i) * g->out.row;
        for (idx e = 0; e < (idx)g->value_width; e++)
            to[e] = p->begun ? p->o[e * PANEL + i] * one : 0;
        lses[p->first + i] = z == 0 ? 0 : p->top[i] + tern_log_f32(z);
    }
}

/* Blocks of queries come from both ends in turn: with a causal mask the last ones cost most. */
KERNEL1(attention_f32, (IN, tern_host_attention, g))
{
    const idx block = TERN_ATTENTION_PANELS * PANEL, queries = (idx)g->queries;
    const idx blocks = (queries + block - 1) / block;
    f32 *scratch = g->scratch + (idx)tern_g.part * (idx)g->part_scratch;
    f32 *s = scratch + TERN_ATTENTION_PANELS * (idx)(g->width + g->value_width) * PANEL;
    GROUPS (u, g->count[0] * g->count[1] * blocks) {
        attention_panel panels[TERN_ATTENTION_PANELS];
        idx stack = u / blocks, b0 = stack / (idx)g->count[1], b1 = stack % (idx)g->count[1];
        idx nth = u % blocks, first = (nth % 2 ? blocks - 1 - nth / 2 : nth / 2) * block;
        idx end = tern_smaller(first + block, queries), n = 0;
        idx mask_at = b0 * (idx)g->stride[0] + b1 * (idx)g->stride[1];
        const f32 *q = (const f32 *)g->q.data + b0 * g->q.batch[0] + b1 * g->q.batch[1];
        const f32 *k = (const f32 *)g->k.data + b0 * g->k.batch[0] + b1 * g->k.batch[1];
        const f32 *v = (const f32 *)g->v.data + b0 * g->v.batch[0] + b1 * g->v.batch[1];
        f32 *out = (f32 *)(uintptr_t)g->out.data + b0 * g->out.batch[0] + b1 * g->out.batch[1];
        for (idx i = first; i < end; i += PANEL, n++) {
            f32 *own = scratch + n * (idx)(g->width + g->value_width) * PANEL;
            panels[n].q = own;
            panels[n].o = own + (idx)g->width * PANEL;
            panels[n].first = i;
            panels[n].queries = tern_smaller(end - i, PANEL);
            attention_begin(g, &panels[n], q);
        }
        idx from = 0, keys = (idx)g->keys;
        if (g->flags & TERN_ATTENTION_BAND) {
            from = tern_larger(first - (idx)g->before, 0);
            keys = tern_smaller(end + (idx)g->after, keys);
        }
        for (idx key = from; key < keys; key += TERN_ATTENTION_KEYS)
            for (idx i = 0; i < n; i++)
                attention_keys(g, &panels[i], k, v, mask_at, s, key,
                               tern_smaller(keys - key, TERN_ATTENTION_KEYS));
        for (idx i = 0; i < n; i++)
            attention_end(g, &panels[i], out, g->sums + stack * queries);
    }
}
