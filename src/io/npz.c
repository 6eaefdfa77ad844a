/* npz.c -- archives of arrays: NAME.npy for each, stored or deflated. */
#include "base/option.h"
#include "base/zlib.h"
#include "io/libzip.h"
#include "io/npz.h"
#include "io/numpy.h"
#include <string.h>
#include <tern/io/numpy.h>

/* ---- reading --------------------------------------------------------------------------------- */

/* Adds an entry for a member that is an array. Its header must match the member's size. */
static tern_status take_array(tern_file *file, const io_member_facts *facts)
{
    unsigned char head[IO_NPY_MOST_HEADER + 12];
    size_t n, length = strlen(facts->name);
    if (length < 4 || strcmp(facts->name + length - 4, ".npy") != 0)
        return TERN_OK; /* other members are ignored */
    char *name = tern_copy_text(facts->name);
    if (!name)
        return TERN_ERR_MEMORY;
    name[length - 4] = '\0';
    tern_status status = TERN_OK;
    if (!*name || !io_is_utf8(name) || tern_keys_find(&file->keys, name) >= 0)
        status = io_bad(file, 0, "array `%s` is there twice, or has no name", IO_SHOW(name));
    if (status == TERN_OK)
        status = io_zip_read(file, facts, head, sizeof head, &n, false);
    if (status == TERN_OK) {
        io_entry *e = io_npy_entry(file, name, head, n, facts->size);
        if (e)
            e->part = (int)facts->index;
        else
            status = tern_last_status();
    }
    tern_free(name);
    return status;
}

tern_status io_npz_open(tern_file *file)
{
    for (int i = 0; i < io_zip_count(file); i++) {
        io_member_facts facts;
        TERN_TRY(io_zip_member(file, i, &facts));
        TERN_TRY(take_array(file, &facts));
    }
    return TERN_OK;
}
