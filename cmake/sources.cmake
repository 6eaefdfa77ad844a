# sources.cmake -- every source file, by layer.
# Every C file of a layer belongs to the library: a new one needs no line here. Those of the host's kernels are
# compiled once for each instruction set (library.cmake), and a backend only where it is wanted.
file(GLOB_RECURSE TERN_SOURCES RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
  src/base/*.c src/device/*.c src/tensor/*.c src/ops/*.c src/nn/*.c src/amp/*.c src/optim/*.c src/metrics/*.c
  src/data/*.c src/io/*.c src/dist/*.c src/profile/*.c)
list(FILTER TERN_SOURCES EXCLUDE REGEX "^src/dist/mpi/") # a plugin of its own (mpi.cmake)
set(TERN_HOST_SOURCES host_kernels host_table product_kernels row_kernels row_run)
list(TRANSFORM TERN_HOST_SOURCES REPLACE "(.+)" "src/device/cpu/\\1.c")
list(REMOVE_ITEM TERN_SOURCES ${TERN_HOST_SOURCES})
if(NOT TERN_OPENCL)
  list(FILTER TERN_SOURCES EXCLUDE REGEX "^src/device/opencl/")
endif()
if(NOT TERN_CUDA)
  list(FILTER TERN_SOURCES EXCLUDE REGEX "^src/device/cuda/")
endif()

# libtern_onnx, which libtern.so opens and libtern.a holds; io/onnx.h where neither is.
file(GLOB TERN_ONNX_SOURCES RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS src/io/onnx/*.c)
list(FILTER TERN_SOURCES EXCLUDE REGEX "^src/io/onnx(_open\\.c|/)")

# libtern_names, a library of its own: operations by PyTorch's name.
file(GLOB TERN_NAMES_SOURCES RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS src/names/*.c)

# libtern_report, another: how a training goes.
file(GLOB TERN_REPORT_SOURCES RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS src/report/*.c)

# libtern_models, another: pretrained models and tokenizers.
file(GLOB_RECURSE TERN_MODELS_SOURCES RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS src/models/*.c)

# Kernels: cl_kernels/<family>.cl each, compiled for the host and embedded for other devices.
set(TERN_KERNEL_FAMILIES
  adam_variants
  attention
  attention_tiles
  convolution
  copy
  copy_stored
  create
  embedding
  fft
  foreach
  fused
  index
  index_nonzero
  index_scatter
  linalg
  loss
  loss_ctc
  matmul
  norm
  norm_columns
  norm_layer
  packed
  polygamma
  pool
  random
  reduce
  rmsprop_adagrad
  resize
  rnn
  scan
  sgd_adam
  sgd_variants
  softmax
  sort
  svd
  vision
)
# Those that are made of rows: cl_kernels/<family>.def is compiled for the host instead.
set(TERN_ROW_FAMILIES
  elementwise
  logic
  special
)
# Kernels for the host are compiled once for each instruction set, and weigh most of the library:
# of both lists, those that no training step waits for, in the lowest instruction set alone;
set(TERN_KERNEL_FAMILIES_ONCE
  adam_variants
  attention_tiles
  copy_stored
  embedding
  fft
  fused
  index_nonzero
  index_scatter
  linalg
  logic
  loss_ctc
  norm_columns
  polygamma
  random
  rmsprop_adagrad
  scan
  sgd_variants
  sort
  special
  svd
  vision
)
# of these, those whose time goes into powers and divisions one after the other, not into loops over memory;
set(TERN_KERNEL_FAMILIES_SMALL loss_ctc polygamma svd)
# those that compute more than they load, so that x86-64-v4 helps them beyond v3 by more than a hundredth of a step;
set(TERN_KERNEL_FAMILIES_V4
  elementwise
  norm_layer
  packed
  rnn
  softmax
)
# those whose loops are worth the padding in front of them: a tenth of layer norm's time with AVX2.
set(TERN_KERNEL_FAMILIES_ALIGNED norm_layer)
# those whose bytes are compiled for speed, on every instruction set but the last: images on their way to a model.
set(TERN_KERNEL_FAMILIES_BYTES resize)
# those whose half precision forms mixed precision waits for (elementwise rows always have them).
set(TERN_KERNEL_FAMILIES_HALVES
  copy
  matmul
  norm_layer
  reduce
  softmax
)

# What devices that compile kernels at run time get beside the families: everything but the host's
# own headers.
set(TERN_EMBEDDED_FILES
  attention_matrix.cl
  attention_matrix.h
  attention_matrix_gradient.cl
  batch_norm.h
  beside.h
  chain_slots.h
  collectives.h
  convolution_lines.h
  convolution_matrix.cl
  convolution_parts.h
  convolution_tiles.cl
  convolution_vector.cl
  declares.h
  dialect.h
  dtypes.def
  float4.h
  foreach_forms.h
  gemm_matrix.cl
  index_check.h
  layer_norm.h
  layer_norm_gradient.h
  norm_again.h
  math.cl
  math64.cl
  math64_special.cl
  math_names.h
  math_rows.cl
  math_special.cl
  matmul_tiles.cl
  matrix.h
  matrix_chain.h
  matrix_product.h
  matrix_tiles.h
  matrix_tiles_f32.h
  matmul_vector.cl
  optimizer_rule.h
  optimizers.def
  order.h
  params_device.h
  pool_windows.h
  philox.h
  prelude_cuda.h
  prelude_opencl.h
  prelude_opencl_cpu.h
  prelude_opencl_gpu.h
  row_functions.h
  row_kernels.h
  user.h
  user_cuda.h
  user_group.h
  user_host.h
  user_limits.h
  shapes.h
  tiles.h
  nd_index.h
)
foreach(family IN LISTS TERN_KERNEL_FAMILIES TERN_ROW_FAMILIES)
  list(APPEND TERN_EMBEDDED_FILES ${family}.cl)
endforeach()
foreach(family IN LISTS TERN_ROW_FAMILIES)
  list(APPEND TERN_EMBEDDED_FILES ${family}.def)
endforeach()
