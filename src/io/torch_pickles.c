/* torch_pickles.c -- pickles that follow each other in a file, without lengths. */
#include "io/torch_pickles.h"
#include "io/torch.h"

tern_status io_torch_more(io_pickle *p, size_t n)
{
    enum { FIRST = 1 << 14 };
    const uint64_t left = p->end - p->from - p->n; /* bytes left in the file */
    if (n > left)
        return io_pickle_bad(p, "it ends too early");
    uint64_t more = p->n > FIRST ? p->n : FIRST; /* doubles, so that bytes are copied twice at
                                                    most */
    more = more < n ? n : more;
    more = more < left ? more : left;
    if (p->n + more > IO_TORCH_MOST_PICKLE)
        more = n;
    if (p->n + more > IO_TORCH_MOST_PICKLE)
        return io_pickle_bad(p, "the pickle is too large");
    unsigned char *bytes = tern_grow(p->bytes, p->n + (size_t)more);
    if (!bytes)
        return TERN_ERR_MEMORY;
    p->bytes = bytes;
    TERN_TRY(io_read_at(p->file, 0, p->from + p->n, bytes + p->n, (size_t)more, p->what));
    p->n += (size_t)more;
    return TERN_OK;
}

tern_status io_torch_check_system(const io_pickle *p, int value)
{
    const io_value *dict = &p->values[value];
    for (int i = 0; dict->kind == IO_DICT && i + 1 < dict->count; i += 2) {
        const io_value *to = &p->values[dict->is.items[i + 1]];
        if (io_text_is(p, dict->is.items[i], "little_endian") &&
            (to->kind != IO_BOOL || !to->is.integer))
            return io_bad(p->file, 0,
                          "the file is big-endian, and only little-endian files are read");
        if (io_text_is(p, dict->is.items[i], "protocol_version") &&
            (to->kind != IO_INT || to->is.integer != 1001))
            return io_bad(p->file, 0, "its protocol is %lld, and only 1001 is read",
                          to->kind == IO_INT ? (long long)to->is.integer : 0LL);
    }
    return dict->kind == IO_DICT ? TERN_OK
                                 : io_bad(p->file, 0, "what it says of the machine is no dict");
}
