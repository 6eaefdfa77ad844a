/* ops.h -- all operations on tensors. */
#ifndef TERN_OPS_H
#define TERN_OPS_H
#include <tern/ops/attention.h>
#include <tern/ops/convolution.h>
#include <tern/ops/elementwise.h>
#include <tern/ops/functional.h>
#include <tern/ops/index.h>
#include <tern/ops/layout.h>
#include <tern/ops/linalg.h>
#include <tern/ops/loss.h>
#include <tern/ops/matmul.h>
#include <tern/ops/norm.h>
#include <tern/ops/pad.h>
#include <tern/ops/pool.h>
#include <tern/ops/pointwise.h>
#include <tern/ops/reduce.h>
#include <tern/ops/rnn.h>
#include <tern/ops/shape.h>
#include <tern/ops/sort.h>
#include <tern/ops/statistics.h>
#include <tern/ops/vision.h>
#endif
