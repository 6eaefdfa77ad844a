/* user.h -- OpenCL C's types and functions in C++, for kernels of the program's own: between
 * user_cuda.h or user_host.h, which make TERN_FN (what functions begin with), TERN_IN (what members
 * do), TERN_M (a function of the C library's) and what the device does itself, and the text that
 * user_source.c makes of the kernel. */
typedef unsigned char cl_uchar;
typedef unsigned short cl_ushort;
typedef unsigned int cl_uint;
typedef unsigned long cl_ulong;
typedef long cl_ptrdiff_t, cl_intptr_t;
typedef unsigned long cl_uintptr_t;
typedef struct {
    cl_ushort bits;
} cl_half;

/* ---- numbers ----------------------------------------------------------------------------- */
template <class T> struct tern_kind { enum { number = 0, real = 0 }; };
#define TERN_NUMBER(T, REAL) template <> struct tern_kind<T> { enum { number = 1, real = REAL }; };
TERN_NUMBER(bool, 0) TERN_NUMBER(char, 0) TERN_NUMBER(signed char, 0) TERN_NUMBER(cl_uchar, 0)
TERN_NUMBER(short, 0) TERN_NUMBER(cl_ushort, 0) TERN_NUMBER(int, 0) TERN_NUMBER(cl_uint, 0)
TERN_NUMBER(long, 0) TERN_NUMBER(cl_ulong, 0) TERN_NUMBER(long long, 0)
TERN_NUMBER(unsigned long long, 0) TERN_NUMBER(float, 1) TERN_NUMBER(double, 1)
template <int IS, class R> struct tern_if {};
template <class R> struct tern_if<1, R> { typedef R type; };
#define TERN_IF(T, ...) typename tern_if<tern_kind<T>::number, __VA_ARGS__>::type
template <int BYTES> struct tern_int { typedef long type; typedef cl_ulong whole; };
template <> struct tern_int<1> { typedef char type; typedef cl_uchar whole; };
template <> struct tern_int<2> { typedef short type; typedef cl_ushort whole; };
template <> struct tern_int<4> { typedef int type; typedef cl_uint whole; };
#define TERN_SIGNED(T) typename tern_int<sizeof(T)>::type
#define TERN_WHOLE(T)  typename tern_int<sizeof(T)>::whole
#define TERN_BOTH(A, B) decltype(true ? A() : B())

/* ---- vectors ----------------------------------------------------------------------------- */
template <class T, int N> struct tern_parts { T x, y, z, w, rest[N - 4]; };
template <class T> struct tern_parts<T, 2> { T x, y; };
template <class T> struct tern_parts<T, 3> { T x, y, z, pad; };
template <class T> struct tern_parts<T, 4> { T x, y, z, w; };
template <class T, int N> struct tern_vec;
template <class T, int N> struct tern_part { typedef tern_vec<T, (N + 1) / 2> type; };
template <class T> struct tern_part<T, 2> { typedef T type; };
/* Places of a swizzle are hexadecimal digits behind a 1. */
template <unsigned long long M> struct tern_count { enum { n = 1 + tern_count<(M >> 4)>::n }; };
template <> struct tern_count<1> { enum { n = 0 }; };
#define TERN_PLACE(M, i) ((M) >> 4 * (tern_count<M>::n - 1 - (i)) & 15)
#define TERN_EACH(N) for (int i = 0; i < (N); i++)
template <class V, unsigned long long M> struct tern_put {
    V &v;
    template <class U> TERN_IN void operator=(const U &u)
    {
        decltype(v.template at<M>()) from(u);
        TERN_EACH(tern_count<M>::n) v.s(TERN_PLACE(M, i)) = from.s(i);
    }
#define TERN_PUT(OP) \
    template <class U> TERN_IN void operator OP##=(const U &u) { *this = v.template at<M>() OP u; }
    TERN_PUT(+) TERN_PUT(-) TERN_PUT(*) TERN_PUT(/) TERN_PUT(%) TERN_PUT(&) TERN_PUT(|) TERN_PUT(^)
};
template <class T, int N> struct alignas(sizeof(T) * (N == 3 ? 4 : N)) tern_vec : tern_parts<T, N> {
    tern_vec() = default;
    TERN_IN T &s(int i) { return ((T *)this)[i]; }
    TERN_IN T s(int i) const { return ((const T *)this)[i]; }
    template <class U, class = TERN_IF(U, int)> TERN_IN tern_vec(U v) { TERN_EACH(N) s(i) = (T)v; }
    template <class A, class B, class... R> TERN_IN tern_vec(A a, B b, R... r)
    {
        int n = 0;
        fill(n, a), fill(n, b), (fill(n, r), ...);
    }
    template <class U> TERN_IN TERN_IF(U, void) fill(int &n, U v) { s(n++) = (T)v; }
    template <class U, int K> TERN_IN void fill(int &n, const tern_vec<U, K> &v)
    {
        TERN_EACH(K) s(n++) = (T)v.s(i);
    }
    template <unsigned long long M> TERN_IN tern_vec<T, tern_count<M>::n> at() const
    {
        tern_vec<T, tern_count<M>::n> v;
        TERN_EACH(tern_count<M>::n) v.s(i) = s(TERN_PLACE(M, i));
        return v;
    }
    template <unsigned long long M> TERN_IN tern_put<tern_vec, M> put() { return {*this}; }
    typedef typename tern_part<T, N>::type part;
#define TERN_PART(NAME, FROM, STEP) \
    TERN_IN part NAME() const \
    { \
        part v; \
        TERN_EACH((N + 1) / 2) ((T *)&v)[i] = s((FROM) + (STEP) * i); \
        return v; \
    }
    TERN_PART(lo, 0, 1) TERN_PART(hi, (N + 1) / 2, 1) TERN_PART(even, 0, 2) TERN_PART(odd, 1, 2)
};
#define TERN_T template <class T, int N> TERN_FN
#define TERN_V tern_vec<T, N>
#define TERN_BINARY(OP, R, VALUE) \
    TERN_T R operator OP(TERN_V a, TERN_V b) \
    { \
        R y; \
        TERN_EACH(N) y.s(i) = VALUE(a.s(i) OP b.s(i)); \
        return y; \
    } \
    template <class T, int N, class U> TERN_FN TERN_IF(U, R) operator OP(TERN_V a, U b) \
    { \
        return a OP TERN_V(b); \
    } \
    template <class T, int N, class U> TERN_FN TERN_IF(U, R) operator OP(U a, TERN_V b) \
    { \
        return TERN_V(a) OP b; \
    }
#define TERN_OPERATOR(OP) \
    TERN_BINARY(OP, TERN_V, (T)) \
    template <class T, int N, class U> TERN_FN TERN_V &operator OP##=(TERN_V &a, const U &b) \
    { \
        return a = a OP b; \
    }
TERN_OPERATOR(+) TERN_OPERATOR(-) TERN_OPERATOR(*) TERN_OPERATOR(/) TERN_OPERATOR(%)
TERN_OPERATOR(&) TERN_OPERATOR(|) TERN_OPERATOR(^) TERN_OPERATOR(<<) TERN_OPERATOR(>>)
#define TERN_TRUTHS tern_vec<TERN_SIGNED(T), N>
TERN_BINARY(==, TERN_TRUTHS, -) TERN_BINARY(!=, TERN_TRUTHS, -) TERN_BINARY(<, TERN_TRUTHS, -)
TERN_BINARY(<=, TERN_TRUTHS, -) TERN_BINARY(>, TERN_TRUTHS, -) TERN_BINARY(>=, TERN_TRUTHS, -)
TERN_BINARY(&&, TERN_TRUTHS, -) TERN_BINARY(||, TERN_TRUTHS, -)
TERN_T TERN_V operator-(TERN_V a) { TERN_EACH(N) a.s(i) = -a.s(i); return a; }
TERN_T TERN_V operator+(TERN_V a) { return a; }
TERN_T TERN_V operator~(TERN_V a) { TERN_EACH(N) a.s(i) = ~a.s(i); return a; }
TERN_T TERN_TRUTHS operator!(TERN_V a) { return a == TERN_V(0); }
#define TERN_VECTORS_(T, NAME)                                                                     \
    typedef tern_vec<T, 2> NAME##2; typedef tern_vec<T, 3> NAME##3;                                \
        typedef tern_vec<T, 4> NAME##4;                                                            \
    typedef tern_vec<T, 8> NAME##8; typedef tern_vec<T, 16> NAME##16;
TERN_VECTORS_(char, cl_char) TERN_VECTORS_(short, cl_short) TERN_VECTORS_(int, cl_int)
TERN_VECTORS_(long, cl_long) TERN_VECTORS_(float, cl_float) TERN_VECTORS_(double, cl_double)
TERN_VECTORS_(cl_uchar, cl_uchar) TERN_VECTORS_(cl_ushort, cl_ushort)
TERN_VECTORS_(cl_uint, cl_uint) TERN_VECTORS_(cl_ulong, cl_ulong)

/* A function of numbers for vectors of them, some of whose arguments may be numbers. */
template <class T> struct tern_width { enum { n = 0 }; };
template <class T, int N> struct tern_width<tern_vec<T, N>> { enum { n = N }; };
template <int N, class T> struct tern_spread { typedef tern_vec<T, N> type; };
template <class T> struct tern_spread<0, T> {};
template <class T> TERN_FN TERN_IF(T, T) tern_lane(T x, int) { return x; }
TERN_T T tern_lane(const TERN_V &x, int i) { return x.s(i); }
#define TERN_WIDTH(A, B, C) \
    ((int)tern_width<A>::n ? (int)tern_width<A>::n \
     : (int)tern_width<B>::n ? (int)tern_width<B>::n : (int)tern_width<C>::n)
#define TERN_MAP_(TYPES, WIDTH, F, PARAMETERS, FIRST, LANES) \
    template TYPES TERN_FN typename tern_spread<WIDTH, decltype(F FIRST)>::type F PARAMETERS \
    { \
        typename tern_spread<WIDTH, decltype(F FIRST)>::type y; \
        TERN_EACH(WIDTH) y.s(i) = F LANES; \
        return y; \
    }
#define TERN_MAP1(F) \
    TERN_MAP_(<class A>, TERN_WIDTH(A, A, A), F, (A a), (tern_lane(A(), 0)), (tern_lane(a, i)))
#define TERN_COMMA ,
#define TERN_MAP2(F) \
    TERN_MAP_(<class A TERN_COMMA class B>, TERN_WIDTH(A, B, B), F, (A a, B b), \
              (tern_lane(A(), 0), tern_lane(B(), 0)), (tern_lane(a, i), tern_lane(b, i)))
#define TERN_MAP3(F)                                                                               \
    TERN_MAP_(<class A TERN_COMMA class B TERN_COMMA class C>, TERN_WIDTH(A, B, C), F,             \
        (A a, B b, C c),                                                                           \
              (tern_lane(A(), 0), tern_lane(B(), 0), tern_lane(C(), 0)),                           \
              (tern_lane(a, i), tern_lane(b, i), tern_lane(c, i)))

/* ---- the C library's --------------------------------------------------------------------- */
#define TERN_F1(NAME) \
    TERN_FN float cl_##NAME(float x) { return TERN_M(NAME##f)(x); } \
    TERN_FN double cl_##NAME(double x) { return TERN_M(NAME)(x); } \
    TERN_MAP1(cl_##NAME)
#define TERN_F2(NAME) \
    TERN_FN float cl_##NAME(float x, float y) { return TERN_M(NAME##f)(x, y); } \
    TERN_FN double cl_##NAME(double x, double y) { return TERN_M(NAME)(x, y); } \
    TERN_MAP2(cl_##NAME)
TERN_F1(acos) TERN_F1(acosh) TERN_F1(asin) TERN_F1(asinh) TERN_F1(atan) TERN_F1(atanh) TERN_F1(cbrt)
TERN_F1(ceil) TERN_F1(cos) TERN_F1(cosh) TERN_F1(erf) TERN_F1(erfc) TERN_F1(exp) TERN_F1(exp2)
TERN_F1(expm1) TERN_F1(fabs) TERN_F1(floor) TERN_F1(lgamma) TERN_F1(log) TERN_F1(log10)
    TERN_F1(log1p)
TERN_F1(log2) TERN_F1(rint) TERN_F1(round) TERN_F1(sin) TERN_F1(sinh) TERN_F1(sqrt) TERN_F1(tan)
TERN_F1(tanh) TERN_F1(tgamma) TERN_F1(trunc)
TERN_F2(atan2) TERN_F2(copysign) TERN_F2(fdim) TERN_F2(fmod) TERN_F2(hypot)
TERN_F2(nextafter) TERN_F2(pow) TERN_F2(remainder)
/* The number where one is NaN; of two zeros the second. */
#define TERN_EXTREME(NAME) \
    TERN_FN float cl_##NAME(float x, float y) { return TERN_EXTREME_##NAME(x, y); } \
    TERN_FN double cl_##NAME(double x, double y) { return TERN_EXTREME_##NAME(x, y); } \
    TERN_MAP2(cl_##NAME)
#define TERN_EXTREME_fmax(x, y) (y != y ? x : x > y ? x : y)
#define TERN_EXTREME_fmin(x, y) (y != y ? x : x < y ? x : y)
TERN_EXTREME(fmax) TERN_EXTREME(fmin)
TERN_FN float cl_fma(float a, float b, float c) { return TERN_M(fmaf)(a, b, c); }
TERN_FN double cl_fma(double a, double b, double c) { return TERN_M(fma)(a, b, c); }
TERN_MAP3(cl_fma)

/* ---- numbers of any type ----------------------------------------------------------------- */
/* A function of one, two, three numbers, and of vectors. */
#define TERN_G1(f, R, VALUE) \
    template <class T> TERN_FN TERN_IF(T, R) cl_##f(T x) { return VALUE; } \
    TERN_MAP1(cl_##f)
#define TERN_G2(f, R, VALUE)                                                                       \
    template <class A, class B> TERN_FN typename tern_if<tern_kind<A>::number &&                   \
        tern_kind<B>::number,                                                                      \
                                                         TERN_BOTH(A, B)>::type cl_##f(A p, B q)   \
    {                                                                                              \
        typedef TERN_BOTH(A, B) T;                                                                 \
        T x = (T)p, y = (T)q;                                                                      \
        return (T)(VALUE);                                                                         \
    }                                                                                              \
    TERN_MAP2(cl_##f)
#define TERN_G3(f, VALUE) \
    template <class A, class B, class C> TERN_FN typename tern_if< \
        tern_kind<A>::number && tern_kind<B>::number && tern_kind<C>::number, \
        TERN_BOTH(A, TERN_BOTH(B, C))>::type cl_##f(A p, B q, C r) \
    { \
        typedef TERN_BOTH(A, TERN_BOTH(B, C)) T; \
        T x = (T)p, y = (T)q, z = (T)r; \
        return (T)(VALUE); \
    } \
    TERN_MAP3(cl_##f)
#define TERN_BITS(T) ((int)sizeof(T) * 8)
TERN_G2(max, T, x < y ? y : x)
TERN_G2(min, T, y < x ? y : x)
TERN_G3(clamp, cl_min(cl_max(x, y), z))
TERN_G3(mix, x + (y - x) * z)
TERN_G2(step, T, y < x ? 0 : 1)
template <class T> TERN_FN T tern_smooth(T t) { return t * t * (3 - 2 * t); }
TERN_G3(smoothstep, tern_smooth(cl_clamp((z - x) / (y - x), (T)0, (T)1)))
TERN_G1(sign, T, x > 0 ? (T)1 : x < 0 ? (T)-1 : x == x ? x : (T)0)
TERN_G1(degrees, T, x * (T)57.295779513082323)
TERN_G1(radians, T, x * (T)0.017453292519943295)
TERN_G1(rsqrt, T, 1 / cl_sqrt(x))
TERN_G1(exp10, T, cl_pow((T)10, x))
TERN_G3(mad, x * y + z)
TERN_G2(powr, T, cl_pow(x, y))
TERN_FN float cl_pown(float x, int n) { return cl_pow(x, (float)n); }
TERN_FN double cl_pown(double x, int n) { return cl_pow(x, (double)n); }
TERN_MAP2(cl_pown)
TERN_FN float cl_ldexp(float x, int n) { return TERN_M(ldexpf)(x, n); }
TERN_FN double cl_ldexp(double x, int n) { return TERN_M(ldexp)(x, n); }
TERN_MAP2(cl_ldexp)
TERN_FN float cl_frexp(float x, int *n) { return TERN_M(frexpf)(x, n); }
TERN_FN double cl_frexp(double x, int *n) { return TERN_M(frexp)(x, n); }
template <class T> TERN_FN T cl_modf(T x, T *whole) { *whole = cl_trunc(x);
    return cl_copysign(x - *whole, x); }
template <class T> TERN_FN T cl_fract(T x, T *whole)
{
    *whole = cl_floor(x);
    T below = sizeof(T) == 4 ? (T)0.99999994 : (T)0.99999999999999989;
    return cl_fmin(x - *whole, below);
}
template <class T> TERN_FN T cl_sincos(T x, T *cosine) { *cosine = cl_cos(x); return cl_sin(x); }

/* Integers. */
TERN_G1(abs, TERN_WHOLE(T), (TERN_WHOLE(T))(x < 0 ? 0 - (TERN_WHOLE(T))x : (TERN_WHOLE(T))x))
TERN_G2(abs_diff, T, x < y ? (TERN_WHOLE(T))y - (TERN_WHOLE(T))x
    : (TERN_WHOLE(T))x - (TERN_WHOLE(T))y)
TERN_G2(mul24, T, x * y)
TERN_G3(mad24, x * y + z)
TERN_G2(mul_hi, T, (TERN_SIGNED(long))((long)x * (long)y >> TERN_BITS(T)))
TERN_G3(mad_hi, cl_mul_hi(x, y) + z)
TERN_G2(hadd, T, (x >> 1) + (y >> 1) + (x & y & 1))
TERN_G2(rhadd, T, (x >> 1) + (y >> 1) + ((x | y) & 1))
TERN_G2(rotate, T, ((TERN_WHOLE(T))x << (y & (TERN_BITS(T) - 1))) |
    ((TERN_WHOLE(T))x >> (-y & (TERN_BITS(T) - 1))))
TERN_G1(popcount, T, (T)TERN_ONES((cl_ulong)(TERN_WHOLE(T))x))
TERN_G1(clz, T, (T)(x == 0 ? TERN_BITS(T) : TERN_ZEROS((cl_ulong)(TERN_WHOLE(T))x) - 64 +
    TERN_BITS(T)))
template <class T> TERN_FN T tern_least() { return (T)-1 > (T)0 ? (T)0
    : (T)((TERN_WHOLE(T))1 << (TERN_BITS(T) - 1)); }
template <class T> TERN_FN T tern_most() { return (T)~tern_least<T>(); }
TERN_G2(add_sat, T, y > 0 && x > (T)(tern_most<T>() - y) ? tern_most<T>()
        : y < 0 && x < (T)(tern_least<T>() - y) ? tern_least<T>() : (T)(x + y))
TERN_G2(sub_sat, T, y > 0 && x < (T)(tern_least<T>() + y) ? tern_least<T>()
        : y < 0 && x > (T)(tern_most<T>() + y) ? tern_most<T>() : (T)(x - y))

/* Truths: of numbers 1, in vectors -1; chosen by being not 0, in vectors by the highest bit. */
#define TERN_TRUTH1(f, VALUE)                                                                      \
    template <class T> TERN_FN TERN_IF(T, int) cl_##f(T x) { return VALUE; }                       \
    TERN_T TERN_TRUTHS cl_##f(TERN_V x) { TERN_TRUTHS y; TERN_EACH(N) y.s(i) = -cl_##f(x.s(i));    \
        return y; }
#define TERN_TRUTH2(f, OP) \
    template <class T> TERN_FN TERN_IF(T, int) cl_##f(T x, T y) { return x OP y; } \
    TERN_T TERN_TRUTHS cl_##f(TERN_V x, TERN_V y) { return x OP y; }
TERN_TRUTH1(isnan, x != x)
TERN_TRUTH1(isfinite, x - x == 0)
TERN_TRUTH1(isinf, x == x && !(x - x == 0))
TERN_TRUTH1(isnormal, x - x == 0 && cl_fabs(x) >= (sizeof(T) == 4 ? (T)1.17549435e-38
    : (T)2.2250738585072014e-308))
TERN_TRUTH1(signbit, cl_copysign((T)1, x) < 0)
TERN_TRUTH2(isequal, ==) TERN_TRUTH2(isnotequal, !=) TERN_TRUTH2(isgreater, >)
TERN_TRUTH2(isgreaterequal, >=) TERN_TRUTH2(isless, <) TERN_TRUTH2(islessequal, <=)
template <class A, class C> TERN_FN TERN_IF(C, A) cl_select(A a, A b, C c) { return c ? b : a; }
template <class T, int N, class C> TERN_FN TERN_V cl_select(TERN_V a, TERN_V b, tern_vec<C, N> c)
{
    TERN_EACH(N) a.s(i) = (TERN_SIGNED(C))c.s(i) < 0 ? b.s(i) : a.s(i);
    return a;
}
template <class T> TERN_FN T cl_bitselect(T a, T b, T c) { return (a & ~c) | (b & c); }
TERN_T int cl_any(TERN_V x) { int y = 0; TERN_EACH(N) y |= x.s(i) < 0; return y; }
TERN_T int cl_all(TERN_V x) { int y = 1; TERN_EACH(N) y &= x.s(i) < 0; return y; }
template <class T> TERN_FN TERN_IF(T, int) cl_any(T x) { return x < 0; }
template <class T> TERN_FN TERN_IF(T, int) cl_all(T x) { return x < 0; }

/* ---- geometry ---------------------------------------------------------------------------- */
TERN_T T cl_dot(TERN_V a, TERN_V b) { T y = 0; TERN_EACH(N) y += a.s(i) * b.s(i); return y; }
template <class T> TERN_FN TERN_IF(T, T) cl_dot(T a, T b) { return a * b; }
TERN_T TERN_V cl_cross(TERN_V a, TERN_V b)
{
    TERN_V y(0);
    TERN_EACH(3) y.s(i) = a.s((i + 1) % 3) * b.s((i + 2) % 3) - a.s((i + 2) % 3) * b.s((i + 1) % 3);
    return y;
}
template <class V> TERN_FN auto cl_length(V a) { return cl_sqrt(cl_dot(a, a)); }
template <class V> TERN_FN auto cl_distance(V a, V b) { return cl_length(a - b); }
template <class V> TERN_FN V cl_normalize(V a) { return a / cl_length(a); }
template <class V> TERN_FN auto cl_fast_length(V a) { return cl_length(a); }
template <class V> TERN_FN auto cl_fast_distance(V a, V b) { return cl_length(a - b); }
template <class V> TERN_FN V cl_fast_normalize(V a) { return cl_normalize(a); }

/* ---- fewer bits of the result ------------------------------------------------------------ */
#define TERN_QUICK(f) \
    TERN_FN float cl_native_##f(float x) { return TERN_NATIVE(f)(x); } \
    TERN_FN float cl_half_##f(float x) { return TERN_NATIVE(f)(x); } \
    TERN_MAP1(cl_native_##f) TERN_MAP1(cl_half_##f)
TERN_QUICK(cos) TERN_QUICK(exp) TERN_QUICK(exp2) TERN_QUICK(exp10) TERN_QUICK(log) TERN_QUICK(log2)
TERN_QUICK(log10) TERN_QUICK(rsqrt) TERN_QUICK(sin) TERN_QUICK(sqrt) TERN_QUICK(tan)
#define TERN_QUICKER(KIND) \
    TERN_FN float cl_##KIND##_recip(float x) { return 1 / x; } \
    TERN_FN float cl_##KIND##_divide(float x, float y) { return x / y; } \
    TERN_FN float cl_##KIND##_powr(float x, float y) { return cl_pow(x, y); } \
    TERN_MAP1(cl_##KIND##_recip) TERN_MAP2(cl_##KIND##_divide) TERN_MAP2(cl_##KIND##_powr)
TERN_QUICKER(native) TERN_QUICKER(half)

/* ---- conversions ------------------------------------------------------------------------- */
#define TERN_ROUNDING(MODE, VALUE) \
    template <class T> TERN_FN T tern_whole##MODE(T x) { return x; } \
    TERN_FN float tern_whole##MODE(float x) { return VALUE; } \
    TERN_FN double tern_whole##MODE(double x) { return VALUE; }
TERN_ROUNDING(, x) TERN_ROUNDING(_rte, cl_rint(x)) TERN_ROUNDING(_rtz, cl_trunc(x))
TERN_ROUNDING(_rtp, cl_ceil(x)) TERN_ROUNDING(_rtn, cl_floor(x))
template <class T, class U> TERN_FN T tern_saturated(U x)
{
    if (tern_kind<T>::real)
        return (T)x;
    return x != x ? (T)0 : (double)x >= (double)tern_most<T>() ? tern_most<T>()
         : (double)x <= (double)tern_least<T>() ? tern_least<T>() : (T)x;
}
/* Floats that become floats are not rounded to integers. */
#define TERN_CONVERT(NAME, MODE, VALUE)                                                            \
    template <class T, class U> TERN_FN typename tern_if<tern_kind<T>::number,                     \
        T>::type tern_convert##NAME(U u)                                                           \
    {                                                                                              \
        auto x = tern_kind<T>::real ? u : tern_whole##MODE(u);                                     \
        return VALUE;                                                                              \
    }                                                                                              \
    template <class V, class U, int N> TERN_FN typename tern_if<tern_width<V>::n == N, V>::type    \
    tern_convert##NAME(tern_vec<U, N> u)                                                           \
    {                                                                                              \
        V y;                                                                                       \
        typedef decltype(tern_lane(V(), 0)) T;                                                     \
        TERN_EACH(N) y.s(i) = tern_convert##NAME<T>(u.s(i));                                       \
        return y;                                                                                  \
    }
#define TERN_CONVERTS(MODE) TERN_CONVERT(MODE, MODE, (T)x)                                         \
    TERN_CONVERT(_sat##MODE, MODE, tern_saturated<T>(x))
TERN_CONVERTS() TERN_CONVERTS(_rte) TERN_CONVERTS(_rtz) TERN_CONVERTS(_rtp) TERN_CONVERTS(_rtn)
template <class T, class U> TERN_FN T tern_as(U u)
{
    static_assert(sizeof(T) == sizeof(U), "as_type of another size");
    union both { U from; T to; TERN_IN both() {} } x;
    x.from = u;
    return x.to;
}

/* ---- vectors and halves in memory -------------------------------------------------------- */
template <int N, class T> TERN_FN auto tern_vload(size_t at, const T *p)
{
    tern_vec<T, N> v;
    TERN_EACH(N) v.s(i) = p[at * N + i];
    return v;
}
template <int N, class U, class T> TERN_FN void tern_vstore(tern_vec<U, N> v, size_t at, T *p)
{
    TERN_EACH(N) p[at * N + i] = v.s(i);
}
/* Numbers of 16 bits by their bits: subnormal ones are the parts of 2^-24. */
TERN_FN float tern_from_half(cl_half h)
{
    cl_uint sign = (cl_uint)(h.bits & 0x8000) << 16, rest = h.bits & 0x7fff;
    float small = (float)rest * 5.9604644775390625e-8f;
    cl_uint bits = rest < 0x400 ? tern_as<cl_uint>(small)
                 : rest >= 0x7c00 ? 0x7f800000u | (rest & 0x3ff) << 13 : (rest << 13) + 0x38000000u;
    return tern_as<float>(sign | bits);
}
/* Nearest, halves to even. */
TERN_FN cl_half tern_to_half(float f)
{
    cl_uint u = tern_as<cl_uint>(f), a = u & 0x7fffffffu, bits;
    if (a > 0x7f800000u)
        bits = 0x7e00;
    else if (a >= 0x477ff000u)
        bits = 0x7c00;
    else if (a < 0x38800000u)
        bits = tern_as<cl_uint>(tern_as<float>(a) + 0.5f) - 0x3f000000u;
    else
        bits = (a + 0xfff + (a >> 13 & 1) - 0x38000000u) >> 13;
    return {(cl_ushort)(u >> 16 & 0x8000 | bits)};
}
#define TERN_HALVES(LOAD, STORE, STEP) \
    template <int N> TERN_FN auto LOAD(size_t at, const cl_half *p) \
    { \
        tern_vec<float, N> v; \
        TERN_EACH(N) v.s(i) = tern_from_half(p[at * (STEP) + i]); \
        return v; \
    } \
    template <int N, class T> TERN_FN void STORE(tern_vec<T, N> v, size_t at, cl_half *p) \
    { \
        TERN_EACH(N) p[at * (STEP) + i] = tern_to_half((float)v.s(i)); \
    } \
    template <int N, class T> TERN_FN void STORE##_rte(tern_vec<T, N> v, size_t at, cl_half *p) \
    { \
        STORE<N>(v, at, p); \
    }
TERN_HALVES(tern_vload_half_of, tern_vstore_half, N)
TERN_HALVES(tern_vloada_half_of, tern_vstorea_half, N == 3 ? 4 : N)
template <int N> struct tern_halves {
    TERN_IN static auto load(size_t at, const cl_half *p) { return tern_vload_half_of<N>(at, p); }
    TERN_IN static auto loada(size_t at, const cl_half *p) { return tern_vloada_half_of<N>(at, p); }
};
template <> struct tern_halves<1> {
    TERN_IN static float load(size_t at, const cl_half *p) { return tern_from_half(p[at]); }
    TERN_IN static float loada(size_t at, const cl_half *p) { return tern_from_half(p[at]); }
};
template <int N> TERN_FN auto tern_vload_half(size_t at, const cl_half *p) {
    return tern_halves<N>::load(at, p); }
template <int N> TERN_FN auto tern_vloada_half(size_t at, const cl_half *p) {
    return tern_halves<N>::loada(at, p); }
#define TERN_STORE_ONE(STORE) \
    template <int N, class T> TERN_FN TERN_IF(T, void) STORE(T v, size_t at, cl_half *p) \
    { \
        p[at] = tern_to_half((float)v); \
    }
TERN_STORE_ONE(tern_vstore_half) TERN_STORE_ONE(tern_vstore_half_rte)
TERN_STORE_ONE(tern_vstorea_half) TERN_STORE_ONE(tern_vstorea_half_rte)

/* ---- atomics: TERN_ATOMIC_... of an int or a 64-bit integer ------------------------------- */
template <class T> struct tern_same { typedef T type; };
#define TERN_OLD(NAME, VALUE) \
    template <class T> TERN_FN T cl_atomic_##NAME(volatile T *q, typename tern_same<T>::type v) \
    { \
        T *p = (T *)q; \
        return (T)(VALUE); \
    } \
    template <class T> TERN_FN T cl_atom_##NAME(volatile T *q, typename tern_same<T>::type v) \
    { \
        return cl_atomic_##NAME(q, v); \
    }
TERN_OLD(add, TERN_ATOMIC_ADD(p, v)) TERN_OLD(sub, TERN_ATOMIC_ADD(p, (T)(0 - v)))
TERN_OLD(min, TERN_ATOMIC_MIN(p, v)) TERN_OLD(max, TERN_ATOMIC_MAX(p, v))
TERN_OLD(and, TERN_ATOMIC_AND(p, v)) TERN_OLD(or, TERN_ATOMIC_OR(p, v))
TERN_OLD(xor, TERN_ATOMIC_XOR(p, v)) TERN_OLD(xchg, TERN_ATOMIC_XCHG(p, v))
#define TERN_INC(NAME, BY) \
    template <class T> TERN_FN T NAME(volatile T *q) { return cl_atomic_add(q, (T)(BY)); }
TERN_INC(cl_atomic_inc, 1) TERN_INC(cl_atom_inc, 1) TERN_INC(cl_atomic_dec, -1)
    TERN_INC(cl_atom_dec, -1)
template <class T> TERN_FN T cl_atomic_cmpxchg(volatile T *q, typename tern_same<T>::type old,
                                               typename tern_same<T>::type v)
{
    return TERN_ATOMIC_CMPXCHG((T *)q, old, v);
}
template <class T> TERN_FN T cl_atom_cmpxchg(volatile T *q, typename tern_same<T>::type old,
                                             typename tern_same<T>::type v)
{
    return cl_atomic_cmpxchg(q, old, v);
}

/* ---- work-items -------------------------------------------------------------------------- */
#ifndef TERN_GLOBAL_IDS
TERN_FN size_t cl_get_global_id(cl_uint d) { return cl_get_group_id(d) * cl_get_local_size(d) +
    cl_get_local_id(d); }
TERN_FN size_t cl_get_global_size(cl_uint d) { return cl_get_num_groups(d) * cl_get_local_size(d); }
#endif
TERN_FN size_t cl_get_global_offset(cl_uint) { return 0; }
TERN_FN void cl_read_mem_fence(int flags) { cl_mem_fence(flags); }
TERN_FN void cl_write_mem_fence(int flags) { cl_mem_fence(flags); }
template <class T> TERN_FN void cl_prefetch(const T *, size_t) {}
/* An argument of a launch: 8 bytes, of which a type takes the first. */
struct tern_word {
    unsigned long long bits;
    template <class T> TERN_IN operator T() const
    {
        union { unsigned long long bits; T value; } x;
        x.bits = bits;
        return x.value;
    }
};
struct tern_shared_word {
    void *at;
    template <class T> TERN_IN operator T *() const { return (T *)at; }
};

#include "user_limits.h"
