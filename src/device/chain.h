/* chain.h -- a chain: consecutive elementwise operations (rows) of a recording, fused to one
 * command. The command computes all rows for an element before it goes on to the next element, and
 * does not write results that only later rows read. The first row may be another kernel whose
 * result the rows read, and the last row may be another kernel that reads the rows' result.
 *
 * A backend compiles a chain to one kernel from the text of the rows, or on the host calls their
 * functions. Between two rows a number is rounded as the store and the load that are left out would
 * round it. */
#ifndef TERN_DEVICE_CHAIN_H
#define TERN_DEVICE_CHAIN_H
#include <stdint.h>

enum { TERN_CHAIN_ROWS = 12, TERN_CHAIN_TENSORS = 10, TERN_CHAIN_INPUTS = 3, TERN_CHAIN_LIVE = 6 };
enum { TERN_CHAIN_SLOT_ARGS = 20 }; /* the most arguments of a kernel with a slot */

/* The names of files whose kernels a recording recognizes by the address of the name: a kernel
 * whose ref has one of the first three names is a row, one with the last name is a cast. */
extern const char tern_file_elementwise[], tern_file_special[], tern_file_logic[], tern_file_copy[];

/* A slot: the place in the text of another kernel (cl_kernels/chain_slots.h) into which the rows of
 * a chain are compiled. The rows compute what the kernel would store, or what it would load. The
 * kernel's arguments follow the chain's, and the tensor of the slot is unused. */
typedef struct tern_chain_slot {
    const struct tern_kernel_ref *kernel;
    uint8_t stores;   /* 1: the rows follow the kernel's store; 0: they precede its load */
    uint8_t arg;      /* the number of the argument that is the tensor of the slot */
    uint8_t sizes[3]; /* the numbers of the arguments whose product is the number of elements of the
                       * tensor; the last one's dim is contiguous */
    uint8_t parts;    /* the number of an argument: if its value is not 1, the kernel is launched
                       * twice, first with the flag `pieces` in its last argument */
    int32_t pieces;
} tern_chain_slot;

typedef struct tern_chain_row {
    const char *file, *name;       /* "elementwise", "gelu_gradient" */
    void *compiled;                /* the backend's kernel of the row alone */
    uint8_t n;                     /* the number of inputs */
    uint8_t in[TERN_CHAIN_INPUTS]; /* numbers of tensors, or TERN_CHAIN_TENSORS + an earlier row */
    int8_t out;                    /* the tensor to which the result is written; -1: none */
    uint8_t wide;                  /* the result is float32, in a chain of half precision */
    uint8_t slot;                  /* the variable, below TERN_CHAIN_LIVE, that has the result while
                                    * later rows read it */
    uint8_t numbers;               /* how many arguments are numbers */
    uint64_t number[2];            /* the bits of these numbers, as in tern_arg.value */
} tern_chain_row;

/* A chain; or if is_beside, `rows` launches of one kernel side by side (beside.h), each with its
 * own work-groups and arguments. The arguments of the first launch come last, and n is 0 if indices
 * have 32 bits.
 *
 * Each tensor of a chain has n contiguous elements (step 1), or one element that is read n times
 * (step 0). In a chain of half precision some tensors may be float32 (wide) if there are casts
 * ("copy") among the rows. */
typedef struct tern_chain {
    int64_t n;
    int rows, tensors;
    uint8_t is_beside;
    uint8_t step[TERN_CHAIN_TENSORS], wide[TERN_CHAIN_TENSORS];
    const tern_chain_slot *slot; /* the slot of the first row (stores) or of the last; NULL: none */
    tern_chain_row row[TERN_CHAIN_ROWS];
} tern_chain;

/* Returns whether row i is the kernel with the slot. */
static inline int tern_chain_is_slot(const tern_chain *chain, int i)
{
    return chain->slot && i == (chain->slot->stores ? 0 : chain->rows - 1);
}
/* Returns whether a row is a cast. A cast has no function: its result is its operand, rounded by
 * the store. */
static inline int tern_chain_is_cast(const tern_chain_row *row)
{
    return row->file == tern_file_copy;
}

#endif
