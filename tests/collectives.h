/* collectives.h -- what the tests of collectives share: the devices that take part. */
#ifndef TERN_TESTS_COLLECTIVES_H
#define TERN_TESTS_COLLECTIVES_H
#include "support.h"

enum { MOST = 5 };

/* The tested devices, with_cpu before them; how many. */
static inline int all_devices(const char **devices, bool with_cpu)
{
    int n = 0;
    if (with_cpu)
        devices[n++] = "cpu";
    for (int i = 0; test_device(i) && n < MOST; i++)
        devices[n++] = test_device(i);
    return n;
}

#endif
