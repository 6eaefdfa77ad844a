/* program.c -- a user's program against an installed tern; compiled as C and as C++. */
#include <stdio.h>
#include <tern/names.h>
#include <tern/tern.h>
#include <tern/where.h>

int main(void)
{
    double sum = 0;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 3), TERN_F32, NULL);
        tern_requires_grad_(x, true);
        tern_tensor *y = tern_sum(tern_mul(x, x));
        tern_backward(y);
        tern_tensor *dx = tern_grad(x);
        tern_value values[1];
        values[0] = tern_value_tensor("input", dx);
        if (tern_call_by_name("sum", values, 1, &dx, 1) == 1)
            sum = tern_item(dx);
    }
    printf("%g %s\n", sum, tern_last_error());
    bool right = sum == 12 && tern_last_status() == TERN_OK;
    int line = (tern_ones(TERN_SHAPE(-1), TERN_F32, NULL), __LINE__);
    tern_error_info error;
    tern_get_error(&error);
    return right && error.line == line && error.status == TERN_ERR_SHAPE ? 0 : 1;
}
