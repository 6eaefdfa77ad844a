/* cases.h -- the cases of one operation, as codec.py writes them, and what the runner does with
 * them. */
#ifndef TERN_TESTS_PARITY_CASES_H
#define TERN_TESTS_PARITY_CASES_H
#include <stdio.h>
#include <tern/names.h>
#include <tern/tern.h>

typedef struct stored_tensor {
    tern_dtype dtype;
    tern_shape shape, stride;
    int64_t offset, count;     /* of its elements in storage */
    const unsigned char *data; /* the first bytes of all of them, then the second ones, ... */
} stored_tensor;

/* One argument: a value whose tensors are numbers yet. */
typedef struct case_argument {
    tern_value value;
    const char *text;      /* as it was written: "ints 2,3" */
    const int64_t *number; /* of its tensor or tensors */
    int numbers;
} case_argument;

/* A result: of which argument (after, grad), of which item of a list (-1: no list). */
typedef struct case_result {
    int argument, item;
    int64_t tensor;
    double rounding; /* how far PyTorch's own float32 is from the exact result */
} case_result;

enum { CASE_ARGUMENTS = 20, CASE_RESULTS = 64 };

typedef struct parity_case {
    tern_dtype dtype;
    int number; /* in its file */
    int n_arguments, n_outs, n_afters, n_grads;
    case_argument argument[CASE_ARGUMENTS];
    case_result out[CASE_RESULTS], after[8], grad[CASE_RESULTS], grad2[CASE_RESULTS], in_place;
    int n_grads2;
    const char *kind;    /* which of variants.py made it; "" for PyTorch's own samples */
    const char *error;   /* PyTorch's refusal; NULL for a case with results */
    const char *refused; /* the same, of a case whose message need not carry PyTorch's numbers */
    const char *in_place_refused; /* PyTorch's refusal of the form in place */
    bool has_in_place;
} parity_case;

typedef struct parity_file {
    char *text; /* everything; pointers point into it */
    const char *op;
    stored_tensor *tensor;
    int64_t n_tensors;
    parity_case *cases;
    int n_cases;
    struct {
        double absolute, relative;
    } tolerance[16]; /* by dtype */
    void *blocks;    /* memory of the lists */
} parity_file;

/* Calls the form in place of the operation on the first of the values; false if tern has none for them. *out: what
 * it returns. */
bool parity_in_place(const parity_file *file, const tern_value *values, int n, tern_tensor **out);

/* Reads folder/<op>.gz; false if there is none. A file that is damaged ends the program. */
bool parity_open(parity_file *file, const char *folder, const char *op);
void parity_close(parity_file *file);

/* How the elements of dense tensors lie in memory, incoming gradients too: as PyTorch's did, with the first dim the
 * fastest, with the dims but the first in reverse, with gaps between all elements and an offset, or with gaps
 * between rows. Incoming are the gradients alone, in each of
 * these ways. */
typedef enum parity_layout {
    PARITY_AS_STORED,
    PARITY_TRANSPOSED,
    PARITY_PERMUTED,
    PARITY_SPACED,
    PARITY_ROWS,
    PARITY_INCOMING,
    PARITY_LENT
} parity_layout;

/* The tensor on the device in this layout; with dtype TERN_F64 all of floating point become that. Owned by the
 * scope. */
tern_tensor *parity_tensor(const stored_tensor *stored, tern_dtype dtype, const char *device,
                           parity_layout layout);
/* x, dense, in this layout. Owned by the scope. */
tern_tensor *parity_lay_out(tern_tensor *x, parity_layout layout);
/* The arguments of a case as values; tensors of floating point become wide if that is TERN_F64. list is room
 * for the tensors of lists. */
int parity_values(const parity_file *file, const parity_case *c, tern_dtype wide,
                  const char *device, parity_layout layout, tern_value *values, tern_tensor **list);

/* Compares x with what is expected: dtype, shape, and each element within tolerance. Where they
 * differ, says so in text and returns false. Where PyTorch's own float32 is less exact than the
 * tolerance, twice its error is the tolerance: the results of both have one. */
bool parity_close_to(const tern_tensor *x, const parity_file *file, const case_result *result,
                     char *text, size_t size);

/* ---- unsupported.txt, fresh.txt, edges.txt, seeds.txt: lines "operation | what | reason" --------------
 * operation: a pattern as of the shell. what: `dtype float16`, `arg max_norm` (given),
 * `arg mode text bicubic` (of that value), or `arg index int32` (a tensor of that dtype); values
 * are patterns, too. Such a case may fail as a whole. `lacks PATTERN` and `differs PATTERN` are of what was
 * run and failed, and why: of the text "form dtype kind: failure". */
bool parity_read_unsupported(const char *path, bool own);
/* The index of the line that a case falls under, -1 for none. */
int parity_unsupported(const parity_file *file, const parity_case *c);
/* The index of the line that a failure falls under, -1 for none; *differs: whether it is a difference, rather than
 * something that tern lacks. */
int parity_listed(const parity_file *file, const parity_case *c, const char *form, const char *text,
                  bool *differs);
/* Its text, and whether its list was read as the set's own; NULL past the end. */
const char *parity_unsupported_line(int i, bool *own);

/* ---- refusals: whether the numbers of PyTorch's message are in tern's. Those that lack into
 * lacking. */
bool parity_same_facts(const char *theirs, const char *ours, char *lacking, size_t size);

#endif
