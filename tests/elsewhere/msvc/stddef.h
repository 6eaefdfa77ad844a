/* stddef.h -- what <tern/tern.h> takes of this header, as Microsoft's compiler has it. */
#pragma once
#define NULL ((void *)0)
typedef unsigned long long size_t;
typedef long long ptrdiff_t;
