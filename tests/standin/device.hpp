/* device.hpp -- what CUDA C++ has and C++ has not, for programs that the machine's C++ compiler
 * makes on the stand-in: the items of a block take turns on one thread, and PTX of inline assembly
 * is done as its manual says (PTX ISA, "Instruction Set"), by the items of a warp together where it
 * is an instruction of a warp. */
#include "../../src/base/os_context.h"
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

/* Every program is compiled with this: it has no templates of the C++ library, whose members take
 * the compiler longer than a kernel. */
namespace standin {
struct size {
    unsigned x, y, z;
};
enum state { READY, AT_BARRIER, AT_WARP, OVER };
enum { WARP = 32, MOST = 1024 };
struct item {
    tern_context at;
    char *stack;
    state is;
    ~item() { delete[] stack; }
};
static item items[MOST];
static tern_context group;
static unsigned current, turns[MOST];

[[noreturn]] static void stop(const char *why, const char *what)
{
    fprintf(stderr, "stand-in for a GPU: %s: %s\n", why, what);
    abort();
}

/* Until the others of the block, or of the warp, are there. */
static void wait(state is)
{
    items[current].is = is;
    tern_context_swap(&items[current].at, &group);
}

/* What the items of a warp bring to an instruction; one is at most one instruction ahead. */
struct brought {
    uint32_t words[16];
    const char *from;
};
static const brought *bring(const brought &own)
{
    static brought slots[2][MOST];
    brought *all = slots[turns[current]++ & 1];
    all[current] = own;
    wait(AT_WARP);
    return all + current / WARP * WARP;
}
static unsigned lane()
{
    return current % WARP;
}
static char shared_begins[16]; /* addresses of shared memory are counted from here */

/* ---- halves ---- */
static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static float from_half(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    float f = exponent == 31  ? (mantissa ? NAN : INFINITY)
              : exponent == 0 ? (float)mantissa * 0x1p-24f
                              : float_of((uint32_t)(exponent + 112) << 23 | (uint32_t)mantissa << 13);
    return h & 0x8000 ? -f : f;
}
static uint16_t to_half(float f)
{
    uint16_t sign = (uint16_t)(bits_of(f) >> 16 & 0x8000);
    int exponent;
    float a = std::fabs(f);
    if (std::isnan(f))
        return 0x7fff;
    if (a >= 65520)
        return sign | 0x7c00;
    if (a == 0)
        return sign;
    std::frexp(a, &exponent);
    exponent = exponent < -13 ? -13 : exponent; /* the last place is 2^(exponent - 11) */
    int units = (int)std::nearbyint(std::ldexp(a, 11 - exponent));
    return (uint16_t)(sign + units + (exponent + 13) * 1024);
}
static float from_bfloat(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}
static uint16_t to_bfloat(float f)
{
    uint32_t u = bits_of(f);
    return std::isnan(f) ? 0x7fff : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* ---- PTX ---- */
/* An operand: one register or several in braces, [an address], or a number. */
struct operand {
    int registers[8];
    size_t n;
    uint32_t number;
};
struct instruction {
    const char *text;
    instruction *next;
    char name[96];
    operand operands[8];
    size_t n;
    bool bf16, tf32; /* what an mma multiplies, if not float16 */
    bool has(const char *part) const { return strstr(name, part) != nullptr; }
    operand &add()
    {
        if (n == sizeof operands / sizeof *operands)
            stop("too many operands", name);
        return operands[n++];
    }
};

static void read(const char *text, instruction &i)
{
    while (*text == ' ')
        text++;
    size_t n = strcspn(text, " ;");
    if (n >= sizeof i.name)
        stop("too long", text);
    memcpy(i.name, text, n);
    i.bf16 = i.has(".bf16.bf16.");
    i.tf32 = i.has(".tf32.tf32.");
    bool inside = false;
    for (text += n; *text && *text != ';';) {
        if (*text == '{' || *text == '[') {
            i.add();
            inside = true;
        } else if (*text == '}' || *text == ']') {
            inside = false;
        } else if (*text == '%' || (*text >= '0' && *text <= '9')) {
            bool is_register = *text == '%';
            char *end;
            unsigned long value = strtoul(text + is_register, &end, 0);
            operand &last = inside ? i.operands[i.n - 1] : i.add();
            if (last.n == sizeof last.registers / sizeof *last.registers)
                stop("too many registers", i.name);
            if (is_register)
                last.registers[last.n++] = (int)value;
            else
                last.number = (uint32_t)value;
            text = end;
            continue;
        }
        text++;
    }
}

struct registers {
    void *const *at;
    const instruction &i;
    template <class T> T &of(size_t operand, size_t n = 0) const
    {
        if (operand >= i.n || n >= i.operands[operand].n)
            stop("an operand is missing", i.name);
        return *(T *)at[i.operands[operand].registers[n]];
    }
    uint32_t word(size_t operand) const
    {
        return operand < i.n && !i.operands[operand].n ? i.operands[operand].number
                                                       : of<uint32_t>(operand);
    }
};

/* The number of float32 that is nearest with 11 bits, of two the one further from 0. */
static uint32_t to_tf32(float f)
{
    uint32_t u = bits_of(f);
    return std::isnan(f) ? 0x7fffffff : (u + 0x1000) & ~0x1fffu;
}

/* D (16, 8) = A (16, 16) B (16, 8) + C: "Matrix Fragments for mma.m16n8k16"; and of TensorFloat-32
 * numbers A (16, 8) B (8, 8): "... for mma.m16n8k8", whose bits below the 11 are not looked at. Of
 * each operand a lane has registers of two halves, or of one float; it brings them as floats. */
static void multiply(const registers &r)
{
    brought own = {};
    const bool tf32 = r.i.tf32;
    const int each = tf32 ? 1 : 2;
    const char *wrong = getenv("TERN_STANDIN_MATRIX");
    const int shift = wrong && strcmp(wrong, "wrong") == 0;
    for (size_t k = 0; k < 6; k++) {
        const uint32_t word = k < 4 ? r.of<uint32_t>(1, k) : r.of<uint32_t>(2, k - 4);
        for (int h = 0; h < each; h++) {
            const uint16_t half = (uint16_t)(word >> 16 * h);
            own.words[each * k + h] = tf32       ? word & ~0x1fffu
                                      : r.i.bf16 ? (uint32_t)half << 16
                                                 : bits_of(from_half(half));
        }
    }
    const brought *all = bring(own);
    for (int e = 0; e < 4; e++) {
        int row = (int)(lane() / 4 + shift) % 8 + (e < 2 ? 0 : 8), column = (int)lane() % 4 * 2 + e % 2;
        float sum = r.of<float>(3, (size_t)e);
        /* A lane's columns, or rows of B, are so many from each * (lane % 4) on, and those that many places further. */
        const brought *x = all + row % 8 * 4, *y = all + column * 4;
        for (int k = 0; k < 8 * each; k++) {
            const int from = k / each % 4, further = k >= 4 * each, h = k % each;
            sum += float_of(x[from].words[each * ((row >= 8) + further * 2) + h]) *
                   float_of(y[from].words[each * (4 + further) + h]);
        }
        r.of<float>(0, (size_t)e) = sum;
    }
}

/* Four matrices of 8 x 8 halves, of which lane 8 m + i points to row i of matrix m: "ldmatrix". A
 * lane gets two neighbours of row lane / 4; with .trans, of column lane / 4. */
static void load_matrices(const registers &r)
{
    brought own = {};
    own.from = shared_begins + (int32_t)r.of<uint32_t>(1);
    if ((uintptr_t)own.from % 16)
        stop("a row of a matrix that is not at a multiple of 16 bytes", r.i.name);
    const brought *all = bring(own);
    const bool turned = r.i.has(".trans");
    for (size_t m = 0; m < 4; m++) {
        uint16_t pair[2];
        for (unsigned k = 0; k < 2; k++) {
            unsigned at[2] = {lane() / 4, lane() % 4 * 2 + k};
            memcpy(&pair[k], all[8 * m + at[turned]].from + 2 * at[!turned], 2);
        }
        memcpy(&r.of<uint32_t>(0, m), pair, 4);
    }
}

/* Each statement of a program is read once. */
static struct statements {
    instruction *first[256];
    ~statements()
    {
        for (instruction *i : first)
            for (instruction *next; i; i = next) {
                next = i->next;
                delete i;
            }
    }
} statements;
static const instruction &known(const char *text)
{
    instruction *&first = statements.first[((uintptr_t)text >> 4) % 256];
    instruction *i = first;
    while (i && i->text != text)
        i = i->next;
    if (!i) {
        i = new instruction();
        read(text, *i);
        i->text = text;
        i->next = first;
        first = i;
    }
    return *i;
}

static void execute(const char *text, void *const *at)
{
    const instruction &i = known(text);
    const registers r = {at, i};
    auto is = [&](const char *name) { return strcmp(i.name, name) == 0; };
    if (is("")) {
    } else if (is("cvt.f32.f16")) {
        r.of<float>(0) = from_half(r.of<uint16_t>(1));
    } else if (is("cvt.rn.f16.f32")) {
        r.of<uint16_t>(0) = to_half(r.of<float>(1));
    } else if (is("cvt.rn.f16x2.f32")) { /* the first is the upper half */
        r.of<uint32_t>(0) = (uint32_t)to_half(r.of<float>(1)) << 16 | to_half(r.of<float>(2));
    } else if (is("cvt.rn.bf16x2.f32")) {
        r.of<uint32_t>(0) = (uint32_t)to_bfloat(r.of<float>(1)) << 16 | to_bfloat(r.of<float>(2));
    } else if (is("cvt.rna.tf32.f32")) {
        r.of<uint32_t>(0) = to_tf32(r.of<float>(1));
    } else if (is("ex2.approx.ftz.f32")) {
        float y = std::exp2(r.of<float>(1));
        r.of<float>(0) = std::fabs(y) < 0x1p-126f ? 0 : y;
    } else if (is("lg2.approx.ftz.f32")) {
        float x = r.of<float>(1);
        r.of<float>(0) = std::log2(std::fabs(x) < 0x1p-126f ? 0 : x);
    } else if (is("shfl.sync.bfly.b32")) {
        brought own = {{r.of<uint32_t>(1)}};
        if (r.word(3) != 31 || r.word(4) != 0xffffffffu)
            stop("a shuffle of a part of a warp", text);
        unsigned from = lane() ^ r.word(2);
        r.of<uint32_t>(0) = bring(own)[from].words[0];
    } else if (i.has("ldmatrix.sync.aligned.m8n8.x4.") && i.has("shared.b16")) {
        load_matrices(r);
    } else if (is("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") ||
               is("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") ||
               is("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")) {
        multiply(r);
    } else {
        stop("it knows no such instruction", text);
    }
}

/* What another lane of the warp has. */
template <class T> static T shuffle(T v, unsigned from)
{
    brought own = {};
    static_assert(sizeof v <= sizeof own.words, "a word or two");
    memcpy(own.words, &v, sizeof v);
    memcpy(&v, bring(own)[from % WARP].words, sizeof v);
    return v;
}

/* An assembler statement with its operands. */
template <class... A> static void ptx(const char *text, A &&...operands)
{
    void *const at[] = {(void *)&operands..., nullptr};
    execute(text, at);
}
} // namespace standin

/* Work is done under one lock (core.c). Of a program that is unloaded LeakSanitizer would still look at what each thread had. */
static standin::size threadIdx, blockIdx, blockDim, gridDim;
#define __global__
#define __device__
#define __shared__         static
#define __align__(n)       __attribute__((aligned(n)))
#define __constant__
#define __forceinline__    inline
#define __launch_bounds__(...)
#define __syncthreads()    standin::wait(standin::AT_BARRIER)
#define __threadfence_block()
#define __threadfence()
#define __cosf             std::cos
#define __sinf             std::sin
#define __tanf             std::tan
#define __expf             std::exp
#define __exp10f(x)        std::pow(10.0f, x)
#define __logf             std::log
#define __log2f            std::log2
#define __log10f           std::log10
#define rsqrtf(x)          (1 / std::sqrt(x))
#define __popcll           __builtin_popcountll
#define __clzll            __builtin_clzll
#define __fmaf_rn          std::fma
#define __uint_as_float    standin::float_of
#define __float_as_uint    standin::bits_of
#define __cvta_generic_to_shared(p) ((const char *)(p) - standin::shared_begins)
template <class T> static T __shfl_down_sync(unsigned, T v, unsigned by)
{
    unsigned lane = standin::lane();
    return standin::shuffle(v, lane + by < standin::WARP ? lane + by : lane);
}
template <class T> static T __shfl_sync(unsigned, T v, unsigned from, unsigned team = 32)
{
    return standin::shuffle(v, standin::lane() / team * team + from % team);
}
static inline double __longlong_as_double(long long i)
{
    double d;
    memcpy(&d, &i, 8);
    return d;
}
static inline long long __double_as_longlong(double d)
{
    long long i;
    memcpy(&i, &d, 8);
    return i;
}
struct __attribute__((aligned(8))) uint2 {
    unsigned x, y;
};
struct __attribute__((aligned(16))) uint4 {
    unsigned x, y, z, w;
};
#define ATOMIC(NAME, VALUE)                                                                        \
    template <class T> static T NAME(T *p, T v)                                                    \
    {                                                                                              \
        T old, now;                                                                                \
        __atomic_load(p, &old, 0);                                                                 \
        do                                                                                         \
            now = VALUE;                                                                           \
        while (!__atomic_compare_exchange(p, &old, &now, false, 0, 0));                            \
        return old;                                                                                \
    }
ATOMIC(atomicAdd, old + v)
ATOMIC(atomicMin, v < old ? v : old)
ATOMIC(atomicMax, old < v ? v : old)
ATOMIC(atomicAnd, old &v)
ATOMIC(atomicOr, old | v)
ATOMIC(atomicXor, old ^ v)
ATOMIC(atomicExch, v)
#undef ATOMIC
template <class T> static T atomicCAS(T *p, T old, T v)
{
    __atomic_compare_exchange_n(p, &old, v, false, 0, 0);
    return old;
}
