/* matrix_kernel.c -- compiles, tries and keeps kernels on matrix units. */
#include "device/matrix_kernel.h"
#include "base/dtype.h"
#include "base/thread.h"
#include "base/warning.h"
#include <stdio.h>
#include <string.h>

static tern_matrix_kernel *look_up(const tern_matrix_kernels *kernels,
                                   const tern_matrix_variant *of)
{
    tern_matrix_kernel *k = kernels->first;
    while (k && memcmp(&k->of, of, sizeof *of) != 0)
        k = k->next;
    return k;
}

static void describe(const tern_matrix_variant *of, tern_matrix_source *source)
{
    const tern_matrix_family *family = of->family;
    const char *type = tern_dtype_rows[of->dtype].suffix;
    char *at = source->defines;
    size_t left = sizeof source->defines;
    int n = snprintf(at, left,
                     "#define TERN_WG %d\n#define TERN_IDX32 %d\n#define TERN_T %s\n"
                     "#define MATRIX_WAY %d\n",
                     of->group, of->narrow, type, of->way);
    for (int i = 0; i < TERN_MATRIX_NUMBERS && family->macros[i]; i++) {
        at += n, left -= (size_t)n;
        n = snprintf(at, left, "#define %s %d\n", family->macros[i], of->numbers[i]);
    }
    snprintf(source->name, sizeof source->name, "%s_%s", family->kernel, type);
    snprintf(source->title, sizeof source->title, "kernel %s of %s (%s)", source->name,
             family->file, tern_matrix_name(of->way));
}

tern_status tern_matrix_find(tern_place *place, tern_matrix_kernels *kernels,
                             const tern_matrix_variant *of, tern_matrix_kernel **found)
{
    tern_matrix_source source;
    tern_matrix_kernel *k = look_up(kernels, of);
    *found = k;
    if (k)
        return TERN_OK;
    if (!(k = tern_alloc(sizeof *k)))
        return TERN_ERR_MEMORY;
    k->of = *of;
    describe(of, &source);
    tern_status status = kernels->backend->build(place, of, &source, &k->compiled);
    if (status == TERN_ERR_MEMORY || status == TERN_ERR_STATE) { /* the next call tries again */
        tern_free(k);
        return status;
    }
    k->state = status != TERN_OK              ? TERN_MATRIX_WRONG
               : of->way == TERN_MATRIX_PLAIN ? TERN_MATRIX_RIGHT
                                              : TERN_MATRIX_NOT_TRIED;
    k->next = kernels->first;
    *found = kernels->first = k;
    return status;
}

/* Returns whether nothing has to be compiled or tried: all kernels are right, or one is wrong. */
static bool is_known(const tern_matrix_kernels *kernels, const tern_matrix_call *call,
                     tern_matrix_kernel **found, bool *usable)
{
    int n_right = 0;
    for (int i = 0; i < call->n; i++) {
        found[i] = look_up(kernels, &call->of[i]);
        if (found[i] && found[i]->state == TERN_MATRIX_WRONG)
            return true;
        n_right += found[i] && found[i]->state == TERN_MATRIX_RIGHT;
    }
    *usable = n_right == call->n;
    return *usable;
}

static tern_status build_and_try(tern_place *place, tern_matrix_kernels *kernels,
                                 const tern_matrix_call *call, tern_matrix_kernel **found)
{
    bool right = true, tried = true;
    for (int i = 0; i < call->n; i++) {
        TERN_TRY(tern_matrix_find(place, kernels, &call->of[i], &found[i]));
        tried = tried && found[i]->state != TERN_MATRIX_NOT_TRIED;
    }
    tern_status status = tried ? TERN_OK : call->try(call->user, &right);
    if (status == TERN_ERR_MEMORY)
        return status; /* the next call tries again */
    for (int i = 0; i < call->n; i++)
        if (found[i]->state == TERN_MATRIX_NOT_TRIED)
            found[i]->state = status == TERN_OK && right ? TERN_MATRIX_RIGHT : TERN_MATRIX_WRONG;
    return status != TERN_OK || right ? status
                                      : tern_fail(TERN_ERR_DEVICE, "what was tried came out wrong");
}

tern_status tern_matrix_prepare(tern_place *place, tern_matrix_kernels *kernels,
                                const tern_matrix_call *call, tern_matrix_kernel **found,
                                bool *usable)
{
    void *const recording = tern_thread.recording_stream;
    const tern_matrix_variant *of = call->of;
    tern_error_hold hold;
    char why[600];
    *usable = false;
    if (is_known(kernels, call, found, usable))
        return TERN_OK;
    TERN_TRY(tern_error_hold_begin(&hold));
    tern_thread.recording_stream = NULL;
    const tern_status made = build_and_try(place, kernels, call, found);
    tern_thread.recording_stream = recording;
    tern_status status = tern_error_hold_end(&hold, why, sizeof why);
    if (status == TERN_OK)
        status = made; /* a device that is out of memory records no error */
    if (status == TERN_ERR_MEMORY)
        return tern_fail(status, "%s: no memory for the kernels of %s",
                         tern_place_info(place)->device, of->family->file);
    if (status == TERN_ERR_STATE)
        return tern_fail(status, "%s", why);
    *usable = status == TERN_OK;
    if (status != TERN_OK)
        tern_warn("slow", of->family->function,
                  "%s of %s on %s leave its matrix unit alone (%s): %s", of->family->what,
                  tern_dtype_name((tern_dtype)of->dtype), tern_place_info(place)->device,
                  tern_matrix_name(of->way), why);
    return TERN_OK;
}

void tern_matrix_kernels_free(tern_matrix_kernels *kernels)
{
    for (tern_matrix_kernel *next, *k = kernels->first; k; k = next) {
        next = k->next;
        if (k->compiled)
            kernels->backend->free(k->compiled);
        tern_free(k);
    }
    kernels->first = NULL;
}
