/* export_formula.c -- formulas in postfix form that export elementwise operations to ONNX.
 *
 *   x y z          inputs; y is the scalar `a` of an operation that has a scalar instead
 *   a b value 0.5  numbers with the dtype of x: attributes of the operation, or constants
 *   Abs            a node whose input is the last value; Mul: has two inputs, Where:: three
 *   alpha=a        an attribute of the last node: an attribute of the operation, a number, a text
 *                  ('text) or an integer (#1) */
#include "io/onnx/export.h"
#include "base/os.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each line is a name, blanks and a formula. Formulas for integers have .i after the name and come
 * first. */
static const char formulas[] = "add x y Add:\n"
                               "sub x y Sub:\n"
                               "mul x y Mul:\n"
                               "div x y Div:\n"
                               "pow x y Pow:\n"
                               "maximum x y Max:\n"
                               "minimum x y Min:\n"
                               "clamp_min x y Max:\n"
                               "clamp_max x y Min:\n"
                               "addcmul x y z Mul: a Mul: Add:\n"
                               "addcdiv x y z Div: a Mul: Add:\n"
                               "lerp x y x Sub: z Mul: Add:\n"
                               "lerp_number x y x Sub: a Mul: Add:\n"
                               "rsub_scalar a x Sub:\n"
                               "rdiv_scalar a x Div:\n"
                               "rpow_scalar a x Pow:\n"
                               "neg x Neg\n"
                               "abs x Abs\n"
                               "square x x Mul:\n"
                               "reciprocal x Reciprocal\n"
                               "clamp x a b Clip::\n"
                               "exp x Exp\n"
                               "log x Log\n"
                               "sqrt x Sqrt\n"
                               "rsqrt x Sqrt Reciprocal\n"
                               "sin x Sin\n"
                               "cos x Cos\n"
                               "tan x Tan\n"
                               "asin x Asin\n"
                               "acos x Acos\n"
                               "atan x Atan\n"
                               "sinh x Sinh\n"
                               "cosh x Cosh\n"
                               "asinh x Asinh\n"
                               "acosh x Acosh\n"
                               "atanh x Atanh\n"
                               "tanh x Tanh\n"
                               "erf x Erf\n"
                               "erfc 1 x Erf Sub:\n"
                               "sigmoid x Sigmoid\n"
                               "relu x Relu\n"
                               "relu6 x 0 6 Clip::\n"
                               "silu x x Sigmoid Mul:\n"
                               "gelu x Gelu\n"
                               "gelu_tanh x Gelu approximate='tanh\n"
                               "leaky_relu x LeakyRelu alpha=a\n"
                               "elu x Elu alpha=a\n"
                               "celu x Celu alpha=a\n"
                               "selu x Selu\n"
                               "softplus x a Mul: Softplus a Div:\n"
                               "hardtanh x a b Clip::\n"
                               "hardswish x HardSwish\n"
                               "hardsigmoid x HardSigmoid alpha=0.16666666666666667 beta=0.5\n"
                               "hardshrink x Shrink lambd=a\n"
                               "softshrink x Shrink lambd=a bias=a\n"
                               "tanhshrink x x Tanh Sub:\n"
                               "threshold x a Greater: x b Where::\n"
                               "softsign x Softsign\n"
                               "mish x x Softplus Tanh Mul:\n"
                               "logsigmoid x Neg Softplus Neg\n"
                               "prelu_kernel x y PRelu:\n"
                               "fmod x y Mod: fmod=#1\n"
                               "remainder.i x y Mod:\n"
                               "remainder x x y Div: Floor y Mul: Sub:\n"
                               "floor_divide.i x x y Mod: Sub: y Div:\n"
                               "floor_divide x y Div: Floor\n"
                               "trunc_divide.i x y Div:\n"
                               "sign x Sign\n"
                               "deg2rad x 0.017453292519943295 Mul:\n"
                               "rad2deg x 57.29577951308232 Mul:\n"
                               "floor x Floor\n"
                               "ceil x Ceil\n"
                               "round x Round\n"
                               "trunc x Sign x Abs Floor Mul:\n"
                               "frac x x Sign x Abs Floor Mul: Sub:\n"
                               "exp2 2 x Pow:\n"
                               "expm1 x Exp 1 Sub:\n"
                               "log2 x Log 1.4426950408889634 Mul:\n"
                               "log10 x Log 0.4342944819032518 Mul:\n"
                               "log1p x 1 Add: Log\n"
                               "logaddexp x y Max: x y Sub: Abs Neg Exp 1 Add: Log Add:\n"
                               "hypot x x Mul: y y Mul: Add: Sqrt\n"
                               "eq x y Equal:\n"
                               "ne x y Equal: Not\n"
                               "lt x y Less:\n"
                               "le x y LessOrEqual:\n"
                               "gt x y Greater:\n"
                               "ge x y GreaterOrEqual:\n"
                               "logical_and x y And:\n"
                               "logical_or x y Or:\n"
                               "logical_xor x y Xor:\n"
                               "logical_not x Not\n"
                               "isnan x IsNaN\n"
                               "isinf x IsInf\n"
                               "isposinf x IsInf detect_negative=#0\n"
                               "isneginf x IsInf detect_positive=#0\n"
                               "linalg_det x Det\n"
                               "bitwise_and.i x y BitwiseAnd:\n"
                               "bitwise_and x y And:\n"
                               "bitwise_or.i x y BitwiseOr:\n"
                               "bitwise_or x y Or:\n"
                               "bitwise_xor.i x y BitwiseXor:\n"
                               "bitwise_xor x y Xor:\n"
                               "bitwise_not.i x BitwiseNot\n"
                               "bitwise_not x Not\n"
                               "isfinite x x Sub: 0 Equal:\n"
                               "where x y z Where::\n"
                               "masked_fill y value x Where::\n";

const char *onnx_find_formula(const char *name, bool whole)
{
    size_t n = strlen(name);
    for (const char *line = formulas; *line; line = strchr(line, '\n') + 1)
        if (!strncmp(line, name, n) &&
            (line[n] == ' ' || (whole && line[n] == '.' && line[n + 1] == 'i')))
            return strchr(line, ' ') + 1;
    return NULL;
}

/* Returns the number that a token names or denotes. */
static double number_of(onnx_export *w, const char *token)
{
    return isdigit((unsigned char)*token) ? tern_os_strtod(token, NULL)
                                          : onnx_attr_number(w, token);
}

/* Adds an attribute from a token of the form name=value to the last node. */
static void put_attribute(onnx_export *w, char *token)
{
    char *what = strchr(token, '=');
    *what++ = 0;
    if (*what == '\'')
        onnx_put_text(w, token, what + 1);
    else if (*what == '#')
        onnx_put_int(w, token, atoi(what + 1));
    else
        onnx_put_real(w, token, number_of(w, what));
}

/* Returns the value of a token that is not a node: an input or a number. */
static const char *operand(onnx_export *w, const char *token)
{
    int input = token[1] ? -1 : *token == 'x' ? 0 : *token == 'y' ? 1 : *token == 'z' ? 2 : -1;
    if (input >= 0 && onnx_has(w, input))
        return onnx_in_name(w, input);
    return onnx_number(w, number_of(w, input == 1 ? "a" : token), onnx_in_dtype(w, 0));
}

tern_status onnx_write_formula(onnx_export *w, const tern_traced_call *c)
{
    const char *stack[8];
    int n = 0;
    char token[40];
    tern_dtype dtype = onnx_in_dtype(w, 0);
    bool whole = !tern_dtype_is_floating_point(dtype) && dtype != TERN_BOOL;
    const char *at = onnx_find_formula(c->op, whole);
    for (int length; *at != '\n' && sscanf(at, "%39s%n", token, &length) == 1;) {
        at += length;
        char *colon = strchr(token, ':');
        int arity = colon ? 1 + (int)strlen(colon) : 1;
        if (strchr(token, '=')) {
            put_attribute(w, token);
        } else if (isupper((unsigned char)*token)) {
            if (colon)
                *colon = 0;
            n -= arity;
            stack[n] = onnx_emit(w, token, stack + n, arity);
            n++;
        } else {
            stack[n++] = operand(w, token);
        }
    }
    return onnx_done(w, stack[0]);
}
