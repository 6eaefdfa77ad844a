/* io.h -- tensors, models and training snapshots in files. */
#ifndef TERN_IO_H
#define TERN_IO_H
#include <tern/io/file.h>
#include <tern/io/module.h>
#include <tern/io/numpy.h>
#include <tern/io/onnx.h>
#include <tern/io/snapshot.h>
#endif
