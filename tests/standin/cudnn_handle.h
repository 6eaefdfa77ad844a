/* cudnn_handle.h -- the stand-in's handle of cuDNN. */
#ifndef TERN_TESTS_STANDIN_CUDNN_HANDLE_H
#define TERN_TESTS_STANDIN_CUDNN_HANDLE_H
#include "standin.h"

struct cudnnContext {
    cudaStream_t stream;
    int device;
};

#endif
