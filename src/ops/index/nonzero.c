/* nonzero.c -- nonzero: the indices of elements that are not 0.
 *
 * Each chunk of x counts its nonzero elements, running sums of the counts give the offset of each
 * chunk's output, and each chunk writes its indices there: in order on every device. */
#include "base/strict.h"
#include "ops/index/nonzero.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

enum { LEAST_CHUNK = 256, MOST_CHUNKS = 4096 };

int64_t tern_running_starts(tern_tensor *counts, int64_t n, int fault_code, const char *function)
{
    static const tern_kernel_ref kernel = {"index_nonzero", "running_starts"};
    tern_place *place = counts->storage->place;
    tern_arg fault;
    int64_t total = -1;
    if (tern_fault_arg(place, &fault) != TERN_OK ||
        TERN_LAUNCH(place, &kernel, TERN_I64, tern_items(1), tern_arg_out(counts), fault,
                    tern_arg_i64(n), tern_arg_fault(fault_code)) != TERN_OK ||
        tern_hidden_read(tern_select(counts, 0, n), &total, sizeof total, function) != TERN_OK)
        return -1;
    return total;
}

/* A chunk has 256 elements or more, so that one lane sums at most 4096 counts. */
static tern_status places_into(tern_tensor **places, const tern_tensor *x)
{
    static const tern_kernel_ref count = {"index_nonzero", "nonzero_count"},
                                 write = {"index_nonzero", "nonzero_places"};
    tern_place *place = x->storage->place;
    int64_t len = (x->numel + MOST_CHUNKS - 1) / MOST_CHUNKS;
    len = len < LEAST_CHUNK ? LEAST_CHUNK : len;
    int64_t chunks = (x->numel + len - 1) / len;
    tern_tensor *counts = tern_empty(TERN_SHAPE(chunks + 1), TERN_I64, tern_place_text(place));
    if (!counts)
        return tern_last_status();
    TERN_TRY(TERN_LAUNCH(place, &count, x->dtype, tern_items_of(chunks, len), tern_arg_out(counts),
                         tern_arg_in(x), tern_arg_i64(x->numel), tern_arg_i64(chunks),
                         tern_arg_i64(len)));
    int64_t n = tern_running_starts(counts, chunks, TERN_FAULT_REPEATS, "tern_nonzero");
    if (n < 0 || !(*places = tern_empty(TERN_SHAPE(n), TERN_I64, tern_place_text(place))))
        return tern_last_status();
    if (n == 0)
        return TERN_OK;
    return TERN_LAUNCH(place, &write, x->dtype, tern_items_of(chunks, len), tern_arg_out(*places),
                       tern_arg_in(counts), tern_arg_in(x), tern_arg_i64(x->numel),
                       tern_arg_i64(chunks), tern_arg_i64(len));
}

tern_tensor *tern_nonzero_places(tern_tensor *x)
{
    tern_tensor *places = NULL;
    if (!(x = tern_contiguous(x)))
        return NULL;
    if (x->numel == 0)
        return tern_empty(TERN_SHAPE(0), TERN_I64, tern_device(x));
    return places_into(&places, x) == TERN_OK ? places : NULL;
}

/* Row i has the coordinates of the i-th index, by a launch for each dim: (index / inner) % size. */
tern_tensor *tern_nonzero(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_kernel_ref kernel = {"index_nonzero", "coordinate"};
    if (!x)
        tern_fail_argument_null(__func__, "x");
    tern_tensor *places = x ? tern_nonzero_places(x) : NULL;
    if (!places)
        return NULL;
    tern_tensor *out = tern_empty(TERN_SHAPE(places->numel, x->ndim), TERN_I64, tern_device(x));
    int64_t inner = 1;
    for (int d = x->ndim - 1; d >= 0 && out && out->numel; d--) {
        if (TERN_LAUNCH(x->storage->place, &kernel, TERN_I64, tern_items(places->numel),
                        tern_arg_out(out), tern_arg_in(places), tern_arg_i64(places->numel),
                        tern_arg_i64(x->ndim), tern_arg_i64(d), tern_arg_i64(x->shape[d]),
                        tern_arg_i64(inner)) != TERN_OK)
            return NULL;
        inner *= x->shape[d];
    }
    return out;
}

tern_tensor *tern_argwhere(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nonzero(x);
}
