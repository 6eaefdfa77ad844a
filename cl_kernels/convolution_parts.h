/* convolution_parts.h -- the end of a convolution that was cut along k, for convolution_tiles.cl
 * and convolution_vector.cl. */

/* C = the sum of its parts + bias, or is added to. */
KERNEL4(K(conv_parts), (OUT, STO, cs), (IN, f32, sums), (IN, STO, biases),
        (ARG, tern_conv_tiles, g))
{
    BASE(cs);
    BASE(sums);
    BASE(biases);
    ITEMS(i, g.whole)
    {
        f32 sum = g.has_bias ? LD(biases, i / g.outs % g.channels) : 0;
        for (i32 p = 0; p < g.parts; p++)
            sum += sums[p * g.whole + i];
        ST(cs, i, sum + (g.adds ? LD(cs, i) : 0));
    }
}
