/* logic.cl -- the kernels of every row of logic.def. */
#include "row_kernels.h"
#include "logic.def"
