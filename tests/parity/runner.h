/* runner.h -- what the parts of the runner share. */
#ifndef TESTS_PARITY_RUNNER_H
#define TESTS_PARITY_RUNNER_H
#include "cases.h"

enum { OUTS = 1024 };

extern struct parity_run {
    const char *folder, *device, *only, *set;
    bool errors, both, kept, all, verbose, lacks_f64; /* both: errors beside the rest */
    parity_layout layout;
    int ops, cases, passed, failed, unsupported, differ, left_out;
    int float32, gradients; /* of those that ran */
    int hits[512];          /* of each unsupported line */
    int op_failed;          /* of this operation, so far */
} run;

/* Calls the operation; false after an error, with its text. None for what tern has no word for is
 * nothing. */
bool parity_call(const parity_file *file, const tern_value *values, int n, tern_tensor **out,
                 int *n_out, char *text, size_t size);
/* Whether x is the result; else text says what is not. */
bool parity_check(const parity_file *file, const char *what, const case_result *r, int i,
                  const tern_tensor *x, char *text, size_t size);

/* ---- gradients.c: a case's gradients, by ... -------------------------------------------------- */
bool parity_gradient(const parity_file *file, const parity_case *c, char *text, size_t size);
bool parity_second(const parity_file *file, const parity_case *c, char *text, size_t size);
/* ... incoming gradients of every layout, and repeated ones. */
bool parity_incoming(const parity_file *file, const parity_case *c, char *text, size_t size);

#endif
