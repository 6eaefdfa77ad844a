/* signature.h -- the parameters of kernels, and the check that a launch's arguments fit them.
 *
 * The parameters are in the text that defines the kernel, KERNELn(K(name), (OUT, STO, ys), ...),
 * which the host's compiler keeps as a string (params_host.h; rows of .def files: cpu/kernels.c).
 * The text is read when a kernel is resolved for a dtype. Each launch compares a few bytes for each
 * argument, as one kernel may be launched from several places in the code. */
#ifndef TERN_DEVICE_SIGNATURE_H
#define TERN_DEVICE_SIGNATURE_H
#include "device/device.h"
#include <stddef.h>
#include <string.h>

/* A parameter. The fields before `also` have the same layout as those of tern_arg, so that memcmp
 * can compare them. */
typedef struct tern_kernel_parameter {
    uint32_t bytes; /* the size of an element, or of the value */
    uint8_t role, type;
    bool by_reference, without_offset;
    uint8_t also; /* another type with the same size that fits too, or `type` */
} tern_kernel_parameter;

/* The most parameters that a kernel has: those of foreach_forms.h with its list of tensors. */
enum { TERN_MOST_PARAMETERS = 128 };

static inline bool tern_parameter_takes(const tern_kernel_parameter *p, const tern_arg *a)
{
    enum { AT = offsetof(tern_arg, bytes), SAME = offsetof(tern_arg, value) - AT };
    _Static_assert(SAME == offsetof(tern_kernel_parameter, also),
                   "a parameter begins as an argument");
    if (memcmp((const char *)a + AT, p, SAME) == 0)
        return true;
    return p->role == a->role ? p->bytes == a->bytes && (p->type == a->type || p->also == a->type)
                              : a->role == TERN_ROLE_UNUSED && p->role != TERN_ROLE_VALUE;
}

static inline bool tern_parameters_take(const tern_kernel_parameter *p, int n_parameters,
                                        const tern_arg *args, int n)
{
    bool fit = n == n_parameters;
    for (int i = 0; fit && i < n; i++)
        fit = tern_parameter_takes(&p[i], &args[i]);
    return fit;
}

/* Writes the parameters of a kernel, in order; returns how many, or -1 after an error. */
int tern_signature_read(tern_kernel_parameter parameters[TERN_MOST_PARAMETERS], const char *file,
                        const char *name, tern_dtype dtype);
/* Returns an error whose message has the kernel, the first parameter whose argument does not fit,
 * what was expected and what was given. */
tern_status tern_signature_refuse(const tern_place *place, const char *file, const char *name,
                                  tern_dtype dtype, const tern_arg *args, int n);
/* Reads the parameters and checks the arguments, for kernels that a backend launches itself. */
tern_status tern_signature_check(const tern_place *place, const char *file, const char *name,
                                 tern_dtype dtype, const tern_arg *args, int n);

/* Returns the text of the parameters of a kernel or a row for elements of dtype; NULL if there is
 * no such kernel (cpu/kernels.c). */
const char *tern_host_parameters(const char *name, tern_dtype dtype);

#endif
