/* dataset.c -- functions of all data sets, and data sets of the program. */
#include "data/data.h"
#include <inttypes.h>
#include <string.h>

static tern_handles handles = TERN_HANDLES("data set", tern_dataset);

static void end(tern_dataset *d)
{
    if (d->type.free_data)
        d->type.free_data(d->data);
    tern_dataset_free(d->inner);
    tern_transform_free(d->transform);
    tern_names_free(&d->classes);
    tern_free(d->name);
    tern_object_end(&handles, &d->handle);
}

tern_dataset *tern_data_dataset_of(const tern_dataset_type *type, int64_t length, int count,
                                   void *data)
{
    const char *function = "tern_data_dataset";
    if (!type || !type->name)
        return tern_fail_argument_null(function, type ? "name" : "type"), NULL;
    if (!type->item && !type->items && !type->next)
        return tern_fail_argument_null(function, "item"), NULL;
    if (length < (type->next ? -1 : 0) || count < 1 || count > TERN_MAX_ITEM)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: %s: length %" PRId64 " should be non-negative, and 1 to %d "
                              "tensors an item, not %d",
                              function, type->name, length, TERN_MAX_ITEM, count);
    tern_dataset *d = tern_object_new(&handles);
    if (!d)
        return NULL;
    d->name = tern_copy_text(type->name);
    if (!d->name) {
        tern_object_end(&handles, &d->handle);
        return NULL;
    }
    d->type = *type;
    d->type.name = d->name;
    d->length = length;
    d->count = count;
    d->data = data;
    return d;
}

tern_dataset *tern_data_dataset(const char *name, int64_t length, int count,
                                tern_dataset_item_function item, void *data)
{
    return tern_data_dataset_of(&(tern_dataset_type){.name = name, .item = item}, length, count,
                                data);
}

tern_dataset *tern_data_iterable_dataset(
    const char *name, int count, tern_status (*rewind)(tern_dataset *self, int64_t epoch),
    tern_status (*next)(tern_dataset *self, tern_tensor **item, bool *end), void *data)
{
    if (!next)
        return tern_fail_argument_null("tern_data_iterable_dataset", "next"), NULL;
    return tern_data_dataset_of(&(tern_dataset_type){.name = name, .rewind = rewind, .next = next},
                                -1, count, data);
}

tern_dataset *tern_dataset_keep(tern_dataset *d, const char *function)
{
    TERN_DATASET_GIVEN(d, function);
    if (!d)
        return tern_fail_argument_null(function, "dataset"), NULL;
    atomic_fetch_add(&d->handle.refs, 1);
    return d;
}

void tern_dataset_free(tern_dataset *d)
{
    TERN_DATASET_GIVEN(d, "tern_dataset_free");
    if (d && atomic_load(&d->handle.refs) == 1)
        end(d);
    else if (d && atomic_fetch_sub(&d->handle.refs, 1) == 1)
        end(d);
}

/* ---- properties ------------------------------------------------------------------------------ */

int64_t tern_dataset_length(const tern_dataset *d)
{
    TERN_DATASET_GIVEN(d, "tern_dataset_length");
    if (!d)
        tern_fail_argument_null("tern_dataset_length", "dataset");
    return d ? d->length : -1;
}

int tern_dataset_count(const tern_dataset *d)
{
    TERN_DATASET_GIVEN(d, "tern_dataset_count");
    if (!d)
        tern_fail_argument_null("tern_dataset_count", "dataset");
    return d ? d->count : -1;
}

const char *tern_dataset_name(const tern_dataset *d)
{
    TERN_DATASET_GIVEN(d, "tern_dataset_name");
    if (!d)
        tern_fail_argument_null("tern_dataset_name", "dataset");
    return d ? d->name : NULL;
}

void *tern_dataset_data(const tern_dataset *d)
{
    TERN_DATASET_GIVEN(d, "tern_dataset_data");
    return d ? d->data : NULL;
}

/* ---- items ------------------------------------------------------------------------------- */

/* Returns the status of the data set's code; a missing tensor, or an error without a message, is
 * recorded. */
static tern_status checked(const tern_dataset *d, tern_status status, uint64_t failures, int64_t i,
                           tern_tensor *const *item)
{
    for (int k = 0; status == TERN_OK && k < d->count; k++)
        if (!item[k]) {
            status = tern_failed_since(failures);
            if (status == TERN_OK)
                status = TERN_ERR_ARGUMENT;
        }
    if (status != TERN_OK && tern_failed_since(failures) == TERN_OK)
        tern_fail(status, "%s: item %" PRId64 " failed, or gave no tensor", d->name, i);
    return status;
}

tern_status tern_dataset_get(tern_dataset *d, int64_t i, tern_tensor **item)
{
    uint64_t failures = tern_failures();
    memset(item, 0, sizeof *item * (size_t)d->count);
    if (d->type.item)
        return checked(d, d->type.item(d, i, item), failures, i, item);
    TERN_TRY(tern_dataset_get_items(d, &i, 1, item));
    for (int k = 0; k < d->count; k++)
        item[k] = tern_select(item[k], 0, 0);
    return checked(d, TERN_OK, failures, i, item);
}

tern_status tern_dataset_get_items(tern_dataset *d, const int64_t *indices, int64_t n,
                                   tern_tensor **batch)
{
    uint64_t failures = tern_failures();
    memset(batch, 0, sizeof *batch * (size_t)d->count);
    return checked(d, d->type.items(d, indices, n, batch), failures, indices[0], batch);
}

tern_status tern_dataset_get_next(tern_dataset *d, tern_tensor **item, bool *end_)
{
    uint64_t failures = tern_failures();
    *end_ = false;
    memset(item, 0, sizeof *item * (size_t)d->count);
    tern_status status = d->type.next(d, item, end_);
    return status == TERN_OK && *end_ ? TERN_OK : checked(d, status, failures, -1, item);
}

tern_status tern_dataset_finish(tern_dataset *d, tern_tensor **item)
{
    if (!d->transform)
        return TERN_OK;
    TERN_TRY(tern_dataset_finish(d->inner, item));
    uint64_t failures = tern_failures();
    item[d->which] = tern_transform_run(d->transform, item[d->which]);
    return item[d->which] ? TERN_OK : tern_failed_since(failures);
}

tern_status tern_dataset_item(tern_dataset *d, int64_t i, tern_tensor **item)
{
    const char *function = "tern_dataset_item";
    TERN_DATASET_GIVEN(d, function);
    if (!d || !item)
        return tern_fail_argument_null(function, d ? "item" : "dataset");
    if (tern_dataset_iterates(d))
        return tern_fail(TERN_ERR_STATE, "%s: %s is iterable: its items have no numbers", function,
                         d->name);
    if (i < 0 || i >= d->length)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: index %" PRId64 " is out of range: %s has %" PRId64 " items",
                         function, i, d->name, d->length);
    tern_item_state state;
    tern_item_state_enter(&state);
    tern_status status = tern_dataset_get(d, i, item);
    tern_item_state_leave(&state);
    return status;
}
