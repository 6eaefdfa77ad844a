/* graph_text.c -- tern_graph_text, which describes how a recording was optimized. */
#include "base/text.h"
#include "device/plan.h"
#include <inttypes.h>
#include <string.h>

static bool is_same(const tern_fused_chain *a, const tern_fused_chain *b)
{
    return strcmp(a->name, b->name) == 0 && a->kernel->dtype == b->kernel->dtype;
}

/* Adds one line for all chains with the same name and dtype, in the order of the list. */
static void add_chains(tern_text *text, const tern_graph *graph)
{
    for (const tern_fused_chain *c = graph->chains, *p; c; c = c->next) {
        int64_t n = 0;
        size_t saved = 0;
        for (p = graph->chains; p != c && !is_same(p, c);)
            p = p->next;
        if (p != c)
            continue;
        for (; p; p = p->next)
            if (is_same(p, c)) {
                n++;
                saved += p->saved;
            }
        tern_text_add(text,
                      "  fused: %s (%s), %d commands as one, %" PRId64 " time%s: %zu bytes not "
                      "moved\n",
                      c->name, tern_dtype_name(c->kernel->dtype), c->chain.rows, n,
                      n == 1 ? "" : "s", saved);
    }
}

char *tern_graph_text(const tern_graph *graph)
{
    if (!graph || !graph->recorded) {
        tern_fail(graph ? TERN_ERR_STATE : TERN_ERR_ARGUMENT, "tern_graph_text: %s",
                  graph ? "nothing was recorded" : "graph is NULL");
        return NULL;
    }
    if (tern_graph_finish(graph) != TERN_OK)
        return NULL;
    tern_text text = {0};
    const int64_t rest = graph->before ? graph->n_before : graph->n_nodes;
    tern_text_add(&text,
                  "a recording on %s: %" PRId64 " commands; %" PRId64
                  " were recorded, of which %" PRId64 " made what nobody reads\n",
                  graph->place->text, graph->n_nodes, rest + graph->n_unread, graph->n_unread);
    add_chains(&text, graph);
    for (int i = 0; i < TERN_MOST_REASONS && graph->apart[i].why; i++)
        tern_text_add(&text, "  not fused: %" PRId64 " elementwise command%s: %.*s\n",
                      graph->apart[i].n, graph->apart[i].n == 1 ? "" : "s",
                      (int)strcspn(graph->apart[i].why, "\n"), graph->apart[i].why);
    if (graph->plan && graph->plan->is_planned)
        tern_text_add(&text, "  memory: %zu bytes with the plan, %zu without\n", graph->plan->after,
                      graph->reserved);
    if (!text.failed)
        return text.data;
    tern_text_free(&text);
    tern_fail(TERN_ERR_MEMORY, "tern_graph_text: out of memory");
    return NULL;
}
