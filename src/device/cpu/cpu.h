/* cpu.h -- what the files of the cpu backend share. */
#ifndef TERN_DEVICE_CPU_CPU_H
#define TERN_DEVICE_CPU_CPU_H
#include "device/backend.h"

extern const tern_backend tern_cpu_backend;

tern_status tern_cpu_gemm(tern_place *place, const tern_gemm *gemm);

#endif
