/* pointers.h -- tern_from_data and tern_copy_to_host find the dtype from the type of the host
 * pointer.
 *
 * tern_from_data(values, shape, 0, NULL) takes the dtype of the elements that values points to:
 * float, double, bool or an integer type; rows of arrays (float (*)[3]) count too. Asking for
 * another dtype is TERN_ERR_DTYPE, in C at compile time if dtype is a constant; so is a tensor of
 * another dtype in tern_copy_to_host. A uint16_t pointer may hold TERN_F16, TERN_BF16 or TERN_U16,
 * so its dtype must be given; a uint8_t pointer may also hold a float8. A void * fits any dtype,
 * and is float32 if none is given; char *, structs and arrays with more dims fit any dtype that is
 * given. A pointer to pointers fits none, because rows must be contiguous. The rules of numbers.h
 * for names hold here too. */
#ifndef TERN_POINTERS_H
#define TERN_POINTERS_H
#include <tern/ops/create.h>

#ifndef TERN_PLAIN_NAMES
/* clang-format off */
#ifndef __cplusplus

/* What p points to, a tern_elements: rows of arrays too. By numbers, for short: what expands is
 * shown by messages of compilers and by assert. */
#define TERN_POINTERS_(T, n) T *: n, const T *: n, T (*)[]: n, const T (*)[]: n
#define TERN_ROWS_(T)         T **: -2, const T **: -2
#define TERN_ELEMENTS_(p)                                                                          \
    _Generic((p), TERN_POINTERS_(float, 1), TERN_POINTERS_(double, 2), TERN_POINTERS_(int, 5),     \
             TERN_POINTERS_(long, sizeof(long) == 8 ? 6 : 5), TERN_POINTERS_(long long, 6),        \
             TERN_POINTERS_(unsigned char, 7), TERN_POINTERS_(bool, 8),                            \
             TERN_POINTERS_(unsigned short, -1), TERN_POINTERS_(signed char, 9),                   \
             TERN_POINTERS_(short, 10), TERN_POINTERS_(unsigned, 12),                              \
             TERN_POINTERS_(unsigned long, sizeof(long) == 8 ? 13 : 12),                           \
             TERN_POINTERS_(unsigned long long, 13), void *: 0, const void *: 0,                   \
             TERN_ROWS_(float), TERN_ROWS_(double), TERN_ROWS_(bool), TERN_ROWS_(char),            \
             TERN_ROWS_(signed char), TERN_ROWS_(unsigned char), TERN_ROWS_(short),                \
             TERN_ROWS_(unsigned short), TERN_ROWS_(int), TERN_ROWS_(unsigned), TERN_ROWS_(long),  \
             TERN_ROWS_(unsigned long), TERN_ROWS_(long long), TERN_ROWS_(unsigned long long),     \
             TERN_ROWS_(void), default: -3)
/* n where that is a constant expression, else 0: only then is (void *)(0 * n) a null pointer. */
#define TERN_CONSTANT_(n) _Generic(1 ? (void *)((intptr_t)(n) * 0) : (int *)0, int *: (n),         \
    default: 0)
#define TERN_FROM_DATA_4_(data, shape, dtype, device)                                              \
    TERN_FROM_DATA_AS_(TERN_POINTER_NAME_(tern_elements_, __LINE__),                               \
                       TERN_POINTER_NAME_(tern_asked_, __LINE__), data, shape, dtype, device)
#define TERN_POINTER_NAME_(name, line)  TERN_POINTER_NAME__(name, line)
#define TERN_POINTER_NAME__(name, line) name##line
#define TERN_FROM_DATA_AS_(e, d, data, shape, dtype, device)                                       \
    __extension__({                                                                                \
        enum { e = TERN_ELEMENTS_(data), d = TERN_CONSTANT_(dtype) };                              \
        _Static_assert(!d || !e || e == -3 || (int)e == (int)d                                     \
            || (e == -1 && (d == 3 || d == 4 || d == 11)) ||                                       \
                           (e == 7 && (d == 14 || d == 15)),                                       \
                       "tern_from_data: the pointer is to elements of another type than dtype");   \
        tern_from_data_typed(data, (tern_elements)e, shape, dtype, device);                        \
    })
/* More than four arguments: data is an array written in place, (float[]){1, 2, 3}, whose commas
 * count. It is all but the last three; up to 61 elements, more want brackets around the array. */
#define TERN_FROM_DATA_MORE_(...)                                                                  \
    tern_from_data_call_((tern_from_data_arguments_){__VA_ARGS__},                                 \
                         (tern_elements)TERN_ELEMENTS_((TERN_JOIN_3_(TERN_HEAD_,                   \
                             TERN_COUNT_(__VA_ARGS__), _)(__VA_ARGS__))))
typedef struct tern_from_data_arguments_ {
    const void *data;
    tern_shape shape;
    tern_dtype dtype;
    const char *device;
} tern_from_data_arguments_;
static inline tern_tensor *tern_from_data_call_(tern_from_data_arguments_ a, tern_elements elements)
{
    return tern_from_data_typed(a.data, elements, a.shape, a.dtype, a.device);
}
#define tern_from_data(...) TERN_FROM_DATA_FORM_(__VA_ARGS__)(__VA_ARGS__)
#define TERN_JOIN_3_(a, b, c)  TERN_JOIN_3__(a, b, c)
#define TERN_JOIN_3__(a, b, c) a##b##c
#define TERN_ARGUMENT_65_( \
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, \
    a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, \
    a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, \
    a57, a58, a59, a60, a61, a62, a63, a64, a65, ...) \
    a65
#define TERN_COUNT_(...) TERN_ARGUMENT_65_(__VA_ARGS__, \
    64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, \
    41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, \
    18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, )
#define TERN_FROM_DATA_FORM_(...) TERN_ARGUMENT_65_(__VA_ARGS__, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, TERN_FROM_DATA_MORE_, \
    TERN_FROM_DATA_4_, tern_from_data, tern_from_data, tern_from_data, )
#define TERN_HEAD_5_(a, b, ...) a, b
#define TERN_HEAD_6_(a, ...) a, TERN_HEAD_5_(__VA_ARGS__)
#define TERN_HEAD_7_(a, ...) a, TERN_HEAD_6_(__VA_ARGS__)
#define TERN_HEAD_8_(a, ...) a, TERN_HEAD_7_(__VA_ARGS__)
#define TERN_HEAD_9_(a, ...) a, TERN_HEAD_8_(__VA_ARGS__)
#define TERN_HEAD_10_(a, ...) a, TERN_HEAD_9_(__VA_ARGS__)
#define TERN_HEAD_11_(a, ...) a, TERN_HEAD_10_(__VA_ARGS__)
#define TERN_HEAD_12_(a, ...) a, TERN_HEAD_11_(__VA_ARGS__)
#define TERN_HEAD_13_(a, ...) a, TERN_HEAD_12_(__VA_ARGS__)
#define TERN_HEAD_14_(a, ...) a, TERN_HEAD_13_(__VA_ARGS__)
#define TERN_HEAD_15_(a, ...) a, TERN_HEAD_14_(__VA_ARGS__)
#define TERN_HEAD_16_(a, ...) a, TERN_HEAD_15_(__VA_ARGS__)
#define TERN_HEAD_17_(a, ...) a, TERN_HEAD_16_(__VA_ARGS__)
#define TERN_HEAD_18_(a, ...) a, TERN_HEAD_17_(__VA_ARGS__)
#define TERN_HEAD_19_(a, ...) a, TERN_HEAD_18_(__VA_ARGS__)
#define TERN_HEAD_20_(a, ...) a, TERN_HEAD_19_(__VA_ARGS__)
#define TERN_HEAD_21_(a, ...) a, TERN_HEAD_20_(__VA_ARGS__)
#define TERN_HEAD_22_(a, ...) a, TERN_HEAD_21_(__VA_ARGS__)
#define TERN_HEAD_23_(a, ...) a, TERN_HEAD_22_(__VA_ARGS__)
#define TERN_HEAD_24_(a, ...) a, TERN_HEAD_23_(__VA_ARGS__)
#define TERN_HEAD_25_(a, ...) a, TERN_HEAD_24_(__VA_ARGS__)
#define TERN_HEAD_26_(a, ...) a, TERN_HEAD_25_(__VA_ARGS__)
#define TERN_HEAD_27_(a, ...) a, TERN_HEAD_26_(__VA_ARGS__)
#define TERN_HEAD_28_(a, ...) a, TERN_HEAD_27_(__VA_ARGS__)
#define TERN_HEAD_29_(a, ...) a, TERN_HEAD_28_(__VA_ARGS__)
#define TERN_HEAD_30_(a, ...) a, TERN_HEAD_29_(__VA_ARGS__)
#define TERN_HEAD_31_(a, ...) a, TERN_HEAD_30_(__VA_ARGS__)
#define TERN_HEAD_32_(a, ...) a, TERN_HEAD_31_(__VA_ARGS__)
#define TERN_HEAD_33_(a, ...) a, TERN_HEAD_32_(__VA_ARGS__)
#define TERN_HEAD_34_(a, ...) a, TERN_HEAD_33_(__VA_ARGS__)
#define TERN_HEAD_35_(a, ...) a, TERN_HEAD_34_(__VA_ARGS__)
#define TERN_HEAD_36_(a, ...) a, TERN_HEAD_35_(__VA_ARGS__)
#define TERN_HEAD_37_(a, ...) a, TERN_HEAD_36_(__VA_ARGS__)
#define TERN_HEAD_38_(a, ...) a, TERN_HEAD_37_(__VA_ARGS__)
#define TERN_HEAD_39_(a, ...) a, TERN_HEAD_38_(__VA_ARGS__)
#define TERN_HEAD_40_(a, ...) a, TERN_HEAD_39_(__VA_ARGS__)
#define TERN_HEAD_41_(a, ...) a, TERN_HEAD_40_(__VA_ARGS__)
#define TERN_HEAD_42_(a, ...) a, TERN_HEAD_41_(__VA_ARGS__)
#define TERN_HEAD_43_(a, ...) a, TERN_HEAD_42_(__VA_ARGS__)
#define TERN_HEAD_44_(a, ...) a, TERN_HEAD_43_(__VA_ARGS__)
#define TERN_HEAD_45_(a, ...) a, TERN_HEAD_44_(__VA_ARGS__)
#define TERN_HEAD_46_(a, ...) a, TERN_HEAD_45_(__VA_ARGS__)
#define TERN_HEAD_47_(a, ...) a, TERN_HEAD_46_(__VA_ARGS__)
#define TERN_HEAD_48_(a, ...) a, TERN_HEAD_47_(__VA_ARGS__)
#define TERN_HEAD_49_(a, ...) a, TERN_HEAD_48_(__VA_ARGS__)
#define TERN_HEAD_50_(a, ...) a, TERN_HEAD_49_(__VA_ARGS__)
#define TERN_HEAD_51_(a, ...) a, TERN_HEAD_50_(__VA_ARGS__)
#define TERN_HEAD_52_(a, ...) a, TERN_HEAD_51_(__VA_ARGS__)
#define TERN_HEAD_53_(a, ...) a, TERN_HEAD_52_(__VA_ARGS__)
#define TERN_HEAD_54_(a, ...) a, TERN_HEAD_53_(__VA_ARGS__)
#define TERN_HEAD_55_(a, ...) a, TERN_HEAD_54_(__VA_ARGS__)
#define TERN_HEAD_56_(a, ...) a, TERN_HEAD_55_(__VA_ARGS__)
#define TERN_HEAD_57_(a, ...) a, TERN_HEAD_56_(__VA_ARGS__)
#define TERN_HEAD_58_(a, ...) a, TERN_HEAD_57_(__VA_ARGS__)
#define TERN_HEAD_59_(a, ...) a, TERN_HEAD_58_(__VA_ARGS__)
#define TERN_HEAD_60_(a, ...) a, TERN_HEAD_59_(__VA_ARGS__)
#define TERN_HEAD_61_(a, ...) a, TERN_HEAD_60_(__VA_ARGS__)
#define TERN_HEAD_62_(a, ...) a, TERN_HEAD_61_(__VA_ARGS__)
#define TERN_HEAD_63_(a, ...) a, TERN_HEAD_62_(__VA_ARGS__)
#define TERN_HEAD_64_(a, ...) a, TERN_HEAD_63_(__VA_ARGS__)
#define tern_copy_to_host(x, data, bytes) tern_copy_to_host_typed(x, data,                         \
    (tern_elements)TERN_ELEMENTS_(data), bytes)

#else /* C++: overloads */
#include <type_traits>

template <class T> constexpr tern_elements tern_elements_of_()
{
    return std::is_array<T>::value              ? tern_elements_of_<typename
        std::remove_all_extents<T>::type>()
           : std::is_same<T, float>::value              ? TERN_ELEMENTS_F32
           : std::is_same<T, double>::value             ? TERN_ELEMENTS_F64
           : std::is_same<T, bool>::value               ? TERN_ELEMENTS_BOOL
           : std::is_same<T, unsigned char>::value      ? TERN_ELEMENTS_U8
           : std::is_same<T, unsigned short>::value     ? TERN_ELEMENTS_HALF
           : std::is_void<T>::value     ? TERN_ELEMENTS_ANY
           : std::is_pointer<T>::value  ? TERN_ELEMENTS_OTHER
           : !std::is_integral<T>::value || std::is_same<T, char>::value ? TERN_ELEMENTS_UNKNOWN
           : std::is_signed<T>::value && sizeof(T) == 4 ? TERN_ELEMENTS_I32
           : std::is_signed<T>::value && sizeof(T) == 8 ? TERN_ELEMENTS_I64
           : std::is_signed<T>::value && sizeof(T) == 2 ? TERN_ELEMENTS_I16
           : std::is_signed<T>::value && sizeof(T) == 1 ? TERN_ELEMENTS_I8
           : std::is_unsigned<T>::value && sizeof(T) == 4 ? TERN_ELEMENTS_U32
           : std::is_unsigned<T>::value && sizeof(T) == 8 ? TERN_ELEMENTS_U64
                                                          : TERN_ELEMENTS_OTHER;
}
template <class T>
inline tern_tensor *tern_from_data(const T *data, tern_shape shape, tern_dtype dtype,
                                   const char *device)
{
    return tern_from_data_typed(data, tern_elements_of_<T>(), shape, dtype, device);
}
template <class T>
inline tern_status tern_copy_to_host(const tern_tensor *x, T *data, size_t bytes)
{
    return tern_copy_to_host_typed(x, data, tern_elements_of_<T>(), bytes);
}
#endif
/* clang-format on */
#endif
#endif
