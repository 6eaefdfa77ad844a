/* packed.c -- packs sequences of different lengths, and pads packed ones.
 *
 * Packed data are the time steps one after the other, each with the sequences that have not ended,
 * longest first: (sum of lengths, *). Both packing and padding are one index_select of rows, with
 * an index that the host computes from the lengths. */
#include "base/option.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include <stdlib.h>
#include <tern/nn.h>

/* ---- packing ------------------------------------------------------------------------------- */

typedef struct place {
    int64_t length, index;
} place;

/* Orders by length, longest first; equal lengths keep their order. */
static int longer(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->length != y->length)
        return x->length < y->length ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

static tern_status check_lengths(const char *function, const int64_t *lengths, int n,
                                 int64_t longest, bool sorted)
{
    for (int i = 0; i < n; i++) {
        if (lengths[i] <= 0)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: Length of all samples has to be greater than 0, but found an "
                             "element in 'lengths' that is <= 0 (%lld)",
                             function, (long long)lengths[i]);
        if (lengths[i] > longest)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: a length is %lld, the input has %lld steps",
                             function, (long long)lengths[i], (long long)longest);
        if (sorted && i > 0 && lengths[i] > lengths[i - 1])
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: `lengths` array must be sorted in decreasing order when "
                             "`enforce_sorted` is True (%lld after %lld). You can set "
                             "not_enforce_sorted",
                             function, (long long)lengths[i], (long long)lengths[i - 1]);
    }
    return TERN_OK;
}

/* Returns n numbers as an int64 tensor. */
static tern_tensor *index_tensor(const int64_t *values, int64_t n, const char *device)
{
    return tern_from_data(values, TERN_SHAPE(n), TERN_I64, device);
}

/* The packed layout, computed on the host. */
typedef struct plan {
    place *places;              /* n */
    int64_t *rows;              /* for each row of the result its row in the input */
    int64_t *sizes;             /* number of sequences in each step */
    int64_t *sorted, *unsorted; /* n */
    int64_t count, steps;
} plan;

static void plan_free(plan *p)
{
    tern_free(p->places);
    tern_free(p->rows);
    tern_free(p->sizes);
    tern_free(p->sorted);
    tern_free(p->unsorted);
}

/* Sorts by length; sorted and unsorted are the permutation and its inverse. Sequence i at step t is
 * row t n + i of the padded input. */
static tern_status plan_make(plan *p, const int64_t *lengths, int n)
{
    size_t all = 0;
    for (int i = 0; i < n; i++)
        all += (size_t)lengths[i];
    p->places = tern_alloc((size_t)n * sizeof *p->places);
    p->rows = tern_alloc(all * sizeof *p->rows);
    p->sorted = tern_alloc((size_t)n * sizeof *p->sorted);
    p->unsorted = tern_alloc((size_t)n * sizeof *p->unsorted);
    if (!p->places || !p->rows || !p->sorted || !p->unsorted)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < n; i++)
        p->places[i] = (place){lengths[i], i};
    qsort(p->places, (size_t)n, sizeof *p->places, longer);
    p->steps = p->places[0].length;
    p->sizes = tern_alloc((size_t)p->steps * sizeof *p->sizes);
    if (!p->sizes)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < n; i++) {
        p->sorted[i] = p->places[i].index;
        p->unsorted[p->places[i].index] = i;
    }
    for (int64_t t = 0; t < p->steps; t++)
        for (int i = 0; i < n && p->places[i].length > t; i++) {
            p->rows[p->count++] = t * n + p->places[i].index;
            p->sizes[t]++;
        }
    return TERN_OK;
}

/* Reshapes (time, batch, *) to (time batch, *). */
static tern_tensor *flatten_time(tern_tensor *x)
{
    return tern_flatten(x, 0, 1);
}

static tern_status pack(tern_tensor *input, const int64_t *lengths, int n, bool sorted,
                        tern_packed_sequence *out)
{
    plan p = {NULL};
    const char *device = tern_device(input);
    tern_status status = plan_make(&p, lengths, n);
    if (status == TERN_OK) {
        const uint64_t failures = tern_failures();
        out->data =
            tern_index_select(flatten_time(input), 0, index_tensor(p.rows, p.count, device));
        out->batch_sizes = index_tensor(p.sizes, p.steps, "cpu");
        out->sorted_indices = sorted ? NULL : index_tensor(p.sorted, n, device);
        out->unsorted_indices = sorted ? NULL : index_tensor(p.unsorted, n, device);
        status = tern_failed_since(failures);
    }
    plan_free(&p);
    return status;
}

tern_status tern_nn_pack_padded_sequence(tern_tensor *input, const int64_t *lengths, int n,
                                         const tern_pack_sequence_options *options,
                                         tern_packed_sequence *out)
{
    static const tern_pack_sequence_options none;
    const char *function = "tern_nn_pack_padded_sequence";
    const tern_pack_sequence_options *o = options ? options : &none;
    if (!input || !lengths || !out)
        return tern_fail_argument_null(function, !input ? "input" : !lengths ? "lengths" : "out");
    if (tern_dim(input) < 2)
        return tern_fail(TERN_ERR_SHAPE, "%s: input must have at least 2 dimensions, got %d",
                         function, tern_dim(input));
    if (o->batch_first)
        input = tern_transpose(input, 0, 1);
    int64_t batch = tern_size(input, 1);
    if (n != batch || n < 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Expected `len(lengths)` to be equal to batch_size, but got %d "
                         "(batch_size=%lld)",
                         function, n, (long long)batch);
    TERN_TRY(check_lengths(function, lengths, n, tern_size(input, 0), !o->not_enforce_sorted));
    *out = (tern_packed_sequence){NULL};
    return pack(input, lengths, n, !o->not_enforce_sorted, out);
}

/* ---- padding ------------------------------------------------------------------------------- */

/* Sets rows to the row of the data for each place of (steps, batch), or to `pad` after a sequence's
 * end, and lengths (batch) to those of the sequences in the data's order. */
static void padded_index(const int64_t *sizes, int64_t steps, int64_t batch, int64_t pad,
                         int64_t total, int64_t *rows, int64_t *lengths)
{
    int64_t at = 0;
    for (int64_t t = 0; t < total; t++) {
        int64_t size = t < steps ? sizes[t] : 0;
        for (int64_t i = 0; i < batch; i++) {
            rows[t * batch + i] = i < size ? at + i : pad;
            lengths[i] += i < size;
        }
        at += size;
    }
}

/* Fails unless sizes never increase from step to step and their sum is the number of rows. */
static tern_status check_sizes(const char *function, const int64_t *sizes, int64_t steps,
                               int64_t rows)
{
    int64_t sum = 0;
    for (int64_t t = 0; t < steps; t++) {
        if (sizes[t] < 1 || (t > 0 && sizes[t] > sizes[t - 1]))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: batch_sizes must fall and stay above 0 (%lld at step %lld)",
                             function, (long long)sizes[t], (long long)t);
        sum = tern_size_add(sum, sizes[t]);
    }
    if (sum != rows)
        return tern_fail(TERN_ERR_SHAPE, "%s: batch_sizes are %lld rows, the data has %lld",
                         function, (long long)sum, (long long)rows);
    return TERN_OK;
}

/* Pads by one index_select from the data with one row of padding appended. */
static tern_tensor *padded(tern_tensor *data, double value, const int64_t *rows, int64_t total,
                           int64_t batch)
{
    tern_shape shape = tern_shape_of(data);
    shape.dims[0] = 1;
    tern_tensor *pad = tern_new_full(data, shape, tern_scalar_real(value));
    tern_tensor *all = tern_cat((tern_tensor *[]){data, pad}, 2, 0);
    tern_tensor *index = index_tensor(rows, total * batch, tern_device(data));
    return tern_unflatten(tern_index_select(all, 0, index), 0, TERN_SHAPE(total, batch));
}

/* Pads, and restores the original order of the sequences. */
static tern_tensor *pad_packed(const tern_packed_sequence *s, const int64_t *sizes, int64_t steps,
                               int64_t total, const tern_pad_sequence_options *o, int64_t *lengths)
{
    int64_t batch = sizes[0];
    int64_t *rows = tern_alloc(tern_size_bytes(tern_size_mul(total, batch), sizeof *rows));
    if (!rows)
        return NULL;
    padded_index(sizes, steps, batch, tern_size(s->data, 0), total, rows, lengths);
    tern_tensor *x = padded(s->data, o->padding_value, rows, total, batch);
    tern_free(rows);
    if (s->unsorted_indices)
        x = tern_index_select(x, 1, s->unsorted_indices);
    return o->batch_first ? tern_transpose(x, 0, 1) : x;
}

/* Returns the lengths as a tensor, in the original order. */
static tern_tensor *lengths_of(const tern_packed_sequence *s, const int64_t *lengths, int64_t batch)
{
    tern_tensor *x = index_tensor(lengths, batch, "cpu");
    return s->unsorted_indices ? tern_index_select(x, 0, tern_to(s->unsorted_indices, "cpu")) : x;
}

tern_tensor *tern_nn_pad_packed_sequence(const tern_packed_sequence *sequence,
                                         const tern_pad_sequence_options *options,
                                         tern_tensor **lengths)
{
    const char *function = "tern_nn_pad_packed_sequence";
    const tern_pad_sequence_options read = tern_read_pad_sequence(options), *o = &read;
    if (!sequence || !sequence->data || !sequence->batch_sizes) {
        tern_fail_argument_null(function, "sequence");
        return NULL;
    }
    int64_t steps = tern_numel(sequence->batch_sizes);
    if (tern_dtype_of(sequence->batch_sizes) != TERN_I64 || steps < 1 ||
        tern_dim(sequence->data) < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: expected data of rows and int64 batch_sizes of one step or "
                              "more, not %lld of %s",
                              function, (long long)steps,
                              tern_dtype_name(tern_dtype_of(sequence->batch_sizes)));
    int64_t total = o->total_length == -1 ? steps : o->total_length;
    if (total < steps)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expected total_length to be at least the length of the longest "
                              "sequence in input, but got total_length=%lld and max sequence "
                              "length being %lld",
                              function, (long long)total, (long long)steps);
    int64_t *sizes = tern_alloc((size_t)(steps + 1) * sizeof *sizes);
    if (!sizes)
        return NULL;
    tern_tensor *x = NULL;
    size_t bytes = (size_t)steps * sizeof *sizes;
    if (tern_copy_to_host(sequence->batch_sizes, sizes, bytes) == TERN_OK &&
        check_sizes(function, sizes, steps, tern_size(sequence->data, 0)) == TERN_OK) {
        int64_t *each = tern_alloc((size_t)sizes[0] * sizeof *each);
        x = each ? pad_packed(sequence, sizes, steps, total, o, each) : NULL;
        if (x && lengths && !(*lengths = lengths_of(sequence, each, sizes[0])))
            x = NULL;
        tern_free(each);
    }
    tern_free(sizes);
    return x;
}

/* ---- lists of sequences ---------------------------------------------------------------------- */

static tern_status check_list(tern_tensor *const *sequences, int n, const char *function)
{
    if (!sequences || n < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: expected at least one sequence, got %d", function,
                         n);
    for (int i = 0; i < n; i++) {
        if (!sequences[i])
            return tern_fail_argument_null(function, "a sequence");
        if (tern_dim(sequences[i]) < 1)
            return tern_fail(TERN_ERR_SHAPE, "%s: a sequence has no dims", function);
    }
    return TERN_OK;
}

tern_tensor *tern_nn_pad_sequence(tern_tensor *const *sequences, int n,
                                  const tern_pad_sequence_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    const tern_pad_sequence_options read = tern_read_pad_sequence(options), *o = &read;
    if (check_list(sequences, n, function) != TERN_OK)
        return NULL;
    int64_t longest = o->total_length; /* total_length is -1 by default */
    for (int i = 0; i < n; i++)
        longest = tern_size(sequences[i], 0) > longest ? tern_size(sequences[i], 0) : longest;
    tern_tensor **long_ones = tern_alloc((size_t)n * sizeof *long_ones), *x = NULL;
    if (!long_ones)
        return NULL;
    bool fine = true;
    for (int i = 0; i < n && fine; i++) {
        tern_shape shape = tern_shape_of(sequences[i]);
        shape.dims[0] = longest - shape.dims[0];
        tern_tensor *pad = tern_new_full(sequences[i], shape, tern_scalar_real(o->padding_value));
        long_ones[i] = tern_cat((tern_tensor *[]){sequences[i], pad}, 2, 0);
        fine = long_ones[i] != NULL;
    }
    if (fine)
        x = tern_stack(long_ones, n, o->batch_first ? 0 : 1);
    tern_free(long_ones);
    return x;
}

tern_status tern_nn_pack_sequence(tern_tensor *const *sequences, int n,
                                  const tern_pack_sequence_options *options,
                                  tern_packed_sequence *out)
{
    TERN_NAMED_IN_ERRORS;
    tern_pack_sequence_options o = options ? *options : (tern_pack_sequence_options){0};
    TERN_TRY(check_list(sequences, n, __func__));
    tern_tensor *x = tern_nn_pad_sequence(sequences, n, NULL);
    int64_t *lengths = tern_alloc((size_t)n * sizeof *lengths);
    tern_status status = x && lengths ? TERN_OK : tern_last_status();
    for (int i = 0; status == TERN_OK && i < n; i++)
        lengths[i] = tern_size(sequences[i], 0);
    o.batch_first = false;
    if (status == TERN_OK)
        status = tern_nn_pack_padded_sequence(x, lengths, n, &o, out);
    tern_free(lengths);
    return status;
}
