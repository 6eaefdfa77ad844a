/* special.cl -- the kernels of every row of special.def. */
#include "row_kernels.h"
#include "special.def"
