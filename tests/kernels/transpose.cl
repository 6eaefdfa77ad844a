/* transpose.cl -- OpenCL's short words, a tile that the launch gives. */
kernel void transpose(global const float *in, global float *out, local float *tile, int width,
                      int height)
{
  private
    int x = get_local_id(0), y = get_local_id(1), side = get_local_size(0);
    int column = get_group_id(0) * side + x, row = get_group_id(1) * side + y;
    if (column < width && row < height)
        tile[y * (side + 1) + x] = in[row * width + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    column = get_group_id(1) * side + x;
    row = get_group_id(0) * side + y;
    if (column < height && row < width)
        out[row * height + column] = tile[x * (side + 1) + y];
}
