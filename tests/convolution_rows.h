/* convolution_rows.h -- what a row of a table of convolutions is, and its call. */
#ifndef TERN_TESTS_CONVOLUTION_ROWS_H
#define TERN_TESTS_CONVOLUTION_ROWS_H
#include "support.h"

typedef tern_tensor *(*conv)(tern_tensor *x, tern_tensor *w, tern_tensor *b,
                             const tern_conv_function_options *o);
typedef tern_tensor *(*transposed)(tern_tensor *x, tern_tensor *w, tern_tensor *b,
                                   const tern_conv_transpose_function_options *o);

typedef struct conv_row {
    const char *name;
    conv conv; /* or else */
    transposed transposed;
    tern_shape x, w;
    tern_conv_function_options o;
    tern_shape output_padding;
} conv_row;

/* A shape in a static table. */
#define S(...)                                                                                     \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / 8,                                                      \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static inline tern_tensor *call(const conv_row *r, tern_tensor *x, tern_tensor *w, tern_tensor *b)
{
    const tern_conv_function_options *o = &r->o;
    tern_conv_transpose_function_options t = {o->stride,         o->padding, o->dilation,
                                              r->output_padding, o->groups,  {0}};
    return r->conv ? r->conv(x, w, b, o) : r->transposed(x, w, b, &t);
}

static inline int64_t channels(const conv_row *r)
{
    return r->conv ? r->w.dims[0] : r->w.dims[1] * (r->o.groups ? r->o.groups : 1);
}

#endif
