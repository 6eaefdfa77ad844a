/* lanes.h -- a work-group on the host: its items are contexts that take turns at barriers of the
 * group and at instructions that a sub-group does together. What one item does between two of
 * these is done before the next begins. */
#ifndef TERN_TESTS_LANES_H
#define TERN_TESTS_LANES_H
#include "base/os_context.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_MOST = 256, LANES_STACK = 128 * 1024 };
enum { LANE_READY, LANE_AT_BARRIER, LANE_AT_SUB_GROUP, LANE_DONE };
static struct {
    tern_context own[LANES_MOST], scheduler;
    char *stacks;
    int item, group, groups, turn, state[LANES_MOST];
    void (*kernel)(void *);
    void *argument;
    bool lost; /* items that waited for others, who waited elsewhere or were done */
} the_lanes;

static void lanes_wait(int state)
{
    int own = the_lanes.item;
    the_lanes.state[own] = state;
    tern_context_swap(&the_lanes.own[own], &the_lanes.scheduler);
}

static void lanes_begin(void *unused)
{
    (void)unused;
    the_lanes.kernel(the_lanes.argument);
    lanes_wait(LANE_DONE);
}

static bool lanes_release(int from, int to, int state)
{
    for (int i = from; i < to; i++)
        if (the_lanes.state[i] != state)
            return false;
    for (int i = from; i < to; i++)
        the_lanes.state[i] = LANE_READY;
    return true;
}

static void lanes_start(int size)
{
    if (!the_lanes.stacks)
        the_lanes.stacks = malloc((size_t)LANES_MOST * LANES_STACK);
    for (int i = 0; i < size; i++) {
        tern_context_make(&the_lanes.own[i], the_lanes.stacks + (size_t)i * LANES_STACK,
                          LANES_STACK, lanes_begin, NULL);
        the_lanes.state[i] = LANE_READY;
    }
}

/* kernel(argument) as every item of `groups` groups of `size`, whose sub-groups have `lanes`. In
 * each second group the last item goes first. */
static inline void lanes_run(int groups, int size, int lanes, void (*kernel)(void *),
                             void *argument)
{
    the_lanes.kernel = kernel;
    the_lanes.argument = argument;
    the_lanes.groups = groups;
    for (the_lanes.group = 0; the_lanes.group < groups; the_lanes.group++) {
        lanes_start(size);
        for (bool goes_on = true; goes_on;) {
            goes_on = false;
            for (int k = 0; k < size; k++) {
                int i = the_lanes.turn ? k : size - 1 - k;
                if (the_lanes.state[i] != LANE_READY)
                    continue;
                goes_on = true;
                the_lanes.item = i;
                tern_context_swap(&the_lanes.scheduler, &the_lanes.own[i]);
            }
            for (int i = 0; i < size; i += lanes)
                goes_on = lanes_release(i, i + lanes, LANE_AT_SUB_GROUP) || goes_on;
            goes_on = lanes_release(0, size, LANE_AT_BARRIER) || goes_on;
        }
        the_lanes.turn ^= 1;
        for (int i = 0; i < size; i++)
            the_lanes.lost = the_lanes.lost || the_lanes.state[i] != LANE_DONE;
    }
}
#endif
