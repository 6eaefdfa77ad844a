/* home.c -- gradients that are made where they are to lie (leaf.h): by the operation, not by a copy at its turn. */
#include "tensor/fuse/fuse.h"
#include "tensor/walk.h"

const tern_edge *tern_walk_edge(const tern_node *node, int i, uint32_t wide)
{
    const tern_edge *edge = &node->edge[i];
    return i < 32 && wide >> i & 1 ? &edge->node->edge[0] : edge;
}

/* Not where somebody is to see it before, or another one is there. */
static tern_tensor *home_of(tern_walk *w, const tern_edge *edge)
{
    tern_history *h = edge->leaf ? edge->leaf->history : NULL;
    if (!h || !h->leaf || !h->leaf->home || h->hooks || w->create || w->wanted)
        return NULL;
    tern_arrival *a = tern_walk_leaf(w, edge->leaf);
    if (!a || a->grad || (!a->writes && !(a->writes = tern_walk_become_writer(w, edge->leaf))))
        return NULL;
    return h->leaf->home;
}

/* Whether node's backward may read from the same memory: the gradient of a step before may be an input. */
static bool is_read(const tern_node *node, const tern_tensor *x)
{
    for (int i = 0; i < node->n_in + node->n_out; i++)
        if (node->saved[i].tensor && node->saved[i].tensor->storage == x->storage)
            return true;
    for (int i = 0; i < node->n_out; i++)
        if (node->output[i].dout && node->output[i].dout->storage == x->storage)
            return true;
    return false;
}

/* Of a leaf that is several inputs for one of them. */
void tern_walk_find_homes(tern_walk *w, const tern_node *node, tern_gradient *g)
{
    const uint32_t all = node->op->fusion ? node->op->fusion->grad_outs : 0;
    for (int i = 0; all && i < node->n_in && i < TERN_MAX_HOMES; i++) {
        tern_tensor *home = all >> i & 1 ? home_of(w, tern_walk_edge(node, i, g->wide)) : NULL;
        for (int k = 0; k < i && home; k++)
            home = g->home[k] == home ? NULL : home;
        g->home[i] = home && !is_read(node, home) ? home : NULL;
    }
}

/* Who saved what was there is to hear of it now. */
void tern_walk_note_homes(const tern_gradient *g)
{
    for (int i = 0; i < g->n_in && i < TERN_MAX_HOMES; i++)
        if (g->home[i] && g->din[i] == g->home[i])
            tern_bump_version(g->home[i]);
}
