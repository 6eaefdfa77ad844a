/* row_tiles.h -- what the rows of a .def file become on the host: functions over a range of dense
 * elements, a whole number of blocks, for TERN_T f32, f64 and i64; or, where TERN_ROW_TABLE is 1,
 * the table of those functions. device/cpu/row_run.c brings every other type, stride and form to
 * them, so that a row costs one loop for its value and one for its gradient. */
#undef UNARY
#undef UNARY_REAL1
#undef UNARY_REAL2
#undef UNARY_SCALAR
#undef BINARY
#undef TERNARY
#undef TERNARY_SCALAR
#undef COMPARE
#undef PREDICATE

/* Whether the type has rows of these types: all integers and bool go through i64. */
#undef TILES_FLOATS
#undef TILES_BOOLS
#undef TILES_INTS
#undef TILES_WHOLES
#undef TILES_NUMBERS
#undef TILES_ALL
#define TILES_FLOATS  TERN_CAT(ONLY, IS_FLOAT)
#define TILES_BOOLS   TERN_CAT(ONLY, IS_WHOLE)
#define TILES_INTS    TERN_CAT(ONLY, IS_WHOLE)
#define TILES_WHOLES  TERN_CAT(ONLY, IS_WHOLE)
#define TILES_NUMBERS ONLY_1
#define TILES_ALL     ONLY_1
#undef ONLY_0
#undef ONLY_1
#define ONLY_0(...)
#define ONLY_1(...) __VA_ARGS__

#if TERN_ROW_TABLE
#define ROW_(NAME, GRADIENT, INPUTS, NUMBERS, LOGICAL, FLIPS)                                      \
    {#NAME, K(NAME##_tile), GRADIENT, INPUTS, NUMBERS, LOGICAL, FLIPS},
/* Of the rules of UNARY the one that says what happens to the bits of a float. */
#define FLIPS_PLAIN      0
#define FLIPS_GELU       0
#define FLIPS_BOUNDS     0
#define FLIPS_DIFFERENCE 0
#define FLIPS_DIVISOR    0
#define FLIPS_ORDERED    0
#define FLIPS_RECTIFIER  0
#define FLIPS_SIZE       0
#define FLIPS_SQUARE     0
#define FLIPS_NEGATION   0x8000
#define UNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                           \
    TILES_##TYPES(                                                                                 \
        ROW_(NAME, TERN_CAT(GRADIENT_OF, IS_FLOAT)(NAME), 1, 2, 0, FLIPS_##RULE))
#define GRADIENT_OF_0(NAME) 0
#define GRADIENT_OF_1(NAME) K(NAME##_gradient_tile)
#define BINARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Z, DX, DY)                                      \
    TILES_##TYPES(ROW_(NAME, 0, 2, 0, 0, 0))
#define TERNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ)                                 \
    TILES_##TYPES(ROW_(NAME, 0, 3, 1, 0, 0))
#define COMPARE(NAME, TYPES, RULE, Z) TILES_##TYPES(ROW_(NAME, 0, 2, 0, 1, 0))
#define PREDICATE(NAME, TYPES, Z) TILES_##TYPES(ROW_(NAME, 0, 1, 0, 1, 0))
#else
#define TILE_(NAME, T, LOAD, V)                                                                    \
    static void K(NAME)(void *out, const void *const *in, idx n, const void *numbers)              \
    {                                                                                              \
        T *outs = out;                                                                             \
        const REAL *in0 = in[0], *in1 = in[1], *in2 = in[2];                                       \
        const REAL a = ((const REAL *)numbers)[0], b = ((const REAL *)numbers)[1];                 \
        n &= -(idx)TERN_ROW_BLOCK; /* so that compilers write no loop for a rest */                \
        SIMD for (idx j = 0; j < n; j++)                                                           \
        {                                                                                          \
            LOAD                                                                                   \
            outs[j] = (T)(V);                                                                      \
        }                                                                                          \
    }
#define X_    REAL x = in0[j];
#define XY_   REAL x = in0[j], y = in1[j];
#define XYZ_  REAL x = in0[j], y = in1[j], z = in2[j];
#define XYDY_ REAL x = in0[j], y = in1[j], dy = in2[j];
#define UNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                           \
    TILES_##TYPES(TILE_(NAME##_tile, REAL, X_, Y))                                                 \
    TILES_FLOATS(TILE_(NAME##_gradient_tile, REAL, XYDY_, DX))
#define BINARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Z, DX, DY)                                      \
    TILES_##TYPES(TILE_(NAME##_tile, REAL, XY_, Z))
#define TERNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ)                                 \
    TILES_##TYPES(TILE_(NAME##_tile, REAL, XYZ_, V))
#define COMPARE(NAME, TYPES, RULE, Z) TILES_##TYPES(TILE_(NAME##_tile, u8, XY_, Z))
#define PREDICATE(NAME, TYPES, Z) TILES_##TYPES(TILE_(NAME##_tile, u8, X_, Z))
#endif
#define UNARY_REAL1  UNARY
#define UNARY_REAL2  UNARY
#define UNARY_SCALAR UNARY
#define TERNARY_SCALAR TERNARY
