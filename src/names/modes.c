/* modes.c -- converts PyTorch's words for modes to enum values; -1, an error in every operation,
 * for any other word. */
#include "names/rows.h"

#undef MODE
#define MODE(NAME, ENUM, ARGUMENT, ...)                                                            \
    ENUM names_##NAME(const names_argument *a)                                                     \
    {                                                                                              \
        static const char *const words[] = {__VA_ARGS__};                                          \
        const int n = (int)(sizeof words / sizeof *words);                                         \
        return (ENUM)(a->given ? names_choice(a, ARGUMENT, words, n) : 0);                         \
    }
#include "names/modes.def"
