/* arguments.c -- makes up what an operation is called with, by the names and kinds of its
 * parameters and by the recipes: mostly what it takes, now and then what it is to refuse. */
#include "fuzz.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- recipes ------------------------------------------------------------------------------ */

static const struct {
    const char *name, *text;
} recipes[] = {
#define RECIPE(NAME, TEXT) {NAME, TEXT},
#include "tool/recipes.def"
#undef RECIPE
};

static const char *recipe_for(fuzz_source *s, const char *name)
{
    static fuzz_index index;
    for (size_t i = (size_t)index.count; i < sizeof recipes / sizeof *recipes; i++)
        fuzz_index_add(&index, recipes[i].name);
    int places[16], count = 0;
    for (int i = -1; count < 16 && (i = fuzz_index_find(&index, name, i)) >= 0; count++)
        places[count] = i;
    uint32_t chosen = fuzz_pick(s, 16);
    return count ? recipes[places[chosen % (uint32_t)count]].text : NULL;
}

/* What is the same in a whole call. */
typedef struct context {
    fuzz_source *s;
    const tern_named_op *op;
    fuzz_shapes *shapes;
    const char *word; /* of the next tensor, or NULL */
} context;

static int64_t pick_size(fuzz_source *s)
{
    static const int64_t rare[] = {0, 1, 7, 8, 16, 17, 33, 64, 65, 130};
    return fuzz_chance(s, 12) ? rare[fuzz_pick(s, 10)] : 1 + fuzz_pick(s, 5);
}

static int64_t size_of(context *c, char letter)
{
    if (isdigit((unsigned char)letter))
        return letter - '0';
    int64_t *size = &c->shapes->letters[letter & 127];
    if (*size < 0)
        *size = strchr("kj", letter) ? 1 + (int64_t)fuzz_pick(c->s, 3) : pick_size(c->s);
    return *size;
}

/* The value that the recipe gives a parameter: "p=c". */
static bool given_value(context *c, const char *name, char text[16])
{
    size_t length = strlen(name);
    for (const char *w = c->shapes->recipe; w && *w; w += strcspn(w, " "), w += strspn(w, " "))
        if (strncmp(w, name, length) == 0 && w[length] == '=') {
            size_t n = strcspn(w += length + 1, " ");
            n = n < 15 ? n : 15;
            memcpy(text, w, n);
            text[n] = '\0';
            if (n == 1 && islower((unsigned char)*text))
                snprintf(text, 16, "%d", (int)size_of(c, *text));
            return true;
        }
    return false;
}

/* ---- tensors ------------------------------------------------------------------------------ */

tern_dtype fuzz_dtype(fuzz_source *s)
{
    static const tern_dtype common[] = {TERN_F32, TERN_F32, TERN_F32,
                                        TERN_F64, TERN_F16, TERN_BF16};
    uint32_t i = fuzz_pick(s, 16);
    return i < 6 ? common[i] : i < 13 ? TERN_F32 : (tern_dtype)(1 + fuzz_pick(s, 15));
}

int fuzz_tensor(fuzz_source *s, const int64_t *size, int ndim, tern_dtype dtype, int64_t high)
{
    static fuzz_step step;
    char word[48];
    int64_t sizes[TERN_MAX_DIMS + 2];
    fuzz_step_begin(&step, fuzz_find("tensor"));
    if (!size)
        ndim = (int)fuzz_pick(s, 6);
    for (int d = 0; d < ndim; d++)
        sizes[d] = size ? size[d] : pick_size(s);
    if (ndim && fuzz_chance(s, 3))
        sizes[fuzz_pick(s, (uint32_t)ndim)] = fuzz_hostile_int(s);
    fuzz_add_ints(&step, "size", sizes, ndim);
    fuzz_add_dtype(&step, "dtype", dtype);
    fuzz_pick_word(s, "small small small small unit special back zeros far", word);
    if (high >= 0)
        fuzz_pick_word(s, "index index index index index far back", word);
    if (high == -2)
        fuzz_pick_word(s, "unit unit unit small special", word);
    fuzz_add_text(&step, "fill", word);
    fuzz_add_int(&step, "seed", fuzz_pick(s, 256));
    fuzz_pick_word(s, "dense dense dense dense transposed strided offset expanded overlapping",
                   word);
    if (strcmp(word, "dense") != 0)
        fuzz_add_text(&step, "layout", word);
    if (high >= 0)
        fuzz_add_int(&step, "high", high);
    if (high == -1 && tern_dtype_is_floating_point(dtype) && fuzz_chance(s, 40))
        fuzz_add(&step, "grad", TERN_VALUE_SCALAR)->scalar = tern_scalar_bool(true);
    return fuzz_run(&step) > 0 ? fuzz_place() : -1;
}

static int from_slots(fuzz_source *s)
{
    uint32_t start = fuzz_pick(s, FUZZ_SLOTS);
    for (uint32_t i = 0; i < FUZZ_SLOTS; i++)
        if (fuzz_slots[(start + i) % FUZZ_SLOTS])
            return (int)((start + i) % FUZZ_SLOTS);
    return -1;
}

/* Operations that look at no element of a large tensor, or make one of its size and are refused. */
static bool takes_vast(const tern_named_op *op)
{
    static const char *const names =
        " view reshape flatten unflatten permute transpose t squeeze unsqueeze expand narrow slice "
        "select as_strided contiguous clone cat stack movedim swapdims diagonal unfold add mul exp "
        "where flip roll tile repeat relu add_ zero_like detach size stride requires_grad_ split "
        "chunk broadcast_to expand_as atleast_3d hstack diag_embed tril pad softmax cumsum "
        "to_dtype ";
    char name[64];
    snprintf(name, sizeof name, " %.60s ", tern_named_op_name(op));
    return strstr(names, name) != NULL;
}

/* A slot for a tensor of the word: one there already, or a new one; -1 where that was refused. */
static int tensor_for(context *c, const char *word, const char *name)
{
    fuzz_source *s = c->s;
    tern_dtype dtype = fuzz_chance(s, 8) ? fuzz_dtype(s) : c->shapes->dtype;
    int64_t high = -1, size[TERN_MAX_DIMS + 8];
    int ndim = 0;
    if (fuzz_chance(s, word ? 12 : 45)) {
        int slot = from_slots(s);
        if (slot >= 0 && (fuzz_is_handy(slot) || takes_vast(c->op)))
            return slot;
    }
    if (word && word[0] && word[1] == ':') {
        high = *word == '?' ? 2 : *word == '+' ? -2 : size_of(c, *word);
        dtype = *word == '?' ? TERN_BOOL : *word == '+' ? dtype : TERN_I64;
        if (high >= 0 && fuzz_chance(s, 8))
            dtype = fuzz_dtype(s);
        word += 2;
    } else if (!word && (strstr(name, "ind") || strstr(name, "mask") || strstr(name, "cond"))) {
        high = strstr(name, "ind") ? 4 : 2;
        dtype = strstr(name, "ind") ? TERN_I64 : TERN_BOOL;
    }
    for (; word && *word && *word != ' ' && ndim < TERN_MAX_DIMS; word++)
        if (*word != '*')
            size[ndim++] = size_of(c, *word);
        else
            for (int d = 0; d < c->shapes->n_leading; d++)
                size[ndim++] = c->shapes->leading[d];
    if (!word) /* broadcast to each other, mostly */
        for (ndim = 0; ndim < c->shapes->ndim; ndim++)
            size[ndim] = fuzz_chance(s, 8) ? 1 : c->shapes->letters['a' + ndim];
    if (ndim && fuzz_chance(s, 4))
        size[fuzz_pick(s, (uint32_t)ndim)] = pick_size(s);
    if (fuzz_chance(s, 4))
        ndim -= ndim > 0;
    else if (fuzz_chance(s, 3) && ndim < TERN_MAX_DIMS)
        size[ndim++] = pick_size(s);
    int slot = fuzz_tensor(s, size, ndim, dtype, high);
    return slot >= 0 && (fuzz_is_handy(slot) || takes_vast(c->op)) ? slot : -1;
}

static const char *next_word(context *c)
{
    const char *word = c->word;
    if (!word || !*word)
        return NULL;
    size_t length = strcspn(word, " ");
    if (memchr(word, '=', length))
        return NULL;
    c->word = word + length + strspn(word + length, " ");
    return word;
}

static void add_tensors(context *c, fuzz_step *step, const char *name)
{
    int slots[FUZZ_LIST], count = (int)fuzz_pick(c->s, 4) + (fuzz_chance(c->s, 90) ? 1 : 0);
    if (fuzz_chance(c->s, 3))
        count = (int)fuzz_pick(c->s, FUZZ_LIST);
    const char *word = next_word(c);
    for (int i = 0; i < count; i++)
        slots[i] = i >= 6 ? slots[i - 6] : tensor_for(c, word, name);
    fuzz_value *v = fuzz_add(step, name, TERN_VALUE_TENSORS);
    for (int i = 0; i < count; i++)
        if (slots[i] >= 0)
            v->slots[v->count++] = slots[i];
}

/* ---- numbers and words -------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static int64_t pick_int(context *c, const char *name)
{
    char text[16];
    int64_t object;
    bool is_dim = strncmp(name, "dim", 3) == 0 || strncmp(name, "axis", 4) == 0 ||
                  ends_with(name, "_dim") || strcmp(name, "source") == 0 ||
                  strcmp(name, "destination") == 0;
    if (fuzz_pick_object(c->s, name, &object))
        return object;
    if (fuzz_chance(c->s, 6))
        return fuzz_hostile_int(c->s);
    if (given_value(c, name, text) && !fuzz_chance(c->s, 10))
        return atoi(text);
    if (is_dim)
        return (int64_t)fuzz_pick(c->s, 7) - 3;
    return (int64_t)fuzz_pick(c->s, 6) - (fuzz_chance(c->s, 10) ? 3 : 0);
}

static void add_ints(context *c, fuzz_step *step, const tern_parameter *p)
{
    int64_t list[FUZZ_LIST];
    char text[16];
    int count = p->length ? p->length : (int)fuzz_pick(c->s, 5);
    if (given_value(c, p->name, text))
        count = 1;
    if (fuzz_chance(c->s, 8))
        count = (int)fuzz_pick(c->s, 15);
    if (count == 1 && fuzz_chance(c->s, 50)) {
        fuzz_add_int(step, p->name, pick_int(c, p->name));
        return;
    }
    for (int i = 0; i < count; i++)
        list[i] = pick_int(c, p->name);
    if (strcmp(p->name, "kernel_size") == 0)
        for (int i = 0; i < count; i++)
            list[i] += list[i] == 0;
    fuzz_add_ints(step, p->name, list, count);
}

static double pick_real(fuzz_source *s, const tern_parameter *p)
{
    if (!p->required && p->value[0] != 'N' && fuzz_chance(s, 50))
        return strtod(p->value, NULL);
    static const double usual[] = {1, 0.5, 2, 0, 0.1, 1e-5, 3, -1};
    return fuzz_chance(s, 15) ? fuzz_hostile_real(s) : usual[fuzz_pick(s, 8)];
}

static void add_text(context *c, fuzz_step *step, const char *name)
{
    static const char *const words[][2] = {
        {"reduction", "none mean sum"},
        {"mode",
         "constant reflect replicate circular nearest linear bilinear bicubic trilinear area "
         "nearest-exact lanczos sum mean max"},
        {"reduce", "sum prod mean amax amin add multiply"},
        {"rounding_mode", "trunc floor"},
        {"padding_mode", "zeros border reflection"},
        {"interpolation", "linear lower higher midpoint nearest"},
        {"padding", "same valid"},
        {"approximate", "none tanh"},
        {"side", "left right"},
        {"indexing", "ij xy"},
        {"device", "cpu cpu cpu:0 cuda:0 nothing"},
        {"p", "fro nuc inf"},
        {"what", "same double dtype shape scalar empty error write more none product clear"},
        {"forward", "same double product scalar write dtype empty none error more"},
        {"backward", "same double product dtype shape scalar empty error write none"},
        {"equation", "ij,jk->ik ii->i ii ij->ji ij-> ij,ij->ij ...i,...i->... i,j->ij ij,jk,kl->il "
                     "bij,bjk->bik ij,kj->ik -> ij,, iii aa,aa,aa->a ijklmnopqrstuvw,a z->zz"},
        {"path",
         "weight bias 0 1 0.weight 1.bias 0.0 weight_orig weight_g running_mean x . layers.0"},
        {"name", "weight bias 0 extra weight_ih_l0 running_mean x.y"},
        {"option", "lr weight_decay momentum beta1 beta2 eps nesterov what"},
        {"state",
         "state.0.exp_avg state.0.step state.0.momentum_buffer param_groups.0.lr state.9.x x"},
        {"", "x mean none linear"}};
    char word[48];
    size_t i = 0;
    while (words[i][0][0] && strcmp(words[i][0], name) != 0)
        i++;
    if (given_value(c, name, word) && !fuzz_chance(c->s, 15))
        ;
    else
        fuzz_pick_word(c->s, words[fuzz_chance(c->s, 3) ? sizeof words / sizeof *words - 1 : i][1],
                       word);
    fuzz_add_text(step, name, word);
}

static void add_scalar(context *c, fuzz_step *step, const tern_parameter *p)
{
    fuzz_value *v = fuzz_add(step, p->name, TERN_VALUE_SCALAR);
    uint32_t kind = fuzz_pick(c->s, 8);
    v->scalar = kind < 4   ? tern_scalar_real(pick_real(c->s, p))
                : kind < 7 ? tern_scalar_int(pick_int(c, p->name))
                           : tern_scalar_bool(kind & 1);
}

static void add_argument(context *c, fuzz_step *step, const tern_parameter *p)
{
    fuzz_value *v;
    int slot;
    switch (p->kind) {
    case TERN_PARAMETER_TENSOR:
        slot = tensor_for(c, next_word(c), p->name);
        if (slot >= 0)
            fuzz_add_tensor(step, p->name, slot);
        break;
    case TERN_PARAMETER_TENSORS:
        add_tensors(c, step, p->name);
        break;
    case TERN_PARAMETER_INT:
        fuzz_add_int(step, p->name, pick_int(c, p->name));
        break;
    case TERN_PARAMETER_INTS:
        add_ints(c, step, p);
        break;
    case TERN_PARAMETER_REAL:
        fuzz_add(step, p->name, TERN_VALUE_SCALAR)->scalar = tern_scalar_real(pick_real(c->s, p));
        break;
    case TERN_PARAMETER_REALS:
        v = fuzz_add(step, p->name, TERN_VALUE_REALS);
        for (v->count = 0; v->count < (p->length ? p->length : 2); v->count++)
            v->reals[v->count] = pick_real(c->s, p);
        break;
    case TERN_PARAMETER_BOOL:
        v = fuzz_add(step, p->name, TERN_VALUE_SCALAR);
        v->scalar = tern_scalar_bool(fuzz_chance(c->s, 50));
        break;
    case TERN_PARAMETER_SCALAR:
        add_scalar(c, step, p);
        break;
    case TERN_PARAMETER_TEXT:
        add_text(c, step, p->name);
        break;
    case TERN_PARAMETER_DTYPE:
        fuzz_add_dtype(step, p->name, fuzz_chance(c->s, 3) ? (tern_dtype)99 : fuzz_dtype(c->s));
        break;
    }
}

/* ---- calls -------------------------------------------------------------------------------- */

void fuzz_shapes_begin(fuzz_source *s, fuzz_shapes *shapes, const char *name)
{
    shapes->recipe = recipe_for(s, name);
    shapes->dtype = fuzz_dtype(s);
    memset(shapes->letters, -1, sizeof shapes->letters);
    shapes->n_leading = (int)fuzz_pick(s, 4);
    for (int d = 0; d < 3; d++)
        shapes->leading[d] = pick_size(s);
    shapes->ndim = (int)fuzz_pick(s, 5);
    for (int d = 0; d < shapes->ndim && !shapes->recipe; d++)
        shapes->letters['a' + d] = pick_size(s);
}

int fuzz_inputs(fuzz_source *s, fuzz_shapes *shapes, int *slots, int most)
{
    context c = {.s = s, .op = fuzz_find("tensor"), .shapes = shapes, .word = shapes->recipe};
    int n = 0;
    for (const char *word; n < most && (word = next_word(&c)); n++)
        slots[n] = tensor_for(&c, word, "input");
    return n;
}

/* An allocation of the next step fails. */
void fuzz_fail_next(fuzz_source *s)
{
    static fuzz_step step;
    fuzz_step_begin(&step, fuzz_find("fail_allocation"));
    fuzz_add_int(&step, "n", fuzz_chance(s, 60) ? -1 : 1 + (int64_t)fuzz_pick(s, 24));
    fuzz_run(&step);
}

int fuzz_call_with(fuzz_source *s, const tern_named_op *op, fuzz_shapes *shapes, bool words)
{
    static fuzz_step step;
    tern_parameter parameters[TERN_MAX_PARAMETERS];
    char text[16];
    context c = {.s = s, .op = op, .shapes = shapes, .word = words ? shapes->recipe : NULL};
    int count = tern_named_op_parameters(op, parameters, TERN_MAX_PARAMETERS);
    fuzz_step_begin(&step, op);
    for (int i = 0; i < count; i++) {
        bool tensor = parameters[i].kind == TERN_PARAMETER_TENSOR;
        bool wanted = parameters[i].required || given_value(&c, parameters[i].name, text);
        if (wanted ? fuzz_chance(s, 1) : fuzz_chance(s, tensor ? 35 : 60)) {
            if (tensor)
                next_word(&c);
            continue;
        }
        if (parameters[i].optional && fuzz_chance(s, 5))
            fuzz_add(&step, parameters[i].name, TERN_VALUE_NONE);
        else
            add_argument(&c, &step, &parameters[i]);
    }
    if (!fuzz_writes(op) && fuzz_chance(s, 2))
        step.capacity = (int)fuzz_pick(s, 3);
    if (fuzz_chance(s, 4))
        fuzz_fail_next(s);
    int n = fuzz_run(&step);
    if (n > 0)
        fuzz_place();
    return n;
}

int fuzz_call(fuzz_source *s, const tern_named_op *op)
{
    fuzz_shapes shapes;
    fuzz_shapes_begin(s, &shapes, tern_named_op_name(op));
    return fuzz_call_with(s, op, &shapes, true);
}

const tern_named_op *fuzz_any(fuzz_source *s, const names_family *family)
{
    return &family->rows[fuzz_pick(s, (uint32_t)family->count)];
}
