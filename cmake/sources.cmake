# sources.cmake -- every source file, by layer.
set(TERN_SOURCES
  src/base/dynlib.c
  src/base/error.c
  src/base/memory.c
  src/base/parallel.c
  src/base/text.c
  src/device/device.c
  src/device/launch.c
  src/device/memory.c
  src/device/registry.c
  src/device/select.c
  src/device/cpu/cpu.c
  src/device/cpu/gemm.c
  src/tensor/apply.c
  src/tensor/autograd.c
  src/tensor/backward.c
  src/tensor/inplace.c
  src/tensor/read.c
  src/tensor/scope.c
  src/tensor/shape.c
  src/tensor/storage.c
  src/tensor/tape.c
  src/ops/copy.c
  src/ops/create.c
  src/ops/elementwise.c
  src/ops/expression.c
  src/ops/hooks_tmp.c
  src/ops/walk.c
  src/ops/where.c
)

# Kernels: cl_kernels/<family>.cl each, compiled for the host and embedded for other devices.
set(TERN_KERNEL_FAMILIES
  copy
  elementwise
)
