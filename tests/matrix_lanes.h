/* matrix_lanes.h -- the dialect for kernels over matrix.h on the host, as work-groups of lanes.h
 * with the matrix instruction of MATRIX_WAY in matrix_unit.h, for halves of type TERN_T. */
#ifndef TERN_TESTS_MATRIX_LANES_H
#define TERN_TESTS_MATRIX_LANES_H
#include "lanes.h"
#include <math.h>
#include "prelude_host.h"
#undef LID
#undef LSIZE
#undef BARRIER
#undef LOCAL_ARRAY
#undef GROUPS
#undef LANES
#undef TERN_WG
#define LID       ((i32)the_lanes.item)
#define LSIZE     TERN_WG
#define BARRIER() lanes_wait(LANE_AT_BARRIER)
#define GROUPS(g, n)                                                                               \
    for (idx g = the_lanes.group, g##_n = (idx)(n); g < g##_n; g += the_lanes.groups)
#define GROUP_ID                ((idx)the_lanes.group)
#define LANES(j, n)             for (idx j = LID; j < (idx)(n); j += TERN_WG)
#define LOCAL_ARRAY(T, name, n) static T name[n] __attribute__((aligned(16)))
#define TERN_KERNEL(n)          static void n
#define PARAM_OUT(T, a)         T *a
#define PARAM_IN(T, a)          const T *a
#define PARAM_ARG(T, a)         const T a
#include "params_device.h"
#include "dialect.h"
#include "shapes.h"
#include "nd_index.h"
#include "math.cl"
#include "math_special.cl"
#include "math_names.h"
#define MATRIX_ROLLED    1
#define MATRIX_SIMULATED 1
#include "matrix_unit.h"
#endif
