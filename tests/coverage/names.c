/* names.c -- prints every operation that tern has by name, one a line. */
#include <stdio.h>
#include <tern/names.h>

int main(void)
{
    const tern_named_op *op;
    for (int i = 0; (op = tern_named_op_at(i)); i++)
        puts(tern_named_op_name(op));
    return 0;
}
