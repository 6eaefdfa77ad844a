/* from_nn.c -- the functions that nn/ registered. */
#include "base/from_nn.h"

const tern_nn_functions *_Atomic tern_from_nn;
