/* from_ops.c -- the pointer to the functions that ops/ registers. */
#include "tensor/from_ops.h"

const tern_ops_functions *tern_from_ops;
