/* fuzz.h -- programs of calls, made from bytes or read from text, with checks after each call.
 *
 * A step is a call of an operation by name: of the library's table (tern/names.h), or of a row of
 * this folder's own (rows.def files) for what has no name there: making tensors, writing in place,
 * going back, modules, optimizers. Tensors stand in slots, "x3"; other objects are numbers. A
 * program is one step a line, as it is printed before it runs, and a line that says which slots its
 * results went to:
 *
 *     tensor(size=[2,3], dtype=float32, fill='small', seed=17)
 *     -> x0
 *     nn.functional.softmax(input=x0, dim=-1)
 *     -> x1
 *
 * What is printed can be read again: the corpus is such text, so that it means the same when the
 * generator changes. */
#ifndef TERN_TESTS_FUZZ_H
#define TERN_TESTS_FUZZ_H
#include "names/rows.h"
#include <stdio.h>
#include <tern/tern.h>

enum {
    FUZZ_SLOTS = 40,
    FUZZ_LIST = 28, /* of a list in a step */
    FUZZ_RESULTS = 32,
    FUZZ_VAST = 1 << 14 /* elements: more are for views and refusals only */
};

/* ---- bytes as choices (source.c) ---------------------------------------------------------- */
typedef struct fuzz_source {
    const uint8_t *bytes;
    size_t size, at;
} fuzz_source;
/* 0 .. n - 1; 0 at the end of the bytes. */
uint32_t fuzz_pick(fuzz_source *s, uint32_t n);
bool fuzz_chance(fuzz_source *s, uint32_t percent);
bool fuzz_ended(const fuzz_source *s);
int64_t fuzz_hostile_int(fuzz_source *s);
double fuzz_hostile_real(fuzz_source *s);
/* One of the words in text, which are separated by blanks, into word[48]. */
void fuzz_pick_word(fuzz_source *s, const char *text, char *word);

/* ---- steps -------------------------------------------------------------------------------- */
typedef struct fuzz_value {
    char name[32];
    tern_value_kind kind;
    int count;
    tern_scalar scalar;
    tern_dtype dtype;
    int64_t ints[FUZZ_LIST];
    double reals[FUZZ_LIST];
    int slots[FUZZ_LIST]; /* of tensors */
    char text[48];
} fuzz_value;

typedef struct fuzz_step {
    const tern_named_op *op;
    int n, capacity;
    fuzz_value values[TERN_MAX_PARAMETERS];
} fuzz_step;

void fuzz_step_begin(fuzz_step *step, const tern_named_op *op);
fuzz_value *fuzz_add(fuzz_step *step, const char *name, tern_value_kind kind);
void fuzz_add_int(fuzz_step *step, const char *name, int64_t value);
void fuzz_add_ints(fuzz_step *step, const char *name, const int64_t *values, int count);
void fuzz_add_tensor(fuzz_step *step, const char *name, int slot);
void fuzz_add_text(fuzz_step *step, const char *name, const char *text);
void fuzz_add_dtype(fuzz_step *step, const char *name, tern_dtype dtype);

/* Run it with all checks; the number of results, -1 after an error. A step whose tensors are
 * missing is passed over. */
int fuzz_run(const fuzz_step *step);
/* Whether a module or a function of the program writes into what it is given: then inputs may have
 * changed when a later part fails. */
extern bool fuzz_writes_inside;
/* Whether op is to change what it is given. */
bool fuzz_writes(const tern_named_op *op);
/* What the last step gave, kept until the next one. */
extern tern_tensor *fuzz_results[FUZZ_RESULTS];
extern int fuzz_result_count, fuzz_next_slot;
/* Put the first results into the next slots; the slot of the first one, -1 if there is none. */
int fuzz_place(void);
extern tern_tensor *fuzz_slots[FUZZ_SLOTS];
void fuzz_put(int slot, tern_tensor *x);
/* Let go of all tensors. */
void fuzz_drop_all(void);
/* Whether that slot holds a tensor, of at most FUZZ_VAST elements. */
bool fuzz_is_handy(int slot);

/* ---- text (text.c) ------------------------------------------------------------------------ */
void fuzz_print_step(FILE *file, const fuzz_step *step);
/* Run the lines of a program, from '\n' to '\n'; 0, or the number of a line that can't be read. */
int fuzz_run_text(const char *text);
/* Where steps are printed before they run; NULL: nowhere. */
extern FILE *fuzz_log;

/* ---- rows (rows.c) ------------------------------------------------------------------------ */
enum { FUZZ_NAMES = 4096 };
/* The places of names in a table, in which a name may stand several times. */
typedef struct fuzz_index {
    const char *names[FUZZ_NAMES];
    int next[FUZZ_NAMES], first[FUZZ_NAMES]; /* 1 + place, or 0 */
    int count;
} fuzz_index;
/* The name of the next place. */
void fuzz_index_add(fuzz_index *index, const char *name);
/* The first place of that name behind the place `after`, which is of that name too, or -1; -1 if
 * there is none. */
int fuzz_index_find(const fuzz_index *index, const char *name, int after);
/* Families of rows that only this target has; NULL-ended. */
extern const names_family *const fuzz_families[];
/* The first own row, or else operation of the library, of that name. */
const tern_named_op *fuzz_find(const char *name);
/* Another one of the same name. */
const tern_named_op *fuzz_find_next(const tern_named_op *op);
/* Any of the library's. */
const tern_named_op *fuzz_any_named(fuzz_source *s);
extern const names_family fuzz_tensor_rows, fuzz_inplace_rows, fuzz_gradient_rows, fuzz_module_rows,
    fuzz_layer_rows, fuzz_training_rows;
/* For rows that make no tensor. */
#define NOTHING(...) ((void)a, (void)out, (void)capacity, __VA_ARGS__)
#define DONE(status) ((status) == TERN_OK ? 0 : -1)

/* x, or what the word makes of it: another type, another shape, an error, ... */
tern_tensor *fuzz_changed(const char *what, tern_tensor *x);
/* The same word, for as long as the process lives. */
const char *fuzz_lasting(const char *word);

/* ---- arguments (arguments.c) -------------------------------------------------------------- */
/* What the letters of a recipe (recipes.def) stand for. */
typedef struct fuzz_shapes {
    const char *recipe; /* or NULL */
    int64_t letters[128];
    int64_t leading[3];
    int n_leading, ndim;
    tern_dtype dtype;
} fuzz_shapes;
/* New ones, by one of the recipes of that name. */
void fuzz_shapes_begin(fuzz_source *s, fuzz_shapes *shapes, const char *name);
/* Make up a call of op, first the tensors it takes, and run it; its result as fuzz_run's. */
int fuzz_call(fuzz_source *s, const tern_named_op *op);
/* The same with shapes that are there. words: the recipe's are for the tensors of op. */
int fuzz_call_with(fuzz_source *s, const tern_named_op *op, fuzz_shapes *shapes, bool words);
/* An allocation of the next step fails. */
void fuzz_fail_next(fuzz_source *s);
/* A tensor for each word of the recipe into slots[most]; how many. */
int fuzz_inputs(fuzz_source *s, fuzz_shapes *shapes, int *slots, int most);
/* A new tensor in a slot: of this shape, or with size NULL of any; high: integers below it. */
int fuzz_tensor(fuzz_source *s, const int64_t *size, int ndim, tern_dtype dtype, int64_t high);
tern_dtype fuzz_dtype(fuzz_source *s);
/* Of each target: a number for a parameter that means an object; false where it means none. */
bool fuzz_pick_object(fuzz_source *s, const char *name, int64_t *value);
const tern_named_op *fuzz_any(fuzz_source *s, const names_family *family);

/* ---- checks (check.c) --------------------------------------------------------------------- */
/* Report what is wrong and abort. */
_Noreturn void fuzz_fault(const char *what, const char *format, ...) TERN_PRINTF_(2, 3);
typedef struct fuzz_snapshot {
    tern_tensor *x;
    tern_shape shape, stride;
    tern_dtype dtype;
    int64_t version; /* -1: may be another, with the same elements */
    uint64_t sum;    /* of the elements, where they are few and can be read */
    bool has_sum;
} fuzz_snapshot;
void fuzz_look(fuzz_snapshot *snapshot, tern_tensor *x);
void fuzz_check_unchanged(const fuzz_snapshot *snapshot, const char *op);
/* Sizes are not negative, their product is numel, and every element can be read. */
void fuzz_check_result(tern_tensor *x, const char *op);

/* ---- two devices (devices.c) -------------------------------------------------------------- */
/* Where each step that the cpu runs is run too; NULL: nowhere. */
extern const char *fuzz_other_device;
/* Run op on copies of the values on both. */
void fuzz_compare_devices(const fuzz_step *step, const tern_named_op *op, const tern_value *values);

/* ---- programs ----------------------------------------------------------------------------- */
/* Of each target: tensors that a failing op leaves alone though it is not given them. */
int fuzz_watched(const fuzz_step *step, tern_tensor **list, int most);
/* The n-th allocation of the next step fails; -1: that step runs again and again, first with its
 * first allocation failing, then with its second one, and so on until none is left to fail. */
extern int64_t fuzz_fail_allocation;
/* For what is the caller's own: no allocation of it fails. */
void fuzz_spare_begin(void);
void fuzz_spare_end(void);
/* Steps that were run, and those of them that ended well. */
extern uint64_t fuzz_calls, fuzz_good_calls;
/* A request for more memory than that fails. */
extern size_t fuzz_most_bytes;
/* Around each: modes as they are at first, a limit of time for each step, and afterwards no memory lost. */
void fuzz_begin(void);
void fuzz_end(void);
/* What the target makes of bytes, between the two; and what it has that is to be freed. */
void fuzz_program(fuzz_source *s);
/* End what is open, such as blocks; free what is not a tensor. */
void fuzz_leave(void);
void fuzz_clean(void);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif
