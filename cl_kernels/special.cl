/* special.cl -- the kernels of every row of special.def. */
#define ROWS_ARE_LONG 1
#include "row_kernels.h"
#include "special.def"
