/* signature.h -- what a kernel's parameters are, and whether the arguments of a launch fit them.
 *
 * Both come from the text that defines the kernel, KERNELn(K(name), (OUT, STO, ys), ...), as the
 * host's compiler kept it (params_host.h; rows of .def files: cpu/kernels.c). It is read when a
 * kernel is resolved for a type; each launch compares a few bytes for each argument, as one kernel
 * may be launched from several places in the code. */
#ifndef TERN_DEVICE_SIGNATURE_H
#define TERN_DEVICE_SIGNATURE_H
#include "device/device.h"
#include <stddef.h>
#include <string.h>

/* Begins as the middle of a tern_arg that fits it to the bit. */
typedef struct tern_kernel_parameter {
    uint32_t bytes; /* of an element, or of the value */
    uint8_t role, type;
    bool by_reference, without_offset;
    uint8_t also; /* another type that lies in memory as this one does, or the same */
} tern_kernel_parameter;

/* Most that a kernel has: the few tensors of foreach_forms.h, and what goes before them. */
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

/* The parameters of a kernel, in order; how many, or -1 after an error. */
int tern_signature_read(tern_kernel_parameter parameters[TERN_MOST_PARAMETERS], const char *file,
                        const char *name, tern_dtype dtype);
/* An error that names the kernel, the first parameter whose argument does not fit, what it wants
 * and what it was given. */
tern_status tern_signature_refuse(const tern_place *place, const char *file, const char *name,
                                  tern_dtype dtype, const tern_arg *args, int n);
/* Both in one, for kernels that a backend launches by itself. */
tern_status tern_signature_check(const tern_place *place, const char *file, const char *name,
                                 tern_dtype dtype, const tern_arg *args, int n);

/* The parameters of a kernel or a row for elements of dtype, as written; NULL where there is none.
 * Of the cpu, in kernels.c. */
const char *tern_host_parameters(const char *name, tern_dtype dtype);

#endif
