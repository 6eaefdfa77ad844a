/* fused.h -- what a recording tells of its commands. */
#ifndef TERN_TESTS_FUSED_H
#define TERN_TESTS_FUSED_H
#include "support.h"
#include <string.h>
#include <tern/graph.h>

static inline bool tells(const tern_graph *graph, const char *what)
{
    char *text = tern_graph_text(graph);
    const bool there = text && strstr(text, what);
    tern_free_text(text);
    return there;
}

#endif
