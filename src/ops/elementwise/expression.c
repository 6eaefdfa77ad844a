/* expression.c -- evaluates the gradient formulas of elementwise.def with public operations, so
 * that a gradient has gradients itself, to any order.
 *
 * Grammar, as in C:  choice := or ['?' choice ':' choice]     or := and {'||' and}
 *   and := compare {'&&' compare}   compare := sum [op sum]   sum := product {('+'|'-') product}
 *   product := factor {('*'|'/') factor}
 *   factor := '-' factor | '(' choice ')' | number | name | name '(' choice {',' choice} ')'
 * A value is a tensor or a number; an operation of two numbers gives a number. The reader is a
 * recursive descent parser with one function for each level of precedence, which evaluates while it
 * reads, without a syntax tree. The library's own formulas are not checked for correct syntax. */
#include "ops/elementwise/expression.h"
#include "base/os.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <tern/ops.h>

/* The value of a part of the expression. */
typedef struct value {
    tern_tensor *tensor; /* NULL: the value is the number */
    double number;
    bool failed;
} value;

/* The position of the reader in the text, and the values of the names in the text. */
typedef struct reader {
    const char *at;
    const tern_variable *variables;
    int n;
    tern_function_call call;
} reader;

static value choice(reader *r);

static value number(double v)
{
    return (value){.number = v};
}

static value tensor(tern_tensor *t)
{
    return (value){.tensor = t, .failed = t == NULL};
}

/* Skips white space. Then, if the token is next, skips the token and returns true. */
static bool accept(reader *r, const char *token)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
    if (*r->at != *token) /* the most frequent result */
        return false;
    size_t n = strlen(token);
    if (strncmp(r->at, token, n) != 0)
        return false;
    if (n == 1 && strchr("<>=!", token[0]) && r->at[1] == '=')
        return false; /* "<" is not the beginning of "<=" */
    r->at += n;
    return true;
}

/* An operator for the four cases tensor-tensor, tensor-number, number-tensor, number-number. In the
 * third case the operands are swapped: 1 - x is rsub, 1 < x is x > 1. */
typedef struct binary {
    const char *token;
    tern_tensor *(*both)(tern_tensor *, tern_tensor *);
    tern_tensor *(*right_number)(tern_tensor *, tern_scalar);
    tern_tensor *(*left_number)(tern_tensor *, tern_scalar); /* number op tensor */
    double (*numbers)(double, double);
} binary;

static double add(double a, double b)
{
    return a + b;
}
static double sub(double a, double b)
{
    return a - b;
}
static double mul(double a, double b)
{
    return a * b;
}
static double divide(double a, double b)
{
    return a / b;
}
static double lt(double a, double b)
{
    return a < b;
}
static double le(double a, double b)
{
    return a <= b;
}
static double gt(double a, double b)
{
    return a > b;
}
static double ge(double a, double b)
{
    return a >= b;
}
static double eq(double a, double b)
{
    return a == b;
}
static double ne(double a, double b)
{
    return a != b;
}
static double and (double a, double b)
{
    return a != 0 && b != 0;
}
static double or (double a, double b)
{
    return a != 0 || b != 0;
}

static const binary sums[] = {{"+", tern_add, tern_add_scalar, tern_add_scalar, add},
                              {"-", tern_sub, tern_sub_scalar, tern_rsub_scalar, sub}};
static const binary products[] = {{"*", tern_mul, tern_mul_scalar, tern_mul_scalar, mul},
                                  {"/", tern_div, tern_div_scalar, tern_rdiv_scalar, divide}};
/* "<=" comes before "<", which is a prefix of it. */
static const binary compares[] = {{"<=", tern_le, tern_le_scalar, tern_ge_scalar, le},
                                  {">=", tern_ge, tern_ge_scalar, tern_le_scalar, ge},
                                  {"==", tern_eq, tern_eq_scalar, tern_eq_scalar, eq},
                                  {"!=", tern_ne, tern_ne_scalar, tern_ne_scalar, ne},
                                  {"<", tern_lt, tern_lt_scalar, tern_gt_scalar, lt},
                                  {">", tern_gt, tern_gt_scalar, tern_lt_scalar, gt}};
static const binary ands[] = {
    {"&&", tern_logical_and, tern_logical_and_scalar, tern_logical_and_scalar, and}};
static const binary ors[] = {
    {"||", tern_logical_or, tern_logical_or_scalar, tern_logical_or_scalar, or }};

/* Returns a op b. A failure of either operand is passed on. */
static value apply_binary(const binary *op, value a, value b)
{
    if (a.failed || b.failed)
        return tensor(NULL);
    if (!a.tensor && !b.tensor)
        return number(op->numbers(a.number, b.number));
    if (!b.tensor)
        return tensor(op->right_number(a.tensor, tern_scalar_real(b.number)));
    if (!a.tensor)
        return tensor(op->left_number(b.tensor, tern_scalar_real(a.number)));
    return tensor(op->both(a.tensor, b.tensor));
}

/* part {op part}, evaluated from left to right. */
static value chain(reader *r, const binary *ops, int n, value (*part)(reader *))
{
    value v = part(r);
    for (int i = 0; i < n; i++)
        if (accept(r, ops[i].token)) {
            v = apply_binary(&ops[i], v, part(r));
            i = -1; /* any of the operators may be next */
        }
    return v;
}

/* Returns the tensor or number that a name stands for. */
static value variable(reader *r, const char *name, size_t length)
{
    for (int i = 0; i < r->n; i++)
        if (strlen(r->variables[i].name) == length &&
            memcmp(r->variables[i].name, name, length) == 0)
            return r->variables[i].tensor ? tensor(r->variables[i].tensor)
                                          : number(r->variables[i].number);
    tern_fail(TERN_ERR_UNSUPPORTED, "tern_backward: the gradient expression has no value for %.*s",
              (int)length, name);
    return tensor(NULL);
}

/* Returns v as a tensor. A number gets the dtype and the device of the other operand. */
static tern_tensor *beside(value v, const tern_tensor *other)
{
    if (v.tensor)
        return v.tensor;
    return tern_tensor_scalar(tern_scalar_real(v.number), other->dtype, tern_device(other));
}

/* Evaluates name(x) or name(x, y), after the "(". In kernels C(x) converts a constant to their
 * type; here it returns x. */
static value call_function(reader *r, const char *name, size_t length)
{
    value args[2] = {choice(r), {0}};
    int n = 1;
    if (accept(r, ","))
        args[n++] = choice(r);
    accept(r, ")");
    if (length == 1 && *name == 'C')
        return args[0];
    if (args[0].failed || args[1].failed)
        return tensor(NULL);
    tern_tensor *other = args[0].tensor ? args[0].tensor : args[1].tensor;
    if (!other) /* two numbers: the first variable decides the dtype */
        other = r->variables[0].tensor;
    tern_tensor *in[2] = {beside(args[0], other), n > 1 ? beside(args[1], other) : NULL};
    return tensor(r->call(name, length, in, n));
}

/* Evaluates the level of highest precedence: a sign, parentheses, a number, a name or a call. */
static value factor(reader *r)
{
    if (accept(r, "-")) {
        value v = factor(r);
        return v.tensor ? tensor(tern_neg(v.tensor)) : number(-v.number);
    }
    if (accept(r, "(")) {
        value v = choice(r);
        accept(r, ")");
        return v;
    }
    while (isspace((unsigned char)*r->at))
        r->at++;
    const char *start = r->at;
    if (isdigit((unsigned char)*start)) {
        char *end;
        double v = tern_os_strtod(start, &end);
        r->at = end;
        return number(v);
    }
    while (isalnum((unsigned char)*r->at) || *r->at == '_')
        r->at++;
    size_t length = (size_t)(r->at - start);
    return accept(r, "(") ? call_function(r, start, length) : variable(r, start, length);
}

/* The levels of lower precedence. Each is a chain of operands of the next higher level. */
static value product(reader *r)
{
    return chain(r, products, 2, factor);
}
static value sum(reader *r)
{
    return chain(r, sums, 2, product);
}
static value compare(reader *r)
{
    return chain(r, compares, 6, sum);
}
static value conjunction(reader *r)
{
    return chain(r, ands, 1, compare);
}
static value disjunction(reader *r)
{
    return chain(r, ors, 1, conjunction);
}

/* Evaluates c ? a : b. For a tensor c this is where(c, a, b): both branches are computed. */
static value choice(reader *r)
{
    value condition = disjunction(r);
    if (!accept(r, "?"))
        return condition;
    value yes = choice(r);
    accept(r, ":");
    value no = choice(r);
    if (condition.failed || yes.failed || no.failed)
        return tensor(NULL);
    if (!condition.tensor)
        return condition.number != 0 ? yes : no;
    tern_tensor *other = yes.tensor ? yes.tensor : no.tensor;
    if (!other) /* two numbers: the first variable decides the dtype */
        other = r->variables[0].tensor;
    return tensor(tern_where(condition.tensor, beside(yes, other), beside(no, other)));
}

tern_tensor *tern_expression(const char *text, const tern_variable *variables, int n,
                             tern_function_call call)
{
    reader r = {text, variables, n, call};
    value v = choice(&r);
    if (v.failed)
        return NULL;
    if (v.tensor)
        return v.tensor;
    return tern_full_like(variables[0].tensor, tern_scalar_real(v.number));
}

bool tern_expression_uses(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = text; (p = strstr(p, name)); p++) {
        bool begins = p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');
        bool ends = !(isalnum((unsigned char)p[n]) || p[n] == '_');
        if (begins && ends)
            return true;
    }
    return false;
}
