/* as_strided.h -- the operation of tern_as_strided; its attributes are in tensor/op.h. */
#ifndef TERN_SRC_OPS_AS_STRIDED_H
#define TERN_SRC_OPS_AS_STRIDED_H
#include "tensor/op.h"

extern const tern_op tern_as_strided_op;

#endif
