/* gather.h -- entries that the linker gathers from all objects, one behind the other, in a section
 * of a name: those of a library or program are an array, whose ends the linker names.
 *
 *     static const T one GATHERED(name) = {...};
 *     GATHERED_ENDS(const T, first, end, name)
 *
 * A name has at most 16 characters, as Mach-O's sections. */
#ifndef TERN_GATHER_H
#define TERN_GATHER_H
#define GATHER_TEXT_(x)    #x
#define GATHER_TEXT(x)     GATHER_TEXT_(x)
#define GATHER_GLUE_(a, b) a##b
#define GATHER_GLUE(a, b)  GATHER_GLUE_(a, b)

#ifdef __APPLE__
#define GATHERED(name)                                                                             \
    __attribute__((section("__DATA," GATHER_TEXT(name)), used, aligned(sizeof(void *))))
#define GATHERED_ENDS(TYPE, first, end, name)                                                      \
    extern TYPE first[] __asm("section$start$__DATA$" GATHER_TEXT(name));                          \
    extern TYPE end[] __asm("section$end$__DATA$" GATHER_TEXT(name));
#elif defined(_WIN32) && defined(__clang__)
/* lld names no ends there: it sorts the parts of a section by what is behind the $. */
#define GATHER_PART(name, part)                                                                    \
    __attribute__((section(GATHER_TEXT(name) "$" part), used, aligned(sizeof(void *))))
#define GATHERED(name) GATHER_PART(name, "m")
#define GATHERED_ENDS(TYPE, first, end, name)                                                      \
    static const char first##_part[sizeof(void *)] GATHER_PART(name, "a") = {0};                   \
    static const char end##_part[sizeof(void *)] GATHER_PART(name, "z") = {0};                     \
    static TYPE *const first = (TYPE *)(first##_part + sizeof(void *));                            \
    static TYPE *const end = (TYPE *)end##_part;
#else
/* A linker that drops what nothing refers to keeps them: lld does not see that the ends do. */
#if defined(__ELF__) && defined(__has_attribute)
#if __has_attribute(retain)
#define GATHER_RETAIN , retain
#endif
#endif
#ifndef GATHER_RETAIN
#define GATHER_RETAIN
#endif
#define GATHERED(name)                                                                             \
    __attribute__((section(GATHER_TEXT(name)), used, aligned(sizeof(void *)) GATHER_RETAIN))
#ifdef _WIN32
#define GATHER_HIDDEN
#else
#define GATHER_HIDDEN __attribute__((visibility("hidden")))
#endif
#define GATHERED_ENDS(TYPE, first, end, name)                                                      \
    extern TYPE GATHER_GLUE(__start_, name)[] GATHER_HIDDEN;                                       \
    extern TYPE GATHER_GLUE(__stop_, name)[] GATHER_HIDDEN;                                        \
    static TYPE *const first = GATHER_GLUE(__start_, name);                                        \
    static TYPE *const end = GATHER_GLUE(__stop_, name);
#endif
#endif
