/* list.c -- prints a list of sizes as Python does. */
#include "nn/layers/list.h"
#include <stdio.h>

tern_list_text tern_list_to_text(const tern_shape *list, bool tuple, bool none)
{
    tern_list_text result = {""};
    bool brackets = tuple || list->ndim != 1;
    size_t at = 0;
    for (int d = 0; d < list->ndim && d < TERN_MAX_DIMS && at < sizeof result.text; d++) {
        const char *before = d ? ", " : brackets ? "(" : "";
        size_t left = sizeof result.text - at;
        at += (size_t)(none && list->dims[d] == -1
                           ? snprintf(result.text + at, left, "%sNone", before)
                           : snprintf(result.text + at, left, "%s%lld", before,
                                      (long long)list->dims[d]));
    }
    if (brackets && at < sizeof result.text)
        snprintf(result.text + at, sizeof result.text - at, "%s", list->ndim == 1 ? ",)" : ")");
    return result;
}
