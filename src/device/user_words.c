/* user_words.c -- translates a word of OpenCL C to C++ that includes cl_kernels/user.h. */
#include "device/user_words.h"
#include <ctype.h>
#include <string.h>

/* Functions and types that have the prefix cl_ in user.h: the host's compiler has some of these
 * names itself, and a variable of the user's may have such a name. */
static const char prefixed[] =
    " uchar ushort uint ulong half ptrdiff_t intptr_t uintptr_t mem_fence read_mem_fence "
    "write_mem_fence get_local_id get_group_id get_global_id get_local_size get_num_groups "
    "get_global_size get_global_offset get_work_dim acos acosh asin asinh atan atanh cbrt ceil "
    "cos cosh erf erfc exp exp2 exp10 expm1 fabs floor lgamma log log10 log1p log2 rint round "
    "rsqrt sin sinh sqrt tan tanh tgamma trunc atan2 copysign fdim fmax fmin fmod hypot "
    "nextafter pow powr pown remainder fma mad ldexp frexp modf fract sincos native_cos "
    "native_divide native_exp native_exp2 native_exp10 native_log native_log2 native_log10 "
    "native_powr native_recip native_rsqrt native_sin native_sqrt native_tan half_cos "
    "half_divide half_exp half_exp2 half_exp10 half_log half_log2 half_log10 half_powr "
    "half_recip half_rsqrt half_sin half_sqrt half_tan max min clamp mix step smoothstep sign "
    "degrees radians abs abs_diff add_sat sub_sat hadd rhadd mul24 mad24 mul_hi mad_hi rotate "
    "popcount clz select bitselect any all isnan isinf isfinite isnormal signbit isequal "
    "isnotequal isgreater isgreaterequal isless islessequal dot cross length distance "
    "normalize fast_length fast_distance fast_normalize atomic_add atomic_sub atomic_inc "
    "atomic_dec atomic_min atomic_max atomic_and atomic_or atomic_xor atomic_xchg "
    "atomic_cmpxchg atom_add atom_sub atom_inc atom_dec atom_min atom_max atom_and atom_or "
    "atom_xor atom_xchg atom_cmpxchg prefetch ";
/* Keywords of C++, and names that its compilers predefine. A variable of the user's with such a
 * name gets the prefix cl_ too. */
static const char reserved[] =
    " alignas alignof and and_eq asm bitand bitor catch char16_t char32_t class compl "
    "const_cast constexpr decltype delete dynamic_cast explicit export friend linux "
    "mutable namespace new noexcept not not_eq nullptr operator or or_eq protected public "
    "reinterpret_cast static_assert static_cast std template this thread_local throw try "
    "typeid typename typeof unix using virtual wchar_t xor xor_eq ";
static const char scalars[] =
    " char uchar short ushort int uint long ulong float double half bool size_t ";
static const char of_vectors[] = " char uchar short ushort int uint long ulong float double ";
static const char spaces[] = " __global global __private private __generic generic ";

static bool is_in(const char *list, const char *word, size_t n)
{
    char with_blanks[40];
    if (n == 0 || n + 3 > sizeof with_blanks)
        return false;
    with_blanks[0] = ' ';
    memcpy(with_blanks + 1, word, n);
    memcpy(with_blanks + 1 + n, " ", 2);
    return strstr(list, with_blanks) != NULL;
}

bool tern_word_is(const char *word, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(word, name, n) == 0;
}

/* Returns the width at the end of a word like "float4" and takes its digits from *n; 0 if there is
 * none. */
static int width_of(const char *word, size_t *n)
{
    static const int widths[] = {16, 8, 4, 3, 2};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        size_t digits = widths[i] > 9 ? 2 : 1;
        char text[3] = {(char)('0' + widths[i] % 10)};
        if (widths[i] > 9)
            memcpy(text, "16", 3);
        if (*n > digits && memcmp(word + *n - digits, text, digits) == 0) {
            *n -= digits;
            return widths[i];
        }
    }
    return 0;
}

bool tern_word_is_vector(const char *word, size_t n)
{
    return width_of(word, &n) && is_in(of_vectors, word, n);
}

static bool is_type(const char *word, size_t n)
{
    return is_in(scalars, word, n) || tern_word_is_vector(word, n);
}

static void add_type(tern_text *to, const char *word, size_t n)
{
    bool own = tern_word_is_vector(word, n) || is_in(prefixed, word, n);
    tern_text_add(to, "%s%.*s", own ? "cl_" : "", (int)n, word);
}

/* Translates convert_uchar4_sat_rte to tern_convert_sat_rte<cl_uchar4>, and as_float to
 * tern_as<float>. Returns false, and adds nothing, for another word. */
static bool add_conversion(tern_text *to, const char *word, size_t n)
{
    size_t prefix = n > 8 && memcmp(word, "convert_", 8) == 0 ? 8
                    : n > 3 && memcmp(word, "as_", 3) == 0    ? 3
                                                              : 0;
    size_t type = 0;
    while (prefix && prefix + type < n && word[prefix + type] != '_')
        type++;
    if (!prefix || !is_type(word + prefix, type))
        return false;
    tern_text_add(to, "tern_%.*s%.*s<", (int)prefix - 1, word, (int)(n - prefix - type),
                  word + prefix + type);
    add_type(to, word + prefix, type);
    tern_text_add(to, ">");
    return true;
}

/* Translates vload4 to tern_vload<4>, and vstore_half2_rte to tern_vstore_half_rte<2>. Returns
 * false, and adds nothing, for another word. */
static bool add_load(tern_text *to, const char *word, size_t n)
{
    static const char *const names[] = {"vloada_half", "vstorea_half", "vload_half",
                                        "vstore_half", "vload",        "vstore"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t name = strlen(names[i]), digits = 0;
        if (n < name || memcmp(word, names[i], name) != 0)
            continue;
        while (name + digits < n && isdigit((unsigned char)word[name + digits]))
            digits++;
        size_t rest = n - name - digits;
        if ((digits == 0 && i > 3) || (rest && memcmp(word + name + digits, "_rt", 3) != 0))
            return false;
        tern_text_add(to, "tern_%s%.*s<%.*s>", names[i], (int)rest, word + name + digits,
                      digits ? (int)digits : 1, digits ? word + name : "1");
        return true;
    }
    return false;
}

void tern_word_add(tern_text *to, const char *word, size_t n)
{
    if (is_in(spaces, word, n))
        return;
    if (tern_word_is(word, n, "kernel") || tern_word_is(word, n, "__kernel"))
        tern_text_add(to, "TERN_KERNEL");
    else if (tern_word_is(word, n, "restrict"))
        tern_text_add(to, "__restrict__");
    else if (tern_word_is(word, n, "barrier") || tern_word_is(word, n, "work_group_barrier"))
        tern_text_add(to, "cl_barrier");
    else if (is_in(reserved, word, n) || is_in(prefixed, word, n) || tern_word_is_vector(word, n))
        tern_text_add(to, "cl_%.*s", (int)n, word);
    else if (!add_conversion(to, word, n) && !add_load(to, word, n))
        tern_text_add_bytes(to, word, n);
}

/* ---- swizzles ---------------------------------------------------------------------------- */

int tern_word_swizzle(const char *word, size_t n, char digits[17])
{
    static const char letters[] = "xyzw", hex[] = "0123456789abcdef";
    bool numbered = n > 1 && n < 18 && (word[0] == 's' || word[0] == 'S');
    size_t from = numbered ? 1 : 0;
    if (!numbered && (n < 2 || n > 4))
        return 0;
    for (size_t i = from; i < n; i++) {
        const char *at =
            numbered ? strchr(hex, tolower((unsigned char)word[i])) : strchr(letters, word[i]);
        if (!at)
            return 0;
        digits[i - from] = numbered ? *at : (char)('0' + (at - letters));
    }
    digits[n - from] = '\0';
    return (int)(n - from);
}
