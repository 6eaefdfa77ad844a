/* matrix_gemm.h -- gemm_matrix.cl (matrix_gemm.c), attention_matrix.cl (matrix_attention.c) and
 * convolution_matrix.cl (matrix_convolution.c) in lanes of the host, for each way of matrix.h and
 * each type. */
#ifndef TERN_TESTS_MATRIX_GEMM_H
#define TERN_TESTS_MATRIX_GEMM_H
/* Case number `which`, whose name is left in *name, or NULL behind the last: its largest
 * difference from float64, of which 1 may be; 1000: items of a group parted ways, or lanes that
 * are to bring the same did not. */
typedef double matrix_gemm_test(int which, const char **name);
#define MATRIX_EACH_WAY(X)                                                                         \
    X(plain, 0) X(mma, 1) X(rdna3, 2) X(rdna4, 3) X(cdna, 4) X(xe8, 5) X(xe16, 6)
#define X(NAME, WAY)                                                                               \
    matrix_gemm_test matrix_gemm_##WAY##_f16, matrix_gemm_##WAY##_bf16;                            \
    matrix_gemm_test matrix_attention_##WAY##_f16, matrix_attention_##WAY##_bf16;                  \
    matrix_gemm_test matrix_convolution_##WAY##_f16, matrix_convolution_##WAY##_bf16;
MATRIX_EACH_WAY(X)
#undef X
#endif
