/* test_autocast.c -- every operation that has a name, under autocast: the types of its results are
 * PyTorch's (golden/autocast.txt), and one that is in a list computes what it computes of inputs
 * that were cast before. */
#include "calls.h"
#include <stdio.h>

enum { RESULTS = 16, LINE = 512 };

/* ---- calls ------------------------------------------------------------------------------- */

/* Tensors of the types first and others, which are then cast to one, unless that is TERN_DTYPE_DEFAULT. */
typedef struct types_of {
    tern_dtype first, others, cast;
} types_of;

static tern_tensor *make(void *user, char kind, tern_shape shape, int64_t number)
{
    types_of *types = user;
    if (kind == 'i')
        return tern_full(shape, tern_scalar_int(number), TERN_I64, "cpu");
    if (kind == 'b')
        return tern_ones(shape, TERN_BOOL, "cpu");
    tern_dtype dtype = types->first;
    types->first = types->others;
    tern_tensor *x = kind == 'd' ? tern_eye(shape.dims[0], shape.dims[0], TERN_F32, "cpu")
                                 : test_uniform("cpu", TERN_F32, shape, 0.5, 1, 1);
    x = tern_to_dtype(x, dtype);
    return types->cast ? tern_to_dtype(x, types->cast) : x;
}

/* ---- lines ------------------------------------------------------------------------------- */

enum { FORMS = 4 };

typedef struct line {
    char name[64], arguments[LINE], expected[FORMS][64], list[16];
} line;

static line *lines;
static int n_lines;

static void read_lines(void)
{
    char text[LINE];
    FILE *file = fopen(TEST_FOLDER "/golden/autocast.txt", "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) {
        char *colon = strstr(text, ": ");
        if (*text == '#')
            continue;
        assert_non_null(colon);
        lines = realloc(lines, sizeof *lines * (size_t)(n_lines + 1));
        assert_non_null(lines);
        line *l = &lines[n_lines++];
        *colon = '\0';
        assert_int_equal(sscanf(text, "%63s", l->name), 1);
        snprintf(l->arguments, sizeof l->arguments, "%s", text + strcspn(text, " "));
        assert_int_equal(sscanf(colon + 1, "%63s %63s %63s %63s %15s", l->expected[0],
                                l->expected[1], l->expected[2], l->expected[3], l->list),
                         FORMS + 1);
    }
    fclose(file);
}

/* ---- the walk ---------------------------------------------------------------------------- */

/* Calls op as the line says; returns how many results there are, -1 after a refusal. */
static int run(const tern_named_op *op, const line *l, types_of types, tern_dtype autocast,
               tern_tensor **out)
{
    char arguments[LINE];
    int n = -1;
    call c = {.make = make, .user = &types};
    strcpy(arguments, l->arguments);
    tern_clear_error();
    read_values(&c, arguments);
    TERN_AUTOCAST_MODE("cpu", autocast, autocast != TERN_DTYPE_DEFAULT)
    n = tern_named_op_call(op, c.value, c.n, out, RESULTS);
    return n;
}

/* The results' types, or the word that refusals have. */
static void describe(int n, tern_tensor *const *out, tern_dtype half, char *text, size_t size)
{
    *text = '\0';
    for (int i = 0, used = 0; i < n && out[i]; i++) {
        tern_dtype dtype = tern_dtype_of(out[i]);
        used += snprintf(text + used, size - (size_t)used, "%s%s", i ? "," : "",
                         dtype == half ? "half" : tern_dtype_name(dtype));
    }
    if (n < 0)
        snprintf(text, size, "%s",
                 strstr(tern_last_error(), "unsafe to autocast") ? "refused" : "-");
}

/* Whether there are several tensors of floating point: "x=f3", "x=d3" or "x=[f3;f3]". */
static bool has_others(const line *l)
{
    int n = 0;
    for (const char *c = l->arguments; *c; c++)
        n += strchr("=[;", c[0]) && (c[1] == 'f' || c[1] == 'd') && strchr("0123456789 ;]", c[2]);
    return n > 1;
}

/* What a list casts to; TERN_DTYPE_DEFAULT where there is none. */
static tern_dtype listed(const line *l, const types_of *types, tern_dtype half)
{
    bool wide = types->first == TERN_F32 || (types->others == TERN_F32 && has_others(l));
    return strcmp(l->list, "lower") == 0     ? half
           : strcmp(l->list, "float32") == 0 ? TERN_F32
           : strcmp(l->list, "widest") == 0  ? (wide ? TERN_F32 : half)
                                             : TERN_DTYPE_DEFAULT;
}

static bool same_bytes(const tern_tensor *a, const tern_tensor *b)
{
    size_t bytes = (size_t)tern_numel(a) * tern_dtype_size(tern_dtype_of(a));
    char x[1 << 13], y[1 << 13];
    if (tern_dtype_of(a) != tern_dtype_of(b) || !tern_same_shape(a, b) || bytes > sizeof x)
        return false;
    assert_ok(tern_copy_to_host(a, x, bytes));
    assert_ok(tern_copy_to_host(b, y, bytes));
    return memcmp(x, y, bytes) == 0;
}

/* Whether op's results are those of inputs that were cast before. */
static bool computes_of_casts(const tern_named_op *op, const line *l, types_of types,
                              tern_dtype half, int n, tern_tensor *const *out)
{
    tern_tensor *expected[RESULTS];
    types.cast = listed(l, &types, half);
    if (types.cast == TERN_DTYPE_DEFAULT || n < 0)
        return true;
    bool same = run(op, l, types, TERN_DTYPE_DEFAULT, expected) == n;
    for (int i = 0; i < n && same; i++)
        same = same_bytes(out[i], expected[i]);
    return same;
}

/* Returns how many forms of the call are not as in PyTorch. */
static int compare(const tern_named_op *op, const line *l, tern_dtype half)
{
    const types_of types[FORMS] = {{.first = TERN_F32, .others = TERN_F32},
                                   {.first = half, .others = half},
                                   {.first = TERN_F32, .others = half},
                                   {.first = half, .others = TERN_F32}};
    int wrong = 0;
    for (int form = 0; form < FORMS; form++)
        TERN_SCOPE {
            char text[64];
            tern_tensor *out[RESULTS] = {NULL};
            const char *expected = l->expected[form], *first = tern_dtype_name(types[form].first),
                       *others = tern_dtype_name(types[form].others);
            int n = run(op, l, types[form], half, out);
            describe(n, out, half, text, sizeof text);
            bool typed = strcmp(expected, "-") == 0 || strcmp(text, expected) == 0;
            bool same = computes_of_casts(op, l, types[form], half, n, out);
            if (!typed)
                print_error("%s%s, %s and %s: %s, not %s\n", l->name, l->arguments, first, others,
                            n < 0 ? tern_last_error() : text, expected);
            if (!same)
                print_error("%s%s, %s and %s: not what comes of inputs cast (%s)\n", l->name,
                            l->arguments, first, others, l->list);
            wrong += !typed || !same;
            tern_clear_error();
        }
    return wrong;
}

static void results_have_the_types_of_pytorchs(void **state)
{
    (void)state;
    const tern_named_op *op;
    int wrong = 0, calls, all = 0;
    for (int i = 0; (op = tern_named_op_at(i)); i++, all += calls) {
        calls = 0;
        for (int k = 0; k < n_lines; k++) {
            const types_of wide = {.first = TERN_F32, .others = TERN_F32};
            tern_tensor *out[RESULTS];
            int n = -1;
            if (strcmp(lines[k].name, tern_named_op_name(op)) != 0)
                continue;
            TERN_SCOPE
                n = run(op, &lines[k], wide, TERN_DTYPE_DEFAULT, out);
            if (n < 0)
                continue; /* a call of another operation of this name */
            calls++;
            wrong += compare(op, &lines[k], TERN_F16) + compare(op, &lines[k], TERN_BF16);
        }
        tern_clear_error();
        if (calls == 0)
            print_error("no call of %s\n", tern_named_op_signature(op));
        wrong += calls == 0;
    }
    print_message("%d calls\n", all);
    assert_int_equal(wrong, 0);
}

/* ---- tensors that are gone ------------------------------------------------------------------- */

static tern_tensor *gone(tern_tensor *x)
{
    tern_tensor *copy = NULL;
    TERN_SCOPE
        copy = tern_clone(x);
    return copy;
}

/* Calls op with *place, one of its tensors, gone; whether it says so. */
static bool refuses(const tern_named_op *op, const call *c, tern_tensor *const *place)
{
    tern_tensor *out[RESULTS], *x = *place;
    memcpy((void *)(uintptr_t)place, &(tern_tensor *){gone(x)}, sizeof x);
    int n = tern_named_op_call(op, c->value, c->n, out, RESULTS);
    bool refused = n < 0 && tern_last_status() == TERN_ERR_STATE &&
                   strstr(tern_last_error(), " is gone: made by clone");
    if (!refused)
        print_error("%s: %d results, %s\n", tern_named_op_signature(op), n, tern_last_error());
    tern_clear_error();
    memcpy((void *)(uintptr_t)place, &x, sizeof x);
    return refused;
}

/* Returns how many tensors of the line's call may be gone without an error. */
static int unnoticed(const tern_named_op *op, const line *l)
{
    char arguments[LINE];
    types_of types = {.first = TERN_F32, .others = TERN_F32};
    call c = {.make = make, .user = &types};
    tern_tensor *out[RESULTS];
    int wrong = 0;
    strcpy(arguments, l->arguments);
    read_values(&c, arguments);
    bool fits = tern_named_op_call(op, c.value, c.n, out, RESULTS) >= 0;
    tern_clear_error(); /* else a call of another operation of this name */
    for (int i = 0; fits && i < c.n; i++) {
        const tern_value *v = &c.value[i];
        if (v->kind == TERN_VALUE_TENSOR)
            wrong += !refuses(op, &c, &v->as.tensor);
        for (int k = 0; v->kind == TERN_VALUE_TENSORS && k < v->count; k++)
            wrong += !refuses(op, &c, &v->as.tensors[k]);
    }
    return wrong;
}

static void tensors_that_are_gone_are_refused(void **state)
{
    (void)state;
    const tern_named_op *op;
    int wrong = 0;
    for (int i = 0; (op = tern_named_op_at(i)); i++)
        for (int k = 0; k < n_lines; k++)
            if (strcmp(lines[k].name, tern_named_op_name(op)) == 0)
                TERN_SCOPE {
                    wrong += unnoticed(op, &lines[k]);
                }
    assert_int_equal(wrong, 0);
}

static int begin(void **state)
{
    (void)state;
    read_lines();
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(lines);
    return 0;
}

static const struct CMUnitTest tests[] = {TEST(results_have_the_types_of_pytorchs),
                                          TEST(tensors_that_are_gone_are_refused)};

int main(void)
{
    return cmocka_run_group_tests(tests, begin, end);
}
