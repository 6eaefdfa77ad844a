/* ops.h -- all operations on tensors, a header for each family. */
#ifndef TERN_OPS_H
#define TERN_OPS_H
#include <tern/ops/activation.h>
#include <tern/ops/attention.h>
#include <tern/ops/collective.h>
#include <tern/ops/convolution.h>
#include <tern/ops/copy.h>
#include <tern/ops/create.h>
#include <tern/ops/elementwise.h>
#include <tern/ops/embedding.h>
#include <tern/ops/fft.h>
#include <tern/ops/index.h>
#include <tern/ops/layout.h>
#include <tern/ops/linalg.h>
#include <tern/ops/logic.h>
#include <tern/ops/loss.h>
#include <tern/ops/matmul.h>
#include <tern/ops/norm.h>
#include <tern/ops/pad.h>
#include <tern/ops/pool.h>
#include <tern/ops/random.h>
#include <tern/ops/reduce.h>
#include <tern/ops/rnn.h>
#include <tern/ops/scan.h>
#include <tern/ops/signal.h>
#include <tern/ops/softmax.h>
#include <tern/ops/sort.h>
#include <tern/ops/special.h>
#include <tern/ops/statistics.h>
#include <tern/ops/view.h>
#include <tern/ops/vision.h>
/* Last: macros for what stands above. */
#include <tern/numbers.h>
#include <tern/pointers.h>
#endif
