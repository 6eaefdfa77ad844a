/* main.c -- runs one program of the documents by its name: test_guide NAME; without a name it lists them. */
#include <stdio.h>
#include <string.h>

/* Programs are main functions with or without arguments, under names of their own. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
#include "table.h"

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        if (argc < 2)
            puts(programs[i].name);
        else if (strcmp(programs[i].name, argv[1]) == 0)
            return programs[i].main(1, (char *[]){argv[0], NULL});
    }
    if (argc < 2)
        return 0;
    fprintf(stderr, "test_guide: there is no program %s\n", argv[1]);
    return 2;
}
