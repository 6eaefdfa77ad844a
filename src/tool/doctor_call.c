/* doctor_call.c -- generates calls of operations: tensors by the recipes, numbers and words by the
 * names of parameters. Most calls are invalid; the first that the cpu accepts is the one that is
 * checked. */
#include "tool/doctor.h"
#include "base/os.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 800, FLOAT_SEEDS = 500, WIDE_SEEDS = 300, MOST_ELEMENTS = 1 << 18 };

static const struct {
    const char *name, *text;
} recipes[] = {
#define RECIPE(NAME, TEXT) {NAME, TEXT},
#include "tool/recipes.def"
#undef RECIPE
};

typedef struct maker {
    doctor_call *call;
    const doctor_row *row;
    uint64_t state;
    const char *recipe, *word; /* word: the recipe's word for the next tensor */
    tern_dtype dtype;
    int ndim, n_leading, fill;
    int64_t letters[128], leading[3], most;
} maker;

/* ---- random numbers -------------------------------------------------------------------------- */

static uint64_t next(maker *m)
{
    uint64_t z = m->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int pick(maker *m, int n)
{
    return (int)(next(m) >> 33) % n;
}

static double unit(maker *m)
{
    return (double)(next(m) >> 11) * 0x1p-53;
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* Returns the largest size of a dim of large tensors with that many dims, so that they have some
 * thousand elements. */
static int64_t most_of(int ndim)
{
    static const int64_t most[] = {1, 500, 96, 24, 12, 8};
    return ndim < 6 ? most[ndim] : 4;
}

static int64_t size_of(maker *m, char letter)
{
    if (isdigit((unsigned char)letter))
        return letter - '0';
    int64_t *size = &m->letters[letter & 127];
    if (*size < 0 && strchr("kj", letter))
        *size = 1 + pick(m, 3);
    else if (*size < 0 && m->row->large)
        *size = m->most - pick(m, (int)(m->most / 2) + 1);
    else if (*size < 0)
        *size = 1 + pick(m, 6);
    return *size;
}

/* Finds "name=value" in the recipe; value: a letter is replaced by its size. */
static bool given(maker *m, const char *name, char text[16])
{
    size_t length = strlen(name);
    for (const char *w = m->recipe; w && *w; w += strcspn(w, " "), w += strspn(w, " "))
        if (strncmp(w, name, length) == 0 && w[length] == '=') {
            size_t n = strcspn(w += length + 1, " ");
            snprintf(text, 16, "%.*s", (int)(n < 15 ? n : 15), w);
            if (n == 1 && islower((unsigned char)*text))
                snprintf(text, 16, "%d", (int)size_of(m, *text));
            return true;
        }
    return false;
}

/* Operations whose result has as many elements as the product of all input sizes, or more. */
static bool is_product(const char *name)
{
    return strcmp(name, "cartesian_prod") == 0 || strcmp(name, "combinations") == 0 ||
           strcmp(name, "kron") == 0 || strcmp(name, "meshgrid") == 0;
}

static void choose_recipe(maker *m, const char *name)
{
    int found[8], n = 0, longest = 1;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes && n < 8; i++)
        if (strcmp(recipes[i].name, name) == 0)
            found[n++] = (int)i;
    m->recipe = m->word = n ? recipes[found[pick(m, n)]].text : NULL;
    for (const char *w = m->recipe; w && *w; w += strcspn(w, " "), w += strspn(w, " ")) {
        int length = (int)strcspn(w, " =");
        longest = w[length] != '=' && length > longest ? length : longest;
    }
    m->ndim = pick(m, 5);
    m->most = is_product(name) ? 12 : most_of(m->recipe ? longest : m->ndim);
    memset(m->letters, -1, sizeof m->letters);
    m->n_leading = pick(m, 3);
    for (int d = 0; d < 3; d++)
        m->leading[d] = 1 + pick(m, 3);
}

/* ---- tensors ------------------------------------------------------------------------------- */

static double element(maker *m, int64_t high)
{
    double u = unit(m);
    return high == -2     ? u
           : high >= 0    ? (high > 0 ? floor(u * (double)high) : 0)
           : m->fill == 1 ? 0.05 + 0.9 * u
           : m->fill == 2 ? 1 + 2 * u
                          : 4 * u - 2;
}

/* Makes matrices symmetric and positive definite: a a^T + n I. */
static void make_definite(double *a, int64_t count, int64_t n)
{
    double *product = malloc(sizeof *product * (size_t)(n * n) + 1);
    for (; product && count > 0; count--, a += n * n) {
        for (int64_t i = 0; i < n * n; i++) {
            product[i] = i % (n + 1) == 0 ? (double)n : 0;
            for (int64_t k = 0; k < n; k++)
                product[i] += a[i / n * n + k] * a[i % n * n + k];
        }
        memcpy(a, product, sizeof *a * (size_t)(n * n));
    }
    free(product);
}

static tern_tensor *filled(maker *m, tern_shape shape, tern_dtype dtype, int64_t high)
{
    int64_t n = 1, last = shape.ndim ? shape.dims[shape.ndim - 1] : 1;
    for (int d = 0; d < shape.ndim; d++)
        n *= shape.dims[d];
    double *data = n <= MOST_ELEMENTS ? malloc(sizeof *data * (size_t)n + 1) : NULL;
    if (!data)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        data[i] = element(m, high);
    if (m->fill == 0 && high == -1 && shape.ndim > 1 && last <= 24 &&
        shape.dims[shape.ndim - 2] == last && last > 0)
        make_definite(data, n / (last * last), last);
    tern_tensor *x = tern_to_dtype(tern_from_data(data, shape, TERN_F64, "cpu"), dtype);
    free(data);
    return x;
}

/* Returns a tensor with the shape of a word of the recipe (NULL: the common shape); *leaf: a
 * gradient of it makes sense. */
static tern_tensor *tensor_by(maker *m, const char *word, const char *name, bool *leaf)
{
    tern_shape shape = {0};
    tern_dtype dtype = m->dtype;
    int64_t high = -1;
    if (word && word[0] && word[1] == ':') {
        high = *word == '?' ? 2 : *word == '+' ? -2 : size_of(m, *word);
        dtype = *word == '?' ? TERN_BOOL : *word == '+' ? dtype : TERN_I64;
        word += 2;
    } else if (!word && (strstr(name, "ind") || strstr(name, "mask") || strstr(name, "cond"))) {
        high = strstr(name, "ind") ? 1 : 2;
        dtype = strstr(name, "ind") ? TERN_I64 : TERN_BOOL;
    }
    for (; word && *word && *word != ' ' && shape.ndim < TERN_MAX_DIMS; word++)
        for (int d = 0; d < (*word == '*' ? m->n_leading : 1); d++)
            shape.dims[shape.ndim++] = *word == '*' ? m->leading[d] : size_of(m, *word);
    for (; !word && shape.ndim < m->ndim; shape.ndim++)
        shape.dims[shape.ndim] = size_of(m, (char)('a' + shape.ndim));
    *leaf = tern_dtype_is_floating_point(dtype) && high != 2;
    return filled(m, shape, dtype, high);
}

static const char *next_word(maker *m)
{
    const char *word = m->word;
    size_t length = word ? strcspn(word, " ") : 0;
    if (length == 0 || memchr(word, '=', length))
        return NULL;
    m->word = word + length + strspn(word + length, " ");
    return word;
}

/* ---- numbers and words --------------------------------------------------------------------- */

static int64_t integer_for(maker *m, const char *name)
{
    char text[16];
    if (given(m, name, text))
        return atoi(text);
    if (strstr(name, "dim") || strstr(name, "axis") || strcmp(name, "source") == 0 ||
        strcmp(name, "destination") == 0)
        return pick(m, 4) - 2;
    return strcmp(name, "groups") == 0 ? 1 : 1 + pick(m, 4);
}

/* Generates sizes, dims or paddings: -1 for an inferred size, the input's own sizes, or all dims in
 * reverse order. */
static int integers_for(maker *m, const tern_parameter *p, int64_t list[4])
{
    char text[16];
    int n = p->length ? p->length : 1 + pick(m, 4), kind = pick(m, 4);
    n = n > 4 ? 4 : n;
    if (given(m, p->name, text)) {
        list[0] = atoi(text);
        return 1;
    }
    for (int i = 0; i < n; i++)
        list[i] = kind == 0   ? n - 1 - i
                  : kind == 1 ? size_of(m, (char)('a' + i))
                  : kind == 2 ? (i == 0 ? -1 : 1)
                              : integer_for(m, p->name);
    return n;
}

static double real_for(maker *m, const tern_parameter *p)
{
    static const double usual[] = {0.5, 1, 2, 0.25};
    return strcmp(p->name, "p") == 0 && !p->required ? tern_os_strtod(p->value, NULL)
                                                     : usual[pick(m, 4)];
}

static void word_for(maker *m, const char *name, char text[48])
{
    static const char *const words[][2] = {{"reduction", "mean"},
                                           {"mode", "constant reflect nearest bilinear linear sum"},
                                           {"reduce", "sum prod mean amax add multiply"},
                                           {"rounding_mode", "trunc floor"},
                                           {"interpolation", "linear nearest"},
                                           {"side", "left right"},
                                           {"p", "fro"},
                                           {"ord", "fro nuc"},
                                           {"equation", "ij,jk->ik ij->ji ii->i ij,ij->ij ij->"},
                                           {"", "none"}};
    char short_text[16];
    if (given(m, name, short_text)) {
        snprintf(text, 48, "%s", short_text);
        return;
    }
    size_t i = 0;
    while (words[i][0][0] && strcmp(words[i][0], name) != 0)
        i++;
    const char *w = words[i][1];
    for (int k = pick(m, 6); k > 0 && strchr(w, ' '); k--)
        w = strchr(w, ' ') + 1;
    snprintf(text, 48, "%.*s", (int)strcspn(w, " "), w);
}

/* ---- arguments ----------------------------------------------------------------------------- */

static void add_tensor(maker *m, const tern_parameter *p, const char *name)
{
    doctor_call *c = m->call;
    int i = c->n;
    tern_tensor *x = tensor_by(m, next_word(m), p->name, &c->leaf[i]);
    c->value[c->n++] = tern_value_tensor(name, x);
}

static void add_tensors(maker *m, const tern_parameter *p, const char *name)
{
    doctor_call *c = m->call;
    int i = c->n, count = 1 + pick(m, DOCTOR_LIST);
    const char *word = next_word(m);
    for (int k = 0; k < count; k++)
        c->list[i][k] = tensor_by(m, word, p->name, &c->leaf[i]);
    c->value[c->n++] = tern_value_tensors(name, c->list[i], count);
}

static void add(maker *m, const tern_parameter *p)
{
    doctor_call *c = m->call;
    int i = c->n, n;
    snprintf(c->name[i], sizeof c->name[i], "%s", p->name);
    const char *name = c->name[i];
    switch (p->kind) {
    case TERN_PARAMETER_TENSOR:
        add_tensor(m, p, name);
        return;
    case TERN_PARAMETER_TENSORS:
        add_tensors(m, p, name);
        return;
    case TERN_PARAMETER_INTS:
        n = integers_for(m, p, c->ints[i]);
        c->value[i] = tern_value_ints(name, c->ints[i], n);
        break;
    case TERN_PARAMETER_REALS:
        n = p->length ? p->length : 2;
        for (int k = 0; k < n && k < 4; k++)
            c->reals[i][k] = real_for(m, p);
        c->value[i] = tern_value_reals(name, c->reals[i], n < 4 ? n : 4);
        break;
    case TERN_PARAMETER_TEXT:
        c->device[i] = strcmp(name, "device") == 0;
        word_for(m, name, c->text[i]);
        c->value[i] = tern_value_text(name, c->device[i] ? "cpu" : c->text[i]);
        break;
    case TERN_PARAMETER_INT:
        c->value[i] = tern_value_int(name, integer_for(m, name));
        break;
    case TERN_PARAMETER_BOOL:
        c->value[i] = tern_value_bool(name, pick(m, 2));
        break;
    case TERN_PARAMETER_DTYPE:
        c->value[i] = tern_value_dtype(name, m->dtype);
        break;
    default:
        c->value[i] = p->kind == TERN_PARAMETER_REAL || tern_dtype_is_floating_point(m->dtype)
                          ? tern_value_real(name, real_for(m, p))
                          : tern_value_int(name, 1 + pick(m, 3));
    }
    c->n++;
}

static bool is_in_place(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && name[n - 1] == '_';
}

void doctor_make(doctor_call *call, const doctor_row *row, uint64_t seed)
{
    static const tern_dtype others[] = {TERN_I64, TERN_BOOL, TERN_I32};
    tern_parameter parameters[TERN_MAX_PARAMETERS];
    char text[16];
    memset(call, 0, sizeof *call);
    call->op = tern_named_op_at(row->op);
    maker m = {.call = call, .row = row, .state = seed * 1000003 + 17};
    m.fill = pick(&m, 3);
    m.dtype = seed < FLOAT_SEEDS ? row->dtype : others[seed % 3];
    choose_recipe(&m, tern_named_op_name(call->op));
    int count = tern_named_op_parameters(call->op, parameters, TERN_MAX_PARAMETERS);
    for (int i = 0; i < count; i++) {
        const tern_parameter *p = &parameters[i];
        bool tensor = p->kind == TERN_PARAMETER_TENSOR;
        bool has_word = tensor && m.word && *m.word && !memchr(m.word, '=', strcspn(m.word, " "));
        if (p->required || given(&m, p->name, text) || has_word || strcmp(p->name, "device") == 0 ||
            ((!tensor || !m.recipe) && pick(&m, 8) == 0))
            add(&m, p);
    }
    for (int i = 0; is_in_place(tern_named_op_name(call->op)) && i < call->n; i++)
        call->leaf[i] = false;
}

/* ---- valid calls --------------------------------------------------------------------------- */

static int64_t finite_of(tern_tensor *x)
{
    int64_t n = tern_numel(x), finite = 0;
    double *data = n > 0 && n <= MOST_ELEMENTS ? malloc(sizeof *data * (size_t)n) : NULL;
    if (data && tern_copy_to_host(tern_to_dtype(tern_detach(x), TERN_F64), data,
                                  sizeof *data * (size_t)n) == TERN_OK)
        for (int64_t i = 0; i < n; i++)
            finite += isfinite(data[i]);
    free(data);
    return finite;
}

/* Whether the call succeeds on the cpu with at least `least` elements, most of them finite. */
static bool is_taken(doctor_call *call, int64_t least)
{
    tern_tensor *out[DOCTOR_OUTS];
    int64_t elements = 0, finite = 0;
    int n = tern_named_op_call(call->op, call->value, call->n, out, DOCTOR_OUTS);
    for (int i = 0; i < n; i++) {
        elements += tern_numel(out[i]);
        finite += finite_of(out[i]);
    }
    tern_clear_error();
    return elements >= least && elements <= MOST_ELEMENTS && 2 * finite > elements;
}

bool doctor_find(const doctor_row *row, uint64_t *seed)
{
    doctor_call call;
    for (*seed = 0; *seed < SEEDS; ++*seed) {
        bool taken = false;
        TERN_NO_GRAD
            TERN_SCOPE {
                doctor_make(&call, row, *seed);
                taken = tern_last_status() == TERN_OK && is_taken(&call, *seed >= WIDE_SEEDS ? 1
                                                                         : row->large        ? 64
                                                                                             : 4);
                tern_clear_error();
            }
        if (taken)
            return true;
    }
    return false;
}
