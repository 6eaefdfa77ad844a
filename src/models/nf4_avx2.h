/* nf4_avx2.h -- the tiles of nf4.c by AVX2. */
/* Returns the values of eight codes: the lowest three bits of a code select from each half of the
 * map, and the sign of `high` selects the half. */
WIDE_INLINE __m256 numbers_of(__m256i code, __m256i high, __m256 low_map, __m256 high_map)
{
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low_map, code),
                            _mm256_permutevar8x32_ps(high_map, code), _mm256_castsi256_ps(high));
}

/* Computes outputs o .. o + k of rows from .. from + n of x; n and k are constants at every
 * call. */
WIDE_INLINE void tile_of(const product *p, int64_t o, int k, int64_t from, int n)
{
    const __m256 low = _mm256_loadu_ps(p->map), high = _mm256_loadu_ps(p->map + 8);
    const uint8_t *codes = p->codes + o * p->half;
    const float *x = p->x + from * 2 * p->half, *scale = p->absmax + o * p->half / HALF;
    __m256 sums[WIDE_SUMS][WIDE_SUMS], block[WIDE_SUMS][WIDE_SUMS];
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    sums[c][r] = _mm256_setzero_ps();
    for (int64_t j = 0; j < p->half; j += HALF) {
        WIDE_EACH(c, k)
        WIDE_EACH(r, n)
        block[c][r] = _mm256_setzero_ps();
        for (int64_t i = j; i < j + HALF; i += 8)
            WIDE_EACH(c, k)
            {
                __m256i code = _mm256_cvtepu8_epi32(
                    _mm_loadl_epi64((const __m128i *)(codes + c * p->half + i)));
                __m256 even =
                    numbers_of(_mm256_srli_epi32(code, 4), _mm256_slli_epi32(code, 24), low, high);
                __m256 odd = numbers_of(code, _mm256_slli_epi32(code, 28), low, high);
                WIDE_EACH(r, n)
                {
                    const float *at = x + r * 2 * p->half + i;
                    block[c][r] = _mm256_fmadd_ps(even, _mm256_loadu_ps(at), block[c][r]);
                    block[c][r] = _mm256_fmadd_ps(odd, _mm256_loadu_ps(at + p->half), block[c][r]);
                }
            }
        WIDE_EACH(c, k)
        {
            __m256 by = _mm256_set1_ps(scale[(c * p->half + j) / HALF]);
            WIDE_EACH(r, n)
            sums[c][r] = _mm256_fmadd_ps(by, block[c][r], sums[c][r]);
        }
    }
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    p->y[(from + r) * p->outs + o + c] = wide_sum(sums[c][r]);
}
