/* aliases.c -- PyTorch's aliases of comparisons. */
#include "ops/elementwise/alias.h"

COMPARE(greater, gt)
COMPARE(greater_equal, ge)
COMPARE(less, lt)
COMPARE(less_equal, le)
COMPARE(not_equal, ne)
