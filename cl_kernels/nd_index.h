/* nd_index.h -- where row r of a tern_nd_index starts in each tensor: ND_INDEXn(w, r, a, b, ...)
 * declares a, b, ... with the number of its first element there. r is below w.rows.
 *
 * OpenCL C passes a struct by value, and AMD's and Intel's compilers keep one that a variable
 * indexes in private memory: each work-item of a GPU would write the whole of it before its first
 * branch. Kernels with indices of 32 bits, which GPUs run where an index has at most TERN_ND_LOW
 * dims (src/device/index32.c), multiply where others divide, and where TERN_ND_CONSTANT says so
 * they have constants for d alone; CUDA's compiler indexes arguments where they lie. */
#define ND_ADD1_(w, d, a, b, c, e) a += c_ * (idx)(w).stride[0][d];
#define ND_ADD2_(w, d, a, b, c, e) ND_ADD1_(w, d, a, b, c, e) b += c_ * (idx)(w).stride[1][d];
#define ND_ADD3_(w, d, a, b, c, e) ND_ADD2_(w, d, a, b, c, e) c += c_ * (idx)(w).stride[2][d];
#define ND_ADD4_(w, d, a, b, c, e) ND_ADD3_(w, d, a, b, c, e) e += c_ * (idx)(w).stride[3][d];
#define ND_DIM_(QUOTIENT, ADD, w, d, a, b, c, e)                                                   \
    {                                                                                              \
        const idx t_ = QUOTIENT(w, d), c_ = q_ - t_ * (idx)(w).dim[d];                             \
        q_ = t_;                                                                                   \
        ADD(w, d, a, b, c, e)                                                                      \
    }
#if TERN_IDX32
#define ND_QUOTIENT_(w, d) ((idx)((u32)((u64)((u32)q_ << 1) * (w).factor[d] >> 32) >> (w).shift[d]))
#if TERN_ND_CONSTANT
#define ND_LOW_(ADD, w, d, a, b, c, e)                                                             \
    if ((w).ndim > d)                                                                              \
        ND_DIM_(ND_QUOTIENT_, ADD, w, d, a, b, c, e)
#define ND_OUTER_(ADD, w, a, b, c, e)                                                              \
    ND_LOW_(ADD, w, 3, a, b, c, e)                                                                 \
    ND_LOW_(ADD, w, 2, a, b, c, e)                                                                 \
    ND_LOW_(ADD, w, 1, a, b, c, e)
#else
#define ND_OUTER_(ADD, w, a, b, c, e)                                                              \
    ROLLED for (i32 d_ = (w).ndim - 1; d_ > 0; d_--)                                               \
        ND_DIM_(ND_QUOTIENT_, ADD, w, d_, a, b, c, e)
#endif
#define ND_DIMS_(ADD, w, r, a, b, c, e)                                                            \
    {                                                                                              \
        idx q_ = (r);                                                                              \
        ND_OUTER_(ADD, w, a, b, c, e)                                                              \
        const idx c_ = q_; /* 0 where there are no dims */                                         \
        ADD(w, 0, a, b, c, e)                                                                      \
    }
#else
#define ND_QUOTIENT_(w, d) (q_ / (idx)(w).dim[d])
#define ND_DIMS_(ADD, w, r, a, b, c, e)                                                            \
    {                                                                                              \
        idx q_ = (r);                                                                              \
        ROLLED for (i32 d_ = (w).ndim - 1; d_ >= 0; d_--)                                          \
            ND_DIM_(ND_QUOTIENT_, ADD, w, d_, a, b, c, e)                                          \
    }
#endif
#define ND_INDEX1(w, r, a)          idx a = 0; ND_DIMS_(ND_ADD1_, w, r, a, , , )
#define ND_INDEX2(w, r, a, b)       idx a = 0, b = 0; ND_DIMS_(ND_ADD2_, w, r, a, b, , )
#define ND_INDEX3(w, r, a, b, c)    idx a = 0, b = 0, c = 0; ND_DIMS_(ND_ADD3_, w, r, a, b, c, )
#define ND_INDEX4(w, r, a, b, c, e) idx a = 0, b = 0, c = 0, e = 0;                                \
    ND_DIMS_(ND_ADD4_, w, r, a, b, c, e)
