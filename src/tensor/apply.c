/* apply.c -- the dispatcher: every operation is checked, promoted, run and recorded here. */
#include "base/profile.h"
#include "base/strict.h"
#include "tensor/from_ops.h"
#include "tensor/fuse/fuse.h"
#include "tensor/memory_format.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <stdio.h>
#include <string.h>

static tern_status missing(const tern_call *call, const tern_tensor *x)
{
    char function[TERN_FUNCTION_BYTES];
    tern_call_name(call, function);
    return tern_storage_missing(x, function);
}

static tern_status fail_places(const tern_call *call, const tern_place *other)
{
    char function[TERN_FUNCTION_BYTES];
    tern_call_name(call, function);
    return tern_fail(TERN_ERR_DEVICE,
                     "%s: Expected all tensors to be on the same device, but found at least two "
                     "devices, %s and %s!",
                     function, tern_place_text(call->place), tern_place_text(other));
}

/* Returns whether x is a scalar tensor on the cpu, which may be combined with tensors of another
 * device. */
static bool is_number(const tern_tensor *x)
{
    return x->ndim == 0 && strcmp(tern_place_kind(x->storage->place), "cpu") == 0;
}

/* Copies scalars on the cpu to the device of the other inputs. cast has an element for each
 * input. */
static tern_status bring_numbers(tern_call *call, tern_tensor **cast)
{
    if (tern_thread.strict) {
        char function[TERN_FUNCTION_BYTES];
        tern_call_name(call, function);
        TERN_TRY(tern_strict_refuse(function, "copies a number of the cpu to the device"));
    }
    tern_place *place = NULL;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] && !is_number(call->in[i])) {
            call->place = place ? place : call->place;
            if (place && call->in[i]->storage->place != place)
                return fail_places(call, call->in[i]->storage->place);
            place = call->in[i]->storage->place;
        }
    call->place = place;
    if (call->in_place && call->in[0]->storage->place != place)
        return fail_places(call, call->in[0]->storage->place);
    for (int i = 0; i < call->n_in; i++) {
        tern_tensor *x = call->in[i];
        bool here = !x || x->storage->place == place;
        if (!(cast[i] = here ? x : tern_from_ops->to(x, tern_place_text(place))) && x)
            return tern_last_status();
    }
    call->in = cast;
    return TERN_OK;
}

static tern_status check_inputs(tern_call *call, tern_tensor **cast)
{
    bool mixed = false;
    call->place = NULL;
    for (int i = 0; i < call->n_in; i++) {
        tern_tensor *x = call->in[i];
        if (!x && i < 32 && (call->op->optional >> i & 1))
            continue;
        if (!x || tern_handle_is_gone(&x->handle)) {
            char name[24];
            snprintf(name, sizeof name, "input %d", i);
            char function[TERN_FUNCTION_BYTES];
            tern_call_name(call, function);
            tern_given(x, function, name);
            return TERN_ERR_STATE;
        }
        tern_place *place = x->storage->place;
        if (x->storage->emptied)
            return missing(call, x);
        if (call->place && place != call->place) {
            if (!call->op->takes_numbers)
                return fail_places(call, place);
            mixed = true;
        }
        call->place = call->place ? call->place : place;
    }
    return mixed ? bring_numbers(call, cast) : TERN_OK;
}

/* Returns the first input whose dtype the operation does not take; NULL if it takes all. */
static const tern_tensor *refused(const tern_call *call)
{
    const tern_op *op = call->op;
    for (int i = 0; op->stored == TERN_STORED_REFUSED && !op->view && i < call->n_in; i++)
        if (call->in[i] && tern_dtype_is_stored(call->in[i]->dtype))
            return call->in[i];
    if (op->takes == TERN_TAKES_ALL || tern_dtype_in(call->in[0]->dtype, (tern_dtype_set)op->takes))
        return NULL;
    return call->in[0];
}

static tern_status check_type(const tern_call *call)
{
    const tern_tensor *x = refused(call);
    if (!x)
        return TERN_OK;
    tern_dtype dtype = x->dtype;
    char function[TERN_FUNCTION_BYTES];
    tern_call_name(call, function);
    if (dtype == TERN_BOOL && call->op->advice)
        return tern_fail(TERN_ERR_DTYPE, "%s: %s", function, call->op->advice);
    return tern_fail_dtype(function, dtype);
}

/* Updates the history of views whose base was written in place. That happens before this call's
 * node is created, because the backward pass goes from newer nodes to older ones. */
static tern_status refresh_inputs(const tern_call *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] && call->in[i]->history)
            TERN_TRY(tern_refresh_view(call->in[i]));
    return TERN_OK;
}

static bool all_of(const tern_call *call, tern_dtype dtype)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] && call->in[i]->dtype != dtype)
            return false;
    return true;
}

/* Converts the inputs if their common type is a storage type, in which kernels do not compute, to a
 * type that holds its values. */
static tern_status read_stored(tern_call *call, tern_dtype common, tern_tensor **cast)
{
    tern_dtype as = common == TERN_U64 && call->n_in == 1 ? TERN_F32 : tern_dtype_rows[common].math;
    for (int i = 0; i < call->n_in; i++) {
        bool ordered = common == TERN_U64 && as == TERN_I64;
        cast[i] = tern_from_ops->to_dtype(call->in[i], ordered ? common : as);
        if (ordered && cast[i])
            cast[i] = tern_from_ops->ordered(cast[i]);
        if (!cast[i])
            return tern_last_status();
    }
    call->in = cast;
    return TERN_OK;
}

/* Converts the inputs to their common type. cast has an element for each input. */
static tern_status promote_to_common(tern_call *call, tern_tensor **cast)
{
    const tern_op *op = call->op;
    tern_dtype common = tern_common_type(call->in, call->n_in);
    if (common == TERN_DTYPE_DEFAULT)
        return tern_last_status();
    if (op->promote)
        common = op->promote(call, common);
    if (op->promotion == TERN_PROMOTE_FLOAT && !tern_dtype_is_floating_point(common))
        common = tern_default_real();
    if (op->promotion == TERN_PROMOTE_BOOL)
        common = TERN_BOOL;
    if (tern_dtype_is_stored(common) && op->stored == TERN_STORED_READ)
        return read_stored(call, common, cast);
    if (all_of(call, common) || tern_fuse_mixes_dtypes(call))
        return TERN_OK;
    for (int i = 0; i < call->n_in; i++) {
        tern_tensor *x = call->in[i]; /* in may be cast itself */
        cast[i] = x ? tern_from_ops->to_dtype(x, common) : NULL;
        if (x && !cast[i])
            return tern_last_status();
    }
    call->in = cast;
    return TERN_OK;
}

static tern_status promote(tern_call *call, tern_tensor **cast)
{
    if (call->op->promotion == TERN_PROMOTE_NONE)
        return TERN_OK;
    if (call->n_in > 0 && call->in[0] && all_of(call, call->in[0]->dtype))
        return promote_to_common(call, cast);
    char function[TERN_FUNCTION_BYTES];
    tern_call_name(call, function);
    TERN_NAMED_AS(function);
    return promote_to_common(call, cast);
}

static void release_outputs(tern_call *call)
{
    for (int i = 0; i < call->n_out; i++) {
        tern_release(call->out[i]);
        call->out[i] = NULL;
    }
}

/* Returns the caller's tensor to which result i is written, if it fits; NULL if result i is a new
 * tensor. */
static tern_tensor *given_for(const tern_call *call, int i)
{
    tern_tensor *x = call->into ? call->into[i] : NULL;
    if (!x || x->dtype != call->result[i].dtype || x->storage->place != call->place ||
        call->channels_last || !(call->padded >> i & 1 ? tern_lies_padded(x) : x->contiguous))
        return NULL;
    tern_shape shape = tern_shape_of(x);
    return tern_shape_equal(&shape, &call->result[i].shape) ? tern_keep(x) : NULL;
}

static tern_status make_outputs(tern_call *call)
{
    char function[TERN_FUNCTION_BYTES];
    if (!call->op->view)
        tern_call_name(call, function);
    for (int i = 0; i < call->n_out; i++) {
        const tern_result *r = &call->result[i];
        if ((call->out[i] = given_for(call, i)))
            continue;
        call->out[i] =
            call->op->view ? tern_tensor_alias(call->in[0], &r->shape, r->stride, r->offset)
            : call->padded >> i & 1 ? tern_tensor_padded(&r->shape, r->dtype, call->place, function)
                                    : tern_tensor_new(&r->shape, r->dtype, call->place, function);
        if (!call->out[i]) {
            call->n_out = i; /* the outputs that were created */
            release_outputs(call);
            return tern_last_status();
        }
        if (call->channels_last)
            tern_make_channels_last(call->out[i]);
        /* The op of a user's function may be freed before the result. */
        call->out[i]->handle.about = call->op->release ? "a function" : call->op->name;
    }
    return TERN_OK;
}

static tern_status record(tern_call *call, size_t attribute_bytes)
{
    if (call->op->view)
        for (int i = 0; i < call->n_out; i++)
            TERN_TRY(
                tern_note_view(call->out[i], call->in[0], call->op->view == TERN_VIEW_SEVERAL));
    if (!tern_must_record(call->op, call->in, call->n_in))
        return TERN_OK;
    return tern_record(call, call->in, attribute_bytes);
}

/* Operations that forward calls are not autocast again, because the dtypes of this operation are
 * settled, and are not checked for NaN. */
static tern_status forward(tern_call *call, tern_thread_mode *mode)
{
    if (!call->op->forward)
        return TERN_OK;
    bool had_nan = tern_debugging && tern_anomaly_came_in(call);
    uint64_t failures = tern_thread.strict ? tern_failures() : UINT64_MAX;
    tern_thread_mode outer = *mode;
    mode->op = call->op->name;
    mode->cast = NULL;
    mode->anomaly.results = false;
    mode->trace = NULL;
    tern_status status = tern_fuse_forward(call) ? TERN_OK : call->op->forward(call);
    *mode = outer;
    if (status == TERN_OK &&
        failures != UINT64_MAX) /* in a strict block a slow fallback is an error */
        status = tern_failed_since(failures);
    if (status != TERN_OK || !(mode->anomaly.results || tern_debugging))
        return status;
    return tern_anomaly_check_results(call, had_nan);
}

static tern_status run(tern_call *call, tern_tensor **cast, size_t attribute_bytes)
{
    tern_thread_mode *mode = &tern_thread.mode;
    TERN_TRY(check_inputs(call, cast));
    TERN_TRY(refresh_inputs(call));
    if (mode->cast && call->n_in > 0) {
        memmove(cast, call->in, sizeof *cast * (size_t)call->n_in); /* in may be cast itself */
        TERN_TRY(mode->cast(call->op, cast, call->n_in));
        call->in = cast;
    }
    TERN_TRY(promote(call, cast));
    TERN_TRY(check_type(call));
    TERN_TRY(call->op->infer(call));
    TERN_TRY(make_outputs(call));
    bool first = call->op->writes_inputs;
    tern_status status = first ? tern_scope_reserve(call->n_out) : TERN_OK;
    if (status == TERN_OK && first)
        status = record(call, attribute_bytes);
    if (status == TERN_OK)
        status = forward(call, mode);
    if (status == TERN_OK && !first)
        status = record(call, attribute_bytes);
    if (status == TERN_OK && mode->trace)
        status = tern_trace_note(mode->trace, call, attribute_bytes, false);
    if (status != TERN_OK)
        release_outputs(call);
    return status;
}

static void end_range(int64_t range, const tern_call *call, tern_status status)
{
    if (__builtin_expect(range != 0, 0) && status == TERN_OK)
        tern_from_profiler->call(range, call);
    tern_range_end(range);
}

tern_status tern_apply_into(const tern_op *op, tern_tensor *const *in, int n,
                            const void *attributes, size_t attribute_bytes, tern_tensor **out,
                            int n_out, tern_tensor *const *into)
{
    tern_tensor *cast[n > 0 ? n : 1];
    tern_call call;
    call.op = op;
    call.in = in;
    call.n_in = n;
    call.attributes = attributes;
    call.n_out = 0;
    call.in_place = false;
    call.channels_last = false;
    call.padded = 0;
    call.into = into;
    int64_t range = tern_range_begin(TERN_RANGE_OPERATION, op->name, 0);
    tern_status status = run(&call, cast, attribute_bytes);
    end_range(range, &call, status);
    if (status != TERN_OK)
        return status;
    tern_place_count_operation(call.place);
    while (call.n_out > n_out) /* the caller did not ask for these, but backward may keep them */
        tern_release(call.out[--call.n_out]);
    for (int i = 0; i < call.n_out; i++) {
        out[i] = tern_scoped(call.out[i]);
        if (!out[i]) { /* the scope is full: out[i] is freed, and the scope owns the earlier ones */
            while (++i < call.n_out)
                tern_release(call.out[i]);
            return tern_last_status();
        }
    }
    return TERN_OK;
}

tern_status tern_apply_all(const tern_op *op, tern_tensor *const *in, int n, const void *attributes,
                           size_t attribute_bytes, tern_tensor **out, int n_out)
{
    return tern_apply_into(op, in, n, attributes, attribute_bytes, out, n_out, NULL);
}

tern_tensor *tern_apply(const tern_op *op, tern_tensor *const *in, int n, const void *attributes,
                        size_t attribute_bytes)
{
    tern_tensor *out = NULL;
    if (tern_apply_all(op, in, n, attributes, attribute_bytes, &out, 1) != TERN_OK)
        return NULL;
    return out;
}

/* ---- in place ---------------------------------------------------------------------------- */

static tern_status fits_target(const tern_call *call, const tern_tensor *target)
{
    const tern_result *r = &call->result[0];
    tern_shape shape = tern_shape_of(target);
    bool fits = tern_shape_equal(&r->shape, &shape);
    bool loses =
        tern_dtype_is_floating_point(r->dtype) && !tern_dtype_is_floating_point(target->dtype);
    loses = loses || (target->dtype == TERN_BOOL && r->dtype != TERN_BOOL);
    if (fits && !loses)
        return TERN_OK;
    char function[TERN_FUNCTION_BYTES];
    tern_call_name(call, function);
    return fits ? tern_fail(TERN_ERR_DTYPE,
                            "%s: result type %s can't be cast to the desired output type %s",
                            function, tern_dtype_name(r->dtype), tern_dtype_name(target->dtype))
                : tern_fail(TERN_ERR_SHAPE,
                            "%s: output with shape %s doesn't match the broadcast shape %s",
                            function, TERN_SHAPE_TEXT(&shape), TERN_SHAPE_TEXT(&r->shape));
}

/* Runs the call and writes its result to target, through a temporary tensor if the dtypes
 * differ. */
static tern_status write_target(tern_call *call, tern_tensor *target)
{
    if (call->result[0].dtype == target->dtype) {
        call->out[0] = target;
        return forward(call, &tern_thread.mode);
    }
    TERN_TRY(make_outputs(call));
    tern_status status = forward(call, &tern_thread.mode);
    if (status == TERN_OK)
        status = tern_from_ops->copy(target, call->out[0]);
    tern_release(call->out[0]);
    call->out[0] = target;
    return status;
}

static tern_status run_in_place(tern_call *call, tern_tensor **cast, size_t attribute_bytes)
{
    tern_tensor *target = call->in[0];
    TERN_TRY(check_inputs(call, cast));
    TERN_TRY(refresh_inputs(call));
    TERN_TRY(promote(call, cast));
    TERN_TRY(check_type(call));
    TERN_TRY(call->op->infer(call));
    TERN_TRY(fits_target(call, target));
    TERN_TRY(tern_check_in_place(call, target, call->in, call->n_in));
    TERN_TRY(tern_separate_inputs(call, target, cast));
    tern_write write;
    call->out[0] = target;
    TERN_TRY(tern_prepare_write(&write, call, call->in, attribute_bytes));
    tern_status status = write_target(call, target);
    if (status == TERN_OK)
        tern_bump_version(target);
    tern_status finished = tern_finish_write(&write, target, status == TERN_OK);
    if (status == TERN_OK && finished == TERN_OK && tern_thread.mode.trace)
        finished = tern_trace_note(tern_thread.mode.trace, call, attribute_bytes, true);
    return status == TERN_OK ? finished : status;
}

tern_tensor *tern_apply_in_place(const tern_op *op, tern_tensor *const *in, int n,
                                 const void *attributes, size_t attribute_bytes)
{
    tern_tensor *cast[n > 0 ? n : 1];
    tern_call call;
    call.op = op;
    call.in = in;
    call.n_in = n;
    call.attributes = attributes;
    call.n_out = 1;
    call.out[0] = NULL;
    call.in_place = true;
    call.channels_last = false;
    call.padded = 0;
    call.into = NULL;
    int64_t range = tern_range_begin(TERN_RANGE_OPERATION, op->name, 0);
    tern_status status = run_in_place(&call, cast, attribute_bytes);
    end_range(range, &call, status);
    if (status != TERN_OK)
        return NULL;
    tern_place_count_operation(call.place);
    return in[0];
}

/* ---- autocast before the dispatcher ---------------------------------------------------------- */

tern_composed_outer tern_compose_list(const tern_op *op, const char *function,
                                      tern_tensor **tensors, int n)
{
    const tern_composed_outer outer = {tern_thread.mode.cast, tern_name_enter(function)};
    if (outer.hook && outer.hook(op, tensors, n) != TERN_OK)
        memset(tensors, 0, sizeof *tensors * (size_t)n);
    tern_thread.mode.cast = NULL;
    return outer;
}

tern_composed_outer tern_compose(const tern_op *op, const char *function, tern_tensor **const *in,
                                 size_t n)
{
    const tern_composed_outer outer = {tern_thread.mode.cast, tern_name_enter(function)};
    if (!outer.hook)
        return outer;
    tern_tensor *cast[n];
    for (size_t i = 0; i < n; i++)
        cast[i] = *in[i];
    tern_compose_list(op, function, cast, (int)n);
    for (size_t i = 0; i < n; i++)
        *in[i] = cast[i];
    return outer;
}

void tern_composed(const tern_composed_outer *outer)
{
    tern_thread.mode.cast = outer->hook;
    tern_thread.called = outer->called;
}
