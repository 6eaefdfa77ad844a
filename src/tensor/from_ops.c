/* from_ops.c -- the functions that ops/ registered. */
#include "tensor/from_ops.h"

const tern_ops_functions *tern_from_ops;
