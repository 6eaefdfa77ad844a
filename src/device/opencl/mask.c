/* mask.c -- TERN_OPENCL_VISIBLE_DEVICES, read as the CUDA driver reads CUDA_VISIBLE_DEVICES. */
#include "device/opencl/opencl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MASK = 256 };

/* Returns the number that an element starts with (strtol's rules: leading blanks, rest ignored), or
 * -1 for none. */
static long index_of(const char *element)
{
    char *end;
    errno = 0;
    long index = strtol(element, &end, 10);
    return end == element || errno || index < 0 ? -1 : index;
}

bool tern_cl_mask_error(const char *mask, int n, char *element, size_t bytes)
{
    int order[MAX_MASK], count = 0;
    for (const char *e = *mask ? mask : NULL; e && count < MAX_MASK;) {
        long index = index_of(e);
        bool repeated = false;
        for (int i = 0; i < count; i++)
            repeated = repeated || order[i] == index;
        if (strncmp(e, "-1", 2) == 0)
            return false; /* -1 hides the rest on purpose */
        if (index < 0 || index >= n || repeated) {
            snprintf(element, bytes, "%.*s", (int)strcspn(e, ","), e);
            return true;
        }
        order[count++] = (int)index;
        e = strchr(e, ',');
        e = e ? e + 1 : NULL;
    }
    return false;
}

int tern_cl_mask(const char *mask, int n, int *order)
{
    int count = 0;
    for (const char *element = mask; element;) {
        long index = index_of(element);
        if (index < 0 || index >= n)
            break; /* an invalid element ends the list */
        for (int i = 0; i < count; i++)
            if (order[i] == index)
                return 0; /* a repeat leaves no device */
        order[count++] = (int)index;
        element = strchr(element, ',');
        if (element)
            element++;
    }
    return count;
}
