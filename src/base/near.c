/* near.c -- finds the name that was probably meant by an unknown one. */
#include "base/near.h"
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { LONGEST = 64 };

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Damerau-Levenshtein distance, row by row: row i has the distances of a's first i letters to the
 * prefixes of b. */
int tern_near_distance(const char *a, const char *b)
{
    int rows[3][LONGEST + 1];
    int n = (int)strnlen(a, LONGEST), m = (int)strnlen(b, LONGEST);
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            row[j] = least_of(least_of(above[j] + 1, row[j - 1] + 1),
                              above[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = least_of(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

void tern_near_try(const char *word, const char *candidate, const char **best, int *least)
{
    size_t longer = strlen(word) > strlen(candidate) ? strlen(word) : strlen(candidate);
    int distance = tern_near_distance(word, candidate);
    if (3 * (size_t)distance > longer || (*best && distance >= *least))
        return;
    *best = candidate;
    *least = distance;
}
