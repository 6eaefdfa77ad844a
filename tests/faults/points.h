/* points.h -- the entry points of a driver of the tests' own: counted, and told to fail. */
#ifndef TERN_TESTS_FAULT_POINTS_H
#define TERN_TESTS_FAULT_POINTS_H
#include <stdbool.h>

enum { MOST_FAULT_POINTS = 128 };

/* What the driver asks at each entry: the code that the call is to answer, 0 for none. */
int fault_point(const char *name);

/* The rest is for tests, which find it in the driver's library. Points are numbered as they were
 * first called. */
__attribute__((visibility("default"))) int fault_points(void);
__attribute__((visibility("default"))) const char *fault_name(int i);
/* Since the last fault_arm. */
__attribute__((visibility("default"))) unsigned long long fault_calls(int i);
/* Counts begin at zero, and the n-th call of a point answers code, as do those after it where
 * `on` says so; NULL: none does. The name may be one that was not called yet. */
__attribute__((visibility("default"))) void fault_arm(const char *name, unsigned long long n,
                                                      bool on, int code);

#endif
