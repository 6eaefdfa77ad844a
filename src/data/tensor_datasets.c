/* tensor_datasets.c -- data sets made of tensors or of other data sets. */
#include "data/data.h"
#include <string.h>

/* ---- tensors ----------------------------------------------------------------------------- */

typedef struct tensors {
    int n;
    tern_tensor *x[TERN_MAX_ITEM];
} tensors;

static void free_tensors(void *data)
{
    tensors *t = data;
    for (int i = 0; i < t->n; i++)
        tern_release(t->x[i]);
    tern_free(t);
}

static tern_status tensors_item(tern_dataset *self, int64_t i, tern_tensor **item)
{
    const tensors *t = self->data;
    for (int k = 0; k < t->n; k++)
        item[k] = tern_select(t->x[k], 0, i);
    return TERN_OK;
}

static tern_tensor *host_rows(tern_tensor *x, const int64_t *indices, int64_t n)
{
    tern_shape shape = tern_shape_of(x);
    size_t bytes = tern_dtype_size(tern_dtype_of(x));
    for (int i = 1; i < shape.ndim; i++)
        bytes *= (size_t)shape.dims[i];
    shape.dims[0] = n;
    tern_tensor *rows = tern_empty(shape, tern_dtype_of(x), "cpu");
    char *to = rows && bytes ? tern_data(rows) : NULL;
    const char *from = to ? tern_data(x) : NULL;
    for (int64_t i = 0; from && i < n; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)indices[i] * bytes, bytes);
    return rows;
}

static tern_status tensors_items(tern_dataset *self, const int64_t *indices, int64_t n,
                                 tern_tensor **batch)
{
    const tensors *t = self->data;
    for (int k = 0; k < t->n; k++) {
        tern_tensor *x = t->x[k];
        if (tern_is_contiguous(x) && strcmp(tern_device(x), "cpu") == 0)
            batch[k] = host_rows(x, indices, n);
        else
            batch[k] = tern_index_select(
                x, 0, tern_from_data(indices, TERN_SHAPE(n), TERN_I64, tern_device(x)));
    }
    return TERN_OK;
}

static const tern_dataset_type tensors_type = {.name = "TensorDataset",
                                               .item = tensors_item,
                                               .items = tensors_items,
                                               .free_data = free_tensors};

static long long rows_of(const tern_tensor *x)
{
    return tern_dim(x) < 1 ? 0 : tern_size(x, 0);
}

tern_dataset *tern_data_tensor_dataset_of(tern_tensor *const *x, int n)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!x || n < 1 || n > TERN_MAX_ITEM)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: 1 to %d tensors, not %d", function,
                              TERN_MAX_ITEM, x ? n : 0);
    for (int i = 0; i < n; i++) {
        if (!x[i])
            return tern_fail_argument_null(function, "a tensor"), NULL;
        if (tern_dim(x[i]) < 1 || rows_of(x[i]) != rows_of(x[0]))
            return tern_fail_null(
                TERN_ERR_SHAPE, "%s: Size mismatch between tensors: %lld rows at 0 and %lld at %d",
                function, rows_of(x[0]), rows_of(x[i]), i);
    }
    tensors *t = tern_alloc(sizeof *t);
    if (!t)
        return NULL;
    t->n = n;
    for (int i = 0; i < n; i++)
        t->x[i] = tern_keep(x[i]);
    tern_dataset *d = tern_data_dataset_of(&tensors_type, tern_size(x[0], 0), n, t);
    if (!d)
        free_tensors(t);
    return d;
}

/* ---- subsets, splits, concatenation, stacks -------------------------------------------------- */

typedef struct others {
    int n;
    tern_dataset **of;
    int64_t *indices; /* the items of a subset, or the end of each data set of a concatenation */
} others;

static void free_others(void *data)
{
    others *o = data;
    for (int i = 0; o && i < o->n; i++)
        tern_dataset_free(o->of[i]);
    if (o) {
        tern_free(o->of);
        tern_free(o->indices);
    }
    tern_free(o);
}

static others *others_of(tern_dataset *const *of, int n, int64_t indices, const char *function)
{
    others *o = tern_alloc(sizeof *o);
    if (!o)
        return NULL;
    o->of = tern_alloc(sizeof *o->of * (size_t)n);
    o->indices = tern_alloc(tern_size_bytes(indices, sizeof *o->indices));
    bool whole = o->of && o->indices;
    for (int i = 0; whole && i < n; i++) {
        whole = (o->of[i] = tern_dataset_keep(of[i], function)) != NULL;
        o->n += whole;
        if (whole && tern_dataset_iterates(of[i])) {
            tern_fail(TERN_ERR_STATE, "%s: %s is iterable: its items have no numbers", function,
                      of[i]->name);
            whole = false;
        }
    }
    if (whole)
        return o;
    free_others(o);
    return NULL;
}

static tern_dataset *made_of(const tern_dataset_type *type, int64_t length, int count, others *o)
{
    tern_dataset *d = o ? tern_data_dataset_of(type, length, count, o) : NULL;
    if (!d)
        free_others(o);
    return d;
}

static tern_status subset_item(tern_dataset *self, int64_t i, tern_tensor **item)
{
    const others *o = self->data;
    return tern_dataset_get(o->of[0], o->indices[i], item);
}

static tern_status subset_items(tern_dataset *self, const int64_t *indices, int64_t n,
                                tern_tensor **batch)
{
    const others *o = self->data;
    int64_t *inner = tern_alloc(tern_size_bytes(n, sizeof *inner));
    if (!inner)
        return TERN_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        inner[i] = o->indices[indices[i]];
    tern_status status = tern_dataset_get_items(o->of[0], inner, n, batch);
    tern_free(inner);
    return status;
}

static tern_dataset *subset(tern_dataset *d, const int64_t *indices, int64_t n,
                            const char *function)
{
    others *o = others_of(&d, 1, n, function);
    if (!o)
        return NULL;
    for (int64_t i = 0; i < n; i++) {
        if (indices[i] < 0 || indices[i] >= d->length) {
            free_others(o);
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "%s: index %lld is out of range: %s has %lld items", function,
                                  (long long)indices[i], d->name, (long long)d->length);
        }
        o->indices[i] = indices[i];
    }
    const tern_dataset_type type = {.name = d->name,
                                    .item = subset_item,
                                    .items = d->type.items ? subset_items : NULL,
                                    .free_data = free_others};
    return made_of(&type, n, d->count, o);
}

tern_dataset *tern_data_subset(tern_dataset *d, const int64_t *indices, int64_t n)
{
    const char *function = "tern_data_subset";
    if (n < 0 || (n && !indices))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %lld indices at %p", function, (long long)n,
                              (const void *)indices);
    return subset(d, indices, n, function);
}

/* Computes the sizes of the parts by PyTorch's rule. */
static tern_status part_sizes(const tern_dataset *d, const double *lengths, int n, int64_t *sizes)
{
    const char *function = "tern_data_random_split";
    double sum = 0;
    int64_t all = 0;
    for (int i = 0; i < n; i++) {
        if (!(lengths[i] >= 0))
            return tern_fail(TERN_ERR_ARGUMENT, "%s: length %d is %g", function, i, lengths[i]);
        sum += lengths[i];
    }
    bool shares = sum > 1 - 1e-9 && sum < 1 + 1e-9;
    for (int i = 0; i < n; i++) {
        double size = shares ? lengths[i] * (double)d->length : lengths[i];
        if (size > 0x1p62 || (!shares && size != (double)(int64_t)size))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: lengths are whole numbers, or shares that add up to 1: length %d "
                             "is %g, and the sum %g",
                             function, i, lengths[i], sum);
        all = tern_size_add(all, sizes[i] = (int64_t)size);
    }
    for (int i = 0; shares && all < d->length; i = (i + 1) % n, all++)
        sizes[i]++;
    if (all != d->length)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: Sum of input lengths does not equal the length of the input dataset! "
                         "(%lld of %lld)",
                         function, (long long)all, (long long)d->length);
    return TERN_OK;
}

static tern_status split(tern_dataset *d, const int64_t *sizes, int n, uint64_t seed,
                         tern_dataset **parts)
{
    uint64_t failures = tern_failures();
    int64_t *order = tern_alloc(tern_size_bytes(d->length, sizeof *order)), at = 0;
    if (!order)
        return TERN_ERR_MEMORY;
    for (int64_t i = 0; i < d->length; i++)
        order[i] = i;
    tern_data_shuffle(order, d->length, tern_data_seed(seed, 0, 0));
    bool whole = true;
    for (int i = 0; i < n && whole; at += sizes[i++])
        whole = (parts[i] = subset(d, order + at, sizes[i], "tern_data_random_split")) != NULL;
    for (int i = 0; i < n && !whole; i++) {
        tern_dataset_free(parts[i]);
        parts[i] = NULL;
    }
    tern_free(order);
    return whole ? TERN_OK : tern_failed_since(failures);
}

tern_status tern_data_random_split(tern_dataset *d, const double *lengths, int n, uint64_t seed,
                                   tern_dataset **parts)
{
    const char *function = "tern_data_random_split";
    if (!lengths || !parts || n < 1)
        return tern_fail_argument_null(function, lengths ? "parts" : "lengths");
    memset(parts, 0, sizeof *parts * (size_t)n);
    tern_dataset *kept = tern_dataset_keep(d, function);
    if (!kept)
        return TERN_ERR_ARGUMENT;
    int64_t *sizes = tern_alloc(sizeof *sizes * (size_t)n);
    tern_status status = sizes ? TERN_OK : TERN_ERR_MEMORY;
    if (status == TERN_OK && tern_dataset_iterates(d))
        status = tern_fail(TERN_ERR_STATE, "%s: %s is iterable: its items have no numbers",
                           function, d->name);
    if (status == TERN_OK)
        status = part_sizes(d, lengths, n, sizes);
    if (status == TERN_OK)
        status = split(d, sizes, n, seed, parts);
    tern_free(sizes);
    tern_dataset_free(kept);
    return status;
}

static tern_status concat_item(tern_dataset *self, int64_t i, tern_tensor **item)
{
    const others *o = self->data;
    int k = 0;
    while (i >= o->indices[k])
        k++;
    return tern_dataset_get(o->of[k], i - (k ? o->indices[k - 1] : 0), item);
}

tern_dataset *tern_data_concat_dataset_of(tern_dataset *const *of, int n)
{
    const char *function = "tern_data_concat_dataset";
    static const tern_dataset_type type = {
        .name = "ConcatDataset", .item = concat_item, .free_data = free_others};
    if (!of || n < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: datasets should not be an empty iterable",
                              function);
    others *o = others_of(of, n, n, function);
    int64_t length = 0;
    for (int i = 0; o && i < n; i++) {
        if (of[i]->count != of[0]->count) {
            free_others(o);
            return tern_fail_null(TERN_ERR_ARGUMENT, "%s: items of %d and of %d tensors", function,
                                  of[0]->count, of[i]->count);
        }
        o->indices[i] = length = tern_size_add(length, of[i]->length);
    }
    return made_of(&type, length, o ? of[0]->count : 1, o);
}

static tern_status stack_item(tern_dataset *self, int64_t i, tern_tensor **item)
{
    const others *o = self->data;
    for (int k = 0; k < o->n; item += o->of[k++]->count)
        TERN_TRY(tern_dataset_get(o->of[k], i, item));
    return TERN_OK;
}

tern_dataset *tern_data_stack_dataset_of(tern_dataset *const *of, int n)
{
    const char *function = "tern_data_stack_dataset";
    static const tern_dataset_type type = {
        .name = "StackDataset", .item = stack_item, .free_data = free_others};
    if (!of || n < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: At least one dataset should be passed",
                              function);
    others *o = others_of(of, n, 0, function);
    int count = 0;
    for (int i = 0; o && i < n; i++) {
        if (of[i]->length != of[0]->length) {
            free_others(o);
            return tern_fail_null(
                TERN_ERR_ARGUMENT,
                "%s: Size mismatch between datasets: %lld items at 0 and %lld at %d", function,
                (long long)of[0]->length, (long long)of[i]->length, i);
        }
        count += of[i]->count;
    }
    return made_of(&type, o ? of[0]->length : 0, count, o);
}

/* ---- transformed ------------------------------------------------------------------------- */

static tern_status transformed_item(tern_dataset *self, int64_t i, tern_tensor **item)
{
    uint64_t failures = tern_failures();
    TERN_TRY(tern_dataset_get(self->inner, i, item));
    item[self->which] = tern_transform_run(self->transform, item[self->which]);
    return item[self->which] ? TERN_OK : tern_failed_since(failures);
}

static tern_status transformed_rewind(tern_dataset *self, int64_t epoch)
{
    tern_dataset *inner = self->inner;
    return inner->type.rewind ? inner->type.rewind(inner, epoch) : TERN_OK;
}

static tern_status transformed_next(tern_dataset *self, tern_tensor **item, bool *end)
{
    return tern_dataset_get_next(self->inner, item, end);
}

tern_dataset *tern_data_transformed(tern_dataset *d, int which, tern_transform *transform)
{
    const char *function = "tern_data_transformed";
    static const tern_dataset_type items = {.name = "transformed", .item = transformed_item},
                                   iterable = {.name = "transformed",
                                               .rewind = transformed_rewind,
                                               .next = transformed_next};
    TERN_TRANSFORM_GIVEN(transform, function);
    tern_dataset *inner = transform ? tern_dataset_keep(d, function) : NULL, *made = NULL;
    if (!transform)
        tern_fail_argument_null(function, "transform");
    else if (inner && (which < 0 || which >= d->count))
        tern_fail(TERN_ERR_ARGUMENT, "%s: an item of %s has %d tensors, none with number %d",
                  function, d->name, d->count, which);
    else if (inner) {
        tern_dataset_type type = tern_dataset_iterates(d) ? iterable : items;
        type.name = d->name;
        made = tern_data_dataset_of(&type, d->length, d->count, d->data);
    }
    if (made) {
        made->inner = inner;
        made->transform = transform;
        made->which = which;
        return made;
    }
    tern_dataset_free(inner);
    tern_transform_free(transform);
    return NULL;
}
