/* stdbool.h -- what <tern/tern.h> takes of this header, as Microsoft's compiler has it. */
#pragma once
#define bool _Bool
#define true 1
#define false 0
