/* stdio.h -- what <tern/tern.h> takes of this header, as Microsoft's compiler has it. */
#pragma once
#include <stddef.h>
typedef struct FILE FILE;
int printf(const char *format, ...);
