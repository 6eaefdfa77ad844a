/* elementwise.cl -- the kernels of every row of elementwise.def. */
#include "row_kernels.h"
#include "elementwise.def"
