/* row_literals.h -- the macros that elementwise.c expands for each row of elementwise.def,
 * special.def and logic.def: a tern_row, its tern_op literals and its public functions. */

/* The fields of a literal for each value of the columns TYPES and RULE. */
#define TERN_TAKES_BOOLS   TERN_TAKES_ALL
#define PROMOTION_BOOLS    TERN_PROMOTE_BOOL
#define PROMOTION_FLOATS   TERN_PROMOTE_FLOAT
#define PROMOTION_NUMBERS  TERN_PROMOTE_SAME
#define PROMOTION_WHOLES   TERN_PROMOTE_SAME
#define PROMOTION_INTS     TERN_PROMOTE_SAME
#define PROMOTION_ALL      TERN_PROMOTE_SAME
#define PROMOTE_PLAIN      NULL
#define PROMOTE_NEGATION   NULL
#define PROMOTE_DIFFERENCE NULL
#define PROMOTE_BOUNDS     with_bounds
#define PROMOTE_SQUARE     with_integers
#define PROMOTE_ORDERED    NULL
#define PROMOTE_DIVISOR    NULL
#define PROMOTE_SIZE       NULL
#define PROMOTE_RECTIFIER  NULL
#define PROMOTE_GELU       NULL
/* The field .promote of the operations of a tensor and a number. */
#define WITH_SCALAR_PLAIN      with_scalar
#define WITH_SCALAR_TENSORS    with_scalar
#define WITH_SCALAR_SUM        with_scalar
#define WITH_SCALAR_DIVISION   with_scalar
#define WITH_SCALAR_POWER      with_scalar
#define WITH_SCALAR_DIFFERENCE with_scalar_but_bools
static const tern_fusion relu_fusion = {.is_relu = true},
                         gelu_fusion = {.again = tern_gelu_again,
                                        .again_with_gradient = tern_gelu_pair},
                         sum_fusion = {.mixes_dtypes = mixes_halves};
#define UNARY_FUSION(rule)                                                                         \
    ((rule) == TERN_RULE_RECTIFIER ? &relu_fusion : (rule) == TERN_RULE_GELU ? &gelu_fusion : NULL)
#define ADVICE_PLAIN     NULL
#define ADVICE_TENSORS   NULL
#define ADVICE_DIVISION  NULL
#define ADVICE_POWER     NULL
#define ADVICE_BOUNDS    NULL
#define ADVICE_SQUARE    NULL
#define ADVICE_ORDERED   NULL
#define ADVICE_DIVISOR   NULL
#define ADVICE_SIZE      NULL
#define ADVICE_SUM       NULL
#define ADVICE_RECTIFIER NULL
#define ADVICE_GELU      NULL
#define ADVICE_NEGATION                                                                            \
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert "  \
    "a mask, use tern_logical_not instead."
#define ADVICE_DIFFERENCE                                                                          \
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use tern_bitwise_xor " \
    "or tern_logical_xor instead."

/* The attributes of a row: its numbers. In an operation of a tensor and a number, the number is
 * attribute a. */
static const tern_attribute number_names[] = {TERN_FIELD(tern_row_attributes, "a", a),
                                              TERN_FIELD(tern_row_attributes, "b", b),
                                              {{0}, 0, 0, 0}};

/* There are many public functions of rows, so each is only a jump to one of these functions, which
 * call the dispatcher. */
#define ENTER(IN, N, AT)                                                                           \
    (in_place ? tern_apply_in_place(op, IN, N, AT, sizeof *(AT))                                   \
              : tern_apply(op, IN, N, AT, sizeof *(AT)))
static const tern_row_attributes no_numbers;
static tern_tensor *of_one(tern_tensor *x, const tern_op *op, bool in_place)
{
    return ENTER(&x, 1, &no_numbers);
}
static tern_tensor *of_two(tern_tensor *x, tern_tensor *y, const tern_op *op, bool in_place)
{
    tern_tensor *in[] = {x, y};
    return ENTER(in, 2, &no_numbers);
}
static tern_tensor *of_three(tern_tensor *x, tern_tensor *y, tern_tensor *z, tern_scalar a,
                             const tern_op *op, bool in_place)
{
    tern_tensor *in[] = {x, y, z};
    const tern_row_attributes at = {.a = a};
    return ENTER(in, 3, &at);
}
static tern_tensor *of_number(tern_tensor *x, tern_scalar a, const tern_op *op, bool in_place)
{
    const tern_row_attributes at = {.a = a};
    return ENTER(&x, 1, &at);
}
static tern_tensor *of_reals(tern_tensor *x, double a, double b, const tern_op *op, bool in_place)
{
    const tern_row_attributes at = {{TERN_SCALAR_REAL, {a}}, {TERN_SCALAR_REAL, {b}}};
    return ENTER(&x, 1, &at);
}
static tern_tensor *of_real(tern_tensor *x, double a, const tern_op *op, bool in_place)
{
    return of_reals(x, a, 0, op, in_place);
}
#define NOUGHT ((tern_scalar){.kind = TERN_SCALAR_REAL})

/* y = f(x; a, b): the row, its operation, and the two public functions tern_NAME and tern_NAME_.
 * The row and the operation point to each other, so both are declared before the literals. */
#define UNARY_(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX, PROMOTE, NAMES)                          \
    static const tern_op NAME##_op;                                                                \
    static const tern_row NAME##_row = {                                                           \
        .name = #NAME,                                                                             \
        .kind = TERN_ROW_UNARY,                                                                    \
        .rule = TERN_RULE_##RULE,                                                                  \
        .low = LOW,                                                                                \
        .high = HIGH,                                                                              \
        .value = #Y,                                                                               \
        .dx = #DX,                                                                                 \
        .kernel = {TERN_ROW_FAMILY, #NAME},                                                        \
        .gradient_kernel = {TERN_ROW_FAMILY, #NAME "_gradient"},                                   \
        .op = &NAME##_op,                                                                          \
    };                                                                                             \
    static const tern_op NAME##_op = {                                                             \
        .name = #NAME,                                                                             \
        .names = NAMES,                                                                            \
        .promotion = PROMOTION_##TYPES,                                                            \
        .takes = TERN_TAKES_##TYPES,                                                               \
        .advice = ADVICE_##RULE,                                                                   \
        .cast = TERN_CAST_##CAST,                                                                  \
        .promote = PROMOTE,                                                                        \
        .data = &NAME##_row,                                                                       \
        .fusion = UNARY_FUSION(TERN_RULE_##RULE),                                                  \
        .choose_saves = row_saves,                                                                 \
        .infer = row_infer,                                                                        \
        .forward = row_forward,                                                                    \
        .backward = unary_backward,                                                                \
    };

#define UNARY_FUNCTIONS_(NAME, PARAMETERS, APPLY, ...)                                             \
    tern_tensor *tern_##NAME PARAMETERS                                                            \
    {                                                                                              \
        return APPLY(__VA_ARGS__, &NAME##_op, false);                                              \
    }                                                                                              \
    tern_tensor *tern_##NAME##_ PARAMETERS                                                         \
    {                                                                                              \
        return APPLY(__VA_ARGS__, &NAME##_op, true);                                               \
    }
/* Functions of x alone, of x and one or two real numbers, and of x and a scalar that takes part in
 * type promotion. */
#define UNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                           \
    UNARY_(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX, PROMOTE_##RULE, NULL)                        \
    UNARY_FUNCTIONS_(NAME, (tern_tensor * x), of_one, x)
#define UNARY_REAL1(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                     \
    UNARY_(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX, PROMOTE_##RULE, number_names)                \
    UNARY_FUNCTIONS_(NAME, (tern_tensor * x, double a), of_real, x, a)
#define UNARY_REAL2(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                     \
    UNARY_(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX, PROMOTE_##RULE, number_names)                \
    UNARY_FUNCTIONS_(NAME, (tern_tensor * x, double a, double b), of_reals, x, a, b)
#define UNARY_SCALAR(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                    \
    UNARY_(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX, WITH_SCALAR_##RULE, number_names)            \
    UNARY_FUNCTIONS_(NAME, (tern_tensor * x, tern_scalar a), of_number, x, a)

/* The operation z = f(x, y) of two tensors, or of a tensor and a number. */
#define ROW_OP_(OP, NAME, TYPES, CAST, RULE, PROMOTE, NOGRAD, NUMBER, NAMES)                       \
    static const tern_op OP = {                                                                    \
        .name = #NAME,                                                                             \
        .names = NAMES,                                                                            \
        .promotion = PROMOTION_##TYPES,                                                            \
        .of_number = NUMBER,                                                                       \
        .takes_numbers = true,                                                                     \
        .takes = TERN_TAKES_##TYPES,                                                               \
        .stored = (NOGRAD) ? TERN_STORED_READ : TERN_STORED_REFUSED,                               \
        .advice = ADVICE_##RULE,                                                                   \
        .cast = TERN_CAST_##CAST,                                                                  \
        .promote = PROMOTE,                                                                        \
        .not_differentiable = NOGRAD,                                                              \
        .data = &NAME##_row,                                                                       \
        .fusion = TERN_RULE_##RULE == TERN_RULE_SUM ? &sum_fusion : NULL,                          \
        .choose_saves = row_saves,                                                                 \
        .infer = row_infer,                                                                        \
        .forward = row_forward,                                                                    \
        .backward = binary_backward,                                                               \
    };
/* z = f(x, y): a row with two operations, one for a tensor y and one for a number y, each with its
 * own kernel. */
#define BINARY_ROW_(NAME, KIND, TYPES, CAST, RULE, LOW, HIGH, Z, DX, DY)                           \
    static const tern_op NAME##_op, NAME##_scalar_op;                                              \
    static const tern_row NAME##_row = {                                                           \
        .name = #NAME,                                                                             \
        .kind = KIND,                                                                              \
        .rule = TERN_RULE_##RULE,                                                                  \
        .low = LOW,                                                                                \
        .high = HIGH,                                                                              \
        .value = #Z,                                                                               \
        .dx = DX,                                                                                  \
        .dy = DY,                                                                                  \
        .kernel = {TERN_ROW_FAMILY, #NAME},                                                        \
        .scalar_kernel = {TERN_ROW_FAMILY, #NAME "_scalar"},                                       \
        .op = &NAME##_op,                                                                          \
        .scalar_op = &NAME##_scalar_op,                                                            \
    };                                                                                             \
    ROW_OP_(NAME##_op, NAME, TYPES, CAST, RULE, NULL, (KIND) != TERN_ROW_BINARY, false, NULL)      \
    ROW_OP_(NAME##_scalar_op, NAME, TYPES, CAST, RULE, WITH_SCALAR_##RULE,                         \
            (KIND) != TERN_ROW_BINARY, true, number_names)                                         \
    tern_tensor *tern_##NAME(tern_tensor *x, tern_tensor *y)                                       \
    {                                                                                              \
        return of_two(x, y, &NAME##_op, false);                                                    \
    }
#define SCALAR_FORM_(NAME)                                                                         \
    tern_tensor *tern_##NAME##_scalar(tern_tensor *x, tern_scalar y)                               \
    {                                                                                              \
        return of_number(x, y, &NAME##_scalar_op, false);                                          \
    }
#define BINARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Z, DX, DY)                                      \
    BINARY_ROW_(NAME, TERN_ROW_BINARY, TYPES, CAST, RULE, LOW, HIGH, Z, #DX, #DY)                  \
    SCALAR_FORM_(NAME)                                                                             \
    tern_tensor *tern_##NAME##_(tern_tensor *x, tern_tensor *y)                                    \
    {                                                                                              \
        return of_two(x, y, &NAME##_op, true);                                                     \
    }                                                                                              \
    tern_tensor *tern_##NAME##_scalar_(tern_tensor *x, tern_scalar y)                              \
    {                                                                                              \
        return of_number(x, y, &NAME##_scalar_op, true);                                           \
    }
/* Comparisons and predicates return bools, and have no gradient and no in-place function. */
#define COMPARE(NAME, TYPES, RULE, Z)                                                              \
    BINARY_ROW_(NAME, TERN_ROW_COMPARE, TYPES, NONE, RULE, -3, 3, Z, "", "")                       \
    tern_tensor *tern_##NAME##_scalar(tern_tensor *x, tern_scalar y)                               \
    {                                                                                              \
        return compare_number(&NAME##_row, x, y);                                                  \
    }
#define PREDICATE(NAME, TYPES, Z)                                                                  \
    static const tern_op NAME##_op;                                                                \
    static const tern_row NAME##_row = {                                                           \
        .name = #NAME,                                                                             \
        .kind = TERN_ROW_PREDICATE,                                                                \
        .value = #Z,                                                                               \
        .dx = "",                                                                                  \
        .dy = "",                                                                                  \
        .kernel = {TERN_ROW_FAMILY, #NAME},                                                        \
        .op = &NAME##_op,                                                                          \
    };                                                                                             \
    ROW_OP_(NAME##_op, NAME, TYPES, NONE, PLAIN, NULL, true, false, NULL)                          \
    tern_tensor *tern_##NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        return of_one(x, &NAME##_op, false);                                                       \
    }

/* v = f(x, y, z; a): a row, its operation, and its two public functions. */
#define TERNARY_(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ, PARAMETERS, A)                 \
    static const tern_op NAME##_op;                                                                \
    static const tern_row NAME##_row = {                                                           \
        .name = #NAME,                                                                             \
        .kind = TERN_ROW_TERNARY,                                                                  \
        .rule = TERN_RULE_##RULE,                                                                  \
        .low = LOW,                                                                                \
        .high = HIGH,                                                                              \
        .value = #V,                                                                               \
        .dx = #DX,                                                                                 \
        .dy = #DY,                                                                                 \
        .dz = #DZ,                                                                                 \
        .kernel = {TERN_ROW_FAMILY, #NAME},                                                        \
        .op = &NAME##_op,                                                                          \
    };                                                                                             \
    static const tern_op NAME##_op = {                                                             \
        .name = #NAME,                                                                             \
        .names = number_names,                                                                     \
        .promotion = PROMOTION_##TYPES,                                                            \
        .takes_numbers = true,                                                                     \
        .takes = TERN_TAKES_##TYPES,                                                               \
        .advice = ADVICE_##RULE,                                                                   \
        .cast = TERN_CAST_##CAST,                                                                  \
        .data = &NAME##_row,                                                                       \
        .choose_saves = row_saves,                                                                 \
        .infer = row_infer,                                                                        \
        .forward = ternary_forward,                                                                \
        .backward = ternary_backward,                                                              \
    };                                                                                             \
    tern_tensor *tern_##NAME PARAMETERS                                                            \
    {                                                                                              \
        return of_three(x, y, z, A, &NAME##_op, false);                                            \
    }                                                                                              \
    tern_tensor *tern_##NAME##_ PARAMETERS                                                         \
    {                                                                                              \
        return of_three(x, y, z, A, &NAME##_op, true);                                             \
    }
#define TERNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ)                                 \
    TERNARY_(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ,                                    \
             (tern_tensor * x, tern_tensor * y, tern_tensor * z), NOUGHT)
#define TERNARY_SCALAR(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ)                          \
    TERNARY_(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ,                                    \
             (tern_tensor * x, tern_tensor * y, tern_tensor * z, tern_scalar a), a)
