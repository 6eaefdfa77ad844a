/* families.h -- every family of kernels, for one element type; each decides by FAMILY_FLOATS whether
 * it has that type. */
#include "copy.cl"
#include "elementwise.cl"
