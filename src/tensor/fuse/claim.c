/* claim.c -- claims of leaves: if several backward passes (of several threads, or nested) reach a
 * leaf, one of them may write the leaf's gradient in place before the leaf is finished. */
#include "tensor/fuse/internal.h"
#include "base/lock.h"

bool tern_fuse_claim(const tern_backward_pass *w, tern_arrival *a)
{
    if (a->claimed)
        return true;
    tern_history *history = a->leaf->history;
    tern_mutex *lock = tern_leaf_lock(a->leaf);
    tern_leaf *leaf = history->leaf;
    a->claimed = !history->grad && leaf->bucket_view && !leaf->writer;
    if (a->claimed)
        leaf->writer = w;
    tern_mutex_unlock(lock);
    return a->claimed;
}

void tern_fuse_unclaim(const tern_backward_pass *w, tern_arrival *a)
{
    if (!a->claimed)
        return;
    tern_mutex *lock = tern_leaf_lock(a->leaf);
    tern_leaf *leaf = a->leaf->history->leaf;
    if (leaf && leaf->writer == w)
        leaf->writer = NULL;
    tern_mutex_unlock(lock);
    a->claimed = false;
}

bool tern_fuse_is_claimed(const tern_backward_pass *w, const tern_leaf *leaf)
{
    return leaf && leaf->writer && leaf->writer != w;
}
