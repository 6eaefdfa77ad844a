/* other_dnnl.c -- stands for a library that has another oneDNN and shows it, as PyPI's libtorch_cpu does: each of its
 * functions fails. */
#define X(NAME)                                                                                    \
    int dnnl_##NAME(void);                                                                         \
    int dnnl_##NAME(void)                                                                          \
    {                                                                                              \
        return 1; /* dnnl_out_of_memory */                                                         \
    }
#define PRIMITIVE(NAME) X(NAME)
#include "../../src/device/cpu/dnnl.def"
