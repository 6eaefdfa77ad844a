/* nd_index.h -- where row r of a tern_nd_index starts in each tensor. */
#define ND_TURN_(w, d)                                                                             \
    idx n_ = (idx)(w).dim[d], t_ = q_ / n_, c_ = q_ - t_ * n_;                                     \
    q_ = t_;
#define ND_INDEX1(w, r, a)                                                                         \
    idx a = 0;                                                                                     \
    {                                                                                              \
        idx q_ = (r);                                                                              \
        ROLLED for (i32 d_ = (w).ndim - 1; d_ >= 0; d_--) {                                        \
            ND_TURN_(w, d_)                                                                        \
            a += c_ * (idx)(w).stride[0][d_];                                                      \
        }                                                                                          \
    }
#define ND_INDEX2(w, r, a, b)                                                                      \
    idx a = 0, b = 0;                                                                              \
    {                                                                                              \
        idx q_ = (r);                                                                              \
        ROLLED for (i32 d_ = (w).ndim - 1; d_ >= 0; d_--) {                                        \
            ND_TURN_(w, d_)                                                                        \
            a += c_ * (idx)(w).stride[0][d_];                                                      \
            b += c_ * (idx)(w).stride[1][d_];                                                      \
        }                                                                                          \
    }
#define ND_INDEX3(w, r, a, b, c)                                                                   \
    idx a = 0, b = 0, c = 0;                                                                       \
    {                                                                                              \
        idx q_ = (r);                                                                              \
        ROLLED for (i32 d_ = (w).ndim - 1; d_ >= 0; d_--) {                                        \
            ND_TURN_(w, d_)                                                                        \
            a += c_ * (idx)(w).stride[0][d_];                                                      \
            b += c_ * (idx)(w).stride[1][d_];                                                      \
            c += c_ * (idx)(w).stride[2][d_];                                                      \
        }                                                                                          \
    }
#define ND_INDEX4(w, r, a, b, c, e)                                                                \
    idx a = 0, b = 0, c = 0, e = 0;                                                                \
    {                                                                                              \
        idx q_ = (r);                                                                              \
        ROLLED for (i32 d_ = (w).ndim - 1; d_ >= 0; d_--) {                                        \
            ND_TURN_(w, d_)                                                                        \
            a += c_ * (idx)(w).stride[0][d_];                                                      \
            b += c_ * (idx)(w).stride[1][d_];                                                      \
            c += c_ * (idx)(w).stride[2][d_];                                                      \
            e += c_ * (idx)(w).stride[3][d_];                                                      \
        }                                                                                          \
    }
