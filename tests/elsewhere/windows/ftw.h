/* ftw.h -- a tree of folders from its leaves on, as tests remove one. */
#ifndef TERN_TESTS_WINDOWS_FTW_H
#define TERN_TESTS_WINDOWS_FTW_H
#include <dirent.h>
#include <string.h>
#include "unistd.h"

enum { FTW_F, FTW_DP, FTW_DEPTH = 1, FTW_PHYS = 2 };
struct FTW {
    int level;
};

static inline int nftw(const char *path,
                       int (*each)(const char *path, const struct stat *about, int kind,
                                   struct FTW *at),
                       int files, int flags)
{
    DIR *all = opendir(path);
    char below[1024];
    for (struct dirent *e; all && (e = readdir(all));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            snprintf(below, sizeof below, "%s/%s", path, e->d_name);
            nftw(below, each, files, flags);
        }
    if (all)
        closedir(all);
    return all ? rmdir(path) : each(path, NULL, FTW_F, NULL);
}
#endif
