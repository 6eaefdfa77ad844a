/* plugin.c -- a module of a program that uses tern. */
#include <tern/tern.h>

void use_tern(void);
__attribute__((visibility("default"))) void use_tern(void)
{
    tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu");
}
