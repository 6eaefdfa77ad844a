/* options.h -- CHECK(struct) for every options struct of the public headers, in C++20: it is plain, and
 * takes {} and initialisers with names. */
#ifndef TESTS_OPTIONS_H
#define TESTS_OPTIONS_H
#include <cstddef>
#include <cstdint>
#include <tern/models.h>
#include <tern/report.h>
#include <tern/tern.h>
#include <type_traits>

#define CHECK(T)                                                                                   \
    static_assert(std::is_aggregate_v<T> && std::is_trivial_v<T>, #T " is plain");                 \
    static_assert(std::is_same_v<decltype(T::reserved), std::uint64_t[4]> &&                       \
                      offsetof(T, reserved) + sizeof(T::reserved) == sizeof(T),                    \
                  #T " ends in reserved[4]");                                                      \
    inline T none_of_##T()                                                                         \
    {                                                                                              \
        return T{};                                                                                \
    }                                                                                              \
    inline T some_of_##T()                                                                         \
    {                                                                                              \
        return T{.reserved = {}};                                                                  \
    }
#endif
