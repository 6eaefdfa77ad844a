/* ids.cl -- where a work-item is, in two dimensions. */
__kernel void ids(__global int *y, int width)
{
    size_t x = get_global_id(0), row = get_global_id(1);
    if (x >= width)
        return;
    y[row * width + x] =
        (int)(x + 100 * row + 10000 * get_work_dim() + get_global_offset(0) + get_global_offset(1) +
              get_global_size(1) * 7 + get_local_size(0) * 3 + get_num_groups(1) * 11 +
              (get_group_id(0) * get_local_size(0) + get_local_id(0) == x) + get_local_size(2));
}
