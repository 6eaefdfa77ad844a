/* call_name.c -- the name of a call's function in messages. */
#include "tensor/op.h"
#include <string.h>

/* Copies the parts itself, because snprintf would take a tenth of a small operation's time. */
void tern_call_name(const tern_call *call, char function[TERN_FUNCTION_BYTES])
{
    static const char forms[2][2][sizeof "_scalar_"] = {{"", "_"}, {"_scalar", "_scalar_"}};
    enum { NAME_BYTES = TERN_FUNCTION_BYTES - sizeof forms[0][0] };
    memcpy(function, "tern_", 5);
    char *end = memccpy(function + 5, call->op->name, '\0', NAME_BYTES - 5);
    if (!end)
        function[NAME_BYTES - 1] = '\0';
    else if (call->op->of_number || call->in_place)
        memcpy(end - 1, forms[call->op->of_number][call->in_place], sizeof forms[0][0]);
}
