/* tern.h -- all of libtern; tern/names.h belongs to libtern_names. */
#ifndef TERN_H
#define TERN_H
#include <tern/error.h>
#include <tern/debug.h>
#include <tern/device.h>
#include <tern/backends.h>
#include <tern/graph.h>
#include <tern/tensor.h>
#include <tern/autograd.h>
#include <tern/ops.h>
#include <tern/interop.h>
#include <tern/kernel.h>
#include <tern/nn.h>
#include <tern/optim.h>
#include <tern/amp.h>
#include <tern/metrics.h>
#include <tern/io.h>
#include <tern/data.h>
#include <tern/dist/data_parallel.h>
#include <tern/dist.h>
#include <tern/profiler.h>
#include <tern/dist/ddp.h>
#include <tern/dist/pipeline.h>
#include <tern/dist/sharding.h>
#include <tern/dist/sync_batch_norm.h>
#include <tern/dist/metrics.h>
#endif
