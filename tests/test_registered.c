/* test_registered.c -- a program that names no operation: what tensors ask of operations is in it nevertheless, as libtern.a
 * gives a program only the objects that something names. It links with nothing that names more. */
#include <stdio.h>
#include <string.h>
#include <tern/interop.h>

int main(void)
{
    float rows[2][3] = {{1, 2, 3}, {4, 5, 6}}, columns[3][2];
    const float expected[3][2] = {{1, 4}, {2, 5}, {3, 6}};
    const int64_t strides[] = {1, 3};
    tern_tensor *x = tern_from_blob(rows, (tern_shape){2, {3, 2}}, TERN_F32,
                                    &(tern_from_blob_options){.strides = strides});
    if (tern_copy_to_host(x, columns, sizeof columns) != TERN_OK) {
        printf("%s\n", tern_last_error());
        return 1;
    }
    return memcmp(columns, expected, sizeof columns) != 0;
}
