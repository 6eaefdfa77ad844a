/* userprogram.h -- kernels of users on the stand-in, and those of the library's that the host has
 * not: the text of CUDA C++ made into a library by the machine's C++ compiler, with the grid as
 * loops and the items of a block in turns (device.hpp, grid.hpp). */
#ifndef TERN_TESTS_STANDIN_USERPROGRAM_H
#define TERN_TESTS_STANDIN_USERPROGRAM_H
#include <stddef.h>

typedef struct user_kernel {
    const unsigned *sizes; /* of the parameters; 0 ends them */
    void (*run)(const unsigned grid[3], const unsigned block[3], void **args);
} user_kernel;
typedef struct user_program user_program;

/* Compile into an image to load from, the caller's to free. NULL with the compiler's words in log. */
char *user_program_compile(const char *text, const char *kernel, size_t *bytes, char *log,
                           size_t log_bytes);
/* The same of a kernel of the library's for devices of this compute capability, with PTX in it. */
char *library_program_compile(const char *text, const char *kernel, int compute, size_t *bytes,
                              char *log, size_t log_bytes);
/* NULL where image is not what user_program_compile made. */
user_program *user_program_load(const char *image);
const user_kernel *user_program_find(user_program *program, const char *name);
/* NULL is nothing. */
void user_program_unload(user_program *program);

#endif
