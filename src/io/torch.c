/* torch.c -- reads archives of torch.save and torch.jit.save, which have a pickle and the bytes of
 * storages; recognizes the kind of an archive. */
#include "io/torch.h"
#include "io/npz.h"
#include <stdio.h>
#include <string.h>

/* ---- members --------------------------------------------------------------------------------- */

/* An archive, and the index of its members by name. */
typedef struct archive {
    tern_file *file;
    tern_keys members;
    tern_text stem; /* "archive/", with which the members' names begin */
} archive;

tern_status io_torch_member(const tern_file *file, const tern_keys *members, const char *stem,
                            const char *name, io_member_facts *facts, bool *found)
{
    tern_text path = {0};
    tern_text_add(&path, "%s%s", stem, name);
    int i = path.failed ? -1 : tern_keys_find(members, path.data);
    tern_status status = path.failed ? TERN_ERR_MEMORY : TERN_OK;
    *found = i >= 0;
    if (i >= 0)
        status = io_zip_member(file, i, facts);
    tern_text_free(&path);
    return status;
}

/* Finds the first member whose name ends in `end`, and sets the stem to what is before. */
static tern_status find_stem(archive *a, const char *end, bool *found)
{
    *found = false;
    for (int i = 0; i < io_zip_count(a->file) && !*found; i++) {
        io_member_facts facts;
        TERN_TRY(io_zip_member(a->file, i, &facts));
        *found = tern_ends_with(facts.name, end);
        if (*found)
            tern_text_add(&a->stem, "%.*s", (int)(strlen(facts.name) - strlen(end) + 1),
                          facts.name);
    }
    return a->stem.failed ? TERN_ERR_MEMORY : TERN_OK;
}

static tern_status list_members(archive *a)
{
    for (int i = 0; i < io_zip_count(a->file); i++) {
        io_member_facts facts;
        TERN_TRY(io_zip_member(a->file, i, &facts));
        if (tern_keys_find(&a->members, facts.name) >= 0)
            return io_bad(a->file, 0, "`%s` is twice in the archive", IO_SHOW(facts.name));
        TERN_TRY(tern_keys_add(&a->members, facts.name, i));
    }
    return TERN_OK;
}

static tern_status check_byte_order(const archive *a)
{
    io_member_facts facts;
    bool found;
    char order[8] = "";
    size_t n;
    TERN_TRY(io_torch_member(a->file, &a->members, a->stem.data, "byteorder", &facts, &found));
    if (found)
        TERN_TRY(io_zip_read(a->file, &facts, order, sizeof order - 1, &n, false));
    if (!found || strcmp(order, "little") == 0)
        return TERN_OK;
    return io_bad(a->file, 0, "%sits byte order is \"%s\", and only little-endian files are read",
                  strcmp(order, "big") == 0 ? "the file is big-endian: " : "", IO_SHOW(order));
}

/* ---- torch.save and torch.jit.save ----------------------------------------------------------- */

typedef struct checkpoint {
    io_checkpoint c;
    const archive *a;
} checkpoint;

/* Finds the record of a storage, which must have the pickle's number of bytes. */
static tern_status find_record(io_checkpoint *c, const char *name, const io_value *storage,
                               io_place *place)
{
    const archive *a = ((checkpoint *)c)->a;
    const io_value *key = &c->pickle.values[storage->is.storage.key];
    const io_torch_type *type = io_torch_type_at(storage->is.storage.type);
    uint64_t bytes = type ? (uint64_t)type->bytes : 1;
    io_member_facts facts;
    char path[128];
    bool found;
    if (key->count > 100 || memchr(io_text_of(&c->pickle, key), '/', (size_t)key->count))
        return io_torch_bad_tensor(c->file, name, "its storage has no plain name");
    snprintf(path, sizeof path, "data/%.*s", key->count, io_text_of(&c->pickle, key));
    TERN_TRY(io_torch_member(c->file, &a->members, a->stem.data, path, &facts, &found));
    if (!found)
        return io_torch_bad_tensor(c->file, name, "its storage is not in the archive");
    if (__builtin_mul_overflow(bytes, (uint64_t)storage->is.storage.count, &bytes) ||
        bytes != facts.size)
        return io_torch_bad_tensor(c->file, name, "its storage is not as long as the pickle says");
    *place = (io_place){(int)facts.index, 0, bytes};
    return TERN_OK;
}

static tern_status read_pickle(checkpoint *k)
{
    io_pickle *p = &k->c.pickle;
    io_member_facts facts;
    bool found;
    const archive *a = k->a;
    TERN_TRY(io_torch_member(a->file, &a->members, a->stem.data, "constants.pkl", &facts, &found));
    k->c.is_script = found;
    TERN_TRY(io_torch_member(a->file, &a->members, a->stem.data, "data.pkl", &facts, &found));
    if (facts.size > IO_TORCH_MOST_PICKLE ||
        /* a compressed pickle: memory is limited by the file's size */
        facts.size > (16 << 20) + 64 * a->file->parts[0].size)
        return io_bad(a->file, 0, "data.pkl is too large: %llu bytes",
                      (unsigned long long)facts.size);
    p->bytes = tern_grow(NULL, (size_t)facts.size + 1);
    if (!p->bytes)
        return TERN_ERR_MEMORY;
    return io_zip_read(a->file, &facts, p->bytes, (size_t)facts.size, &p->n, true);
}

static tern_status open_checkpoint(archive *a)
{
    int root;
    checkpoint k = {.c = {.file = a->file, .find = find_record}, .a = a};
    k.c.pickle = (io_pickle){.file = a->file, .what = "data.pkl", .persistent = io_pickle_storage};
    tern_status status = read_pickle(&k);
    if (status == TERN_OK)
        status = io_pickle_run(&k.c.pickle, &root);
    if (status == TERN_OK)
        status = io_torch_entries(&k.c, root);
    io_torch_free(&k.c);
    return status;
}

/* ---- kind of an archive ---------------------------------------------------------------------- */

/* Records an error for an archive with neither PyTorch's files nor arrays; a member's name may show
 * its kind. */
static tern_status refuse(const tern_file *file)
{
    static const char *const known[][2] = {
        {".dist-info/WHEEL", "a wheel of Python's"},
        {"serialized_exported_program.json", "a .pt2 as PyTorch 2.1 to 2.7 wrote them: save the "
                                             "program's state_dict() with torch.save"},
        {"model.weights.h5", "a Keras model: save its weights as .npz or safetensors"},
        {"META-INF/MANIFEST.MF", "a Java archive"},
        {"xl/workbook.xml", "an Excel workbook: save it as CSV, which tern_datasets_csv reads"},
        {"word/document.xml", "a Word document"},
    };
    for (int i = 0; i < io_zip_count(file); i++) {
        io_member_facts facts;
        TERN_TRY(io_zip_member(file, i, &facts));
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (tern_ends_with(facts.name, known[k][0]))
                return io_bad(file, 0, "it is %s", known[k][1]);
    }
    return io_bad(file, 0, "it is a zip without a file of PyTorch's and without NumPy's arrays");
}

static tern_status open_one(archive *a, bool *found)
{
    static const char *const ends_with[] = {"/data.pkl", "/archive_format"};
    tern_status (*const opens[])(archive *) = {open_checkpoint, NULL};
    for (int i = 0; i < 2; i++) {
        TERN_TRY(find_stem(a, ends_with[i], found));
        if (!*found)
            continue;
        TERN_TRY(list_members(a));
        TERN_TRY(check_byte_order(a));
        return opens[i] ? opens[i](a) : io_torch_export_open(a->file, &a->members, a->stem.data);
    }
    return TERN_OK;
}

tern_status io_archive_open(tern_file *file)
{
    archive a = {.file = file};
    bool found;
    TERN_TRY(io_zip_open(file));
    tern_status status = open_one(&a, &found);
    tern_keys_free(&a.members);
    tern_text_free(&a.stem);
    if (status != TERN_OK || found)
        return status;
    TERN_TRY(io_npz_open(file));
    return file->count ? TERN_OK : refuse(file);
}
