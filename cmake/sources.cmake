# sources.cmake -- every source file, by layer.
set(TERN_SOURCES
  src/base/dynlib.c
  src/base/error.c
  src/base/memory.c
  src/base/parallel.c
  src/base/text.c
  src/device/cache.c
  src/device/device.c
  src/device/launch.c
  src/device/memory.c
  src/device/registry.c
  src/device/select.c
  src/device/sources.c
  src/device/cpu/convolution.c
  src/device/cpu/cpu.c
  src/device/cpu/gemm.c
  src/device/cpu/kernels.c
  src/tensor/apply.c
  src/tensor/autograd.c
  src/tensor/backward.c
  src/tensor/inplace.c
  src/tensor/one.c
  src/tensor/print.c
  src/tensor/read.c
  src/tensor/scope.c
  src/tensor/set_data.c
  src/tensor/shape.c
  src/tensor/storage.c
  src/tensor/tape.c
  src/tensor/user_kernel.c
  src/ops/as_strided.c
  src/ops/attention.c
  src/ops/batch_norm.c
  src/ops/cat.c
  src/ops/columns.c
  src/ops/conv_geometry.c
  src/ops/conv_run.c
  src/ops/convolution.c
  src/ops/copy.c
  src/ops/create.c
  src/ops/cross_entropy.c
  src/ops/dropout.c
  src/ops/elementwise.c
  src/ops/expression.c
  src/ops/fold.c
  src/ops/index.c
  src/ops/linear.c
  src/ops/matmul.c
  src/ops/mse_loss.c
  src/ops/loss_scale.c
  src/ops/multi_tensor.c
  src/ops/norm.c
  src/ops/peak.c
  src/ops/product.c
  src/ops/random.c
  src/ops/reduce.c
  src/ops/slice.c
  src/ops/softmax.c
  src/ops/split.c
  src/ops/triangle.c
  src/ops/variance.c
  src/ops/view.c
  src/ops/walk.c
  src/ops/where.c
  src/nn/layers/activation.c
  src/nn/layers/batch_norm.c
  src/nn/layers/container.c
  src/nn/layers/dropout.c
  src/nn/layers/embedding.c
  src/nn/layers/init.c
  src/nn/layers/layer.c
  src/nn/layers/linear.c
  src/nn/layers/loss.c
  src/nn/layers/norm.c
  src/nn/layers/softmax.c
  src/nn/module.c
  src/nn/print.c
  src/nn/run.c
  src/nn/state.c
  src/nn/tree.c
  src/amp/autocast.c
  src/amp/grad_scaler.c
  src/optim/adam.c
  src/optim/clip.c
  src/optim/groups.c
  src/optim/optimizer.c
  src/optim/sgd.c
  src/optim/unscale.c
)

if(TERN_OPENCL)
  list(APPEND TERN_SOURCES
    src/device/opencl/api.c
    src/device/opencl/backend.c
    src/device/opencl/clblast.c
    src/device/opencl/enumerate.c
    src/device/opencl/gemm.c
    src/device/opencl/gemm_plan.c
    src/device/opencl/gemm_vector.c
    src/device/opencl/launch.c
    src/device/opencl/mask.c
    src/device/opencl/memory.c
    src/device/opencl/programs.c
    src/device/opencl/user.c
    src/device/opencl/vendors.c
  )
endif()

# Kernels: cl_kernels/<family>.cl each, compiled for the host and embedded for other devices.
set(TERN_KERNEL_FAMILIES
  columns
  convolution
  copy
  gemm
  index
  loss
  norm
  optimizer
  random
  reduce
  rows
)
# Those that are made of rows: cl_kernels/<family>.def is compiled for the host instead.
set(TERN_ROW_FAMILIES
  elementwise
)
# Those of both that no training step waits for: compiled for the lowest instruction set alone, which
# every processor has, so that the library stays small.
set(TERN_KERNEL_FAMILIES_ONCE
  random
)

# What devices that compile kernels at run time get beside the families: everything but the host's
# own headers.
set(TERN_EMBEDDED_FILES
  dialect.h
  gemm_vector.cl
  math.cl
  math64.cl
  math64_special.cl
  math_names.h
  math_special.cl
  params_device.h
  prelude_cuda.h
  prelude_opencl.h
  prelude_opencl_cpu.h
  prelude_opencl_gpu.h
  row_kernels.h
  shapes.h
  walk.h
)
foreach(family IN LISTS TERN_KERNEL_FAMILIES TERN_ROW_FAMILIES)
  list(APPEND TERN_EMBEDDED_FILES ${family}.cl)
endforeach()
foreach(family IN LISTS TERN_ROW_FAMILIES)
  list(APPEND TERN_EMBEDDED_FILES ${family}.def)
endforeach()
