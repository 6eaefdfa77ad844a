/* chain.h -- elementwise rows that follow each other in a recording, as one command: each element
 * goes through all of them at once, and what only later rows read is not written. The first of them
 * may be a kernel that reduces and whose result goes on, the last one that reads what they make.
 *
 * A backend makes one of a chain, from the rows' texts or from their functions. Between two rows a
 * number is rounded as the store and the load that are left out would have done. */
#ifndef TERN_DEVICE_CHAIN_H
#define TERN_DEVICE_CHAIN_H
#include <stdint.h>
#include <string.h>

enum { TERN_CHAIN_ROWS = 12, TERN_CHAIN_TENSORS = 10, TERN_CHAIN_INPUTS = 3, TERN_CHAIN_LIVE = 6 };
/* of a kernel with a slot */
enum { TERN_CHAIN_SLOT_ARGS = 20 };

/* Where a chain is part of another kernel, whose text has it there (cl_kernels/chain_slots.h): what
 * it would store goes through the rows behind it, or what it would load through those before. Its
 * arguments follow the chain's, and that of the slot is unused. */
typedef struct tern_chain_slot {
    const struct tern_kernel_ref *kernel;
    uint8_t stores;   /* 1: its rows follow */
    uint8_t arg;      /* the tensor */
    uint8_t sizes[3]; /* arguments whose product is its number of elements, the last side by side */
    uint8_t parts;    /* an argument: 1, or the launch with `pieces` in the last one goes first */
    int32_t pieces;
} tern_chain_slot;

typedef struct tern_chain_row {
    const char *file, *name;       /* "elementwise", "gelu_gradient" */
    void *compiled;                /* the row alone, as the backend resolved it */
    uint8_t n;                     /* inputs */
    uint8_t in[TERN_CHAIN_INPUTS]; /* tensors, or TERN_CHAIN_TENSORS + an earlier row */
    int8_t out;                    /* the tensor that is written; -1: none */
    uint8_t wide;                  /* its result is float32, in a chain of half precision */
    uint8_t slot;                  /* below TERN_CHAIN_LIVE: that of no other result read later */
    uint8_t numbers;
    uint64_t number[2]; /* their bits, as a launch has them */
} tern_chain_row;

/* Or `rows` launches of one kernel side by side (beside.h), each with its own work-groups and
 * arguments; those of the first follow the others'. n is 0 where indices have 32 bits.
 *
 * All tensors have n elements next to each other, or one that is read n times (step 0). In a chain
 * of half precision some may be float32 (wide), where casts are among its rows ("copy"). */
typedef struct tern_chain {
    int64_t n;
    int rows, tensors;
    uint8_t is_beside;
    uint8_t step[TERN_CHAIN_TENSORS], wide[TERN_CHAIN_TENSORS];
    const tern_chain_slot *slot; /* of the first row (stores) or the last; NULL: there is none */
    tern_chain_row row[TERN_CHAIN_ROWS];
} tern_chain;

/* Whether row i is the kernel with the slot. */
static inline int tern_chain_is_slot(const tern_chain *chain, int i)
{
    return chain->slot && i == (chain->slot->stores ? 0 : chain->rows - 1);
}
/* Whether a row is a cast: it has no function, its result is its operand as it is stored. */
static inline int tern_chain_is_cast(const tern_chain_row *row)
{
    return strcmp(row->file, "copy") == 0;
}

#endif
