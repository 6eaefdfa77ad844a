/* files.c -- seconds that files take: bench_files WHAT FILE [MIB] [NUMBER] [DEVICE], the least of as many turns.
 *
 *   open   the header of FILE        load   all of it
 *   save   MIB of tensors, synced    write  the same bytes by write and fsync
 *   peak-load, peak-save: MiB of memory that one load or save takes, beyond what is saved */
#include "clock.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>
#include <unistd.h>

enum { TENSORS = 64 };

static tern_state_dict *tensors(long mib, const char *device)
{
    tern_state_dict *dict = tern_state_dict_new();
    TERN_SCOPE
        for (int i = 0; i < TENSORS; i++) {
            char name[32];
            snprintf(name, sizeof name, "layers.%d.weight", i);
            tern_state_dict_set(dict, name,
                                tern_ones(TERN_SHAPE(mib << 18 >> 6), TERN_F32, device));
        }
    return dict;
}

static int write_plainly(const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0)
        return 1;
    for (size_t at = 0; at < n;) {
        ssize_t k = write(fd, bytes + at, n - at < 8 << 20 ? n - at : 8 << 20);
        if (k <= 0)
            return 1;
        at += (size_t)k;
    }
    return fsync(fd) != 0 || close(fd) != 0;
}

static int turn(const char *what, const char *path, const tern_state_dict *dict, const char *bytes,
                size_t n, const char *device)
{
    tern_file *file = NULL;
    tern_state_dict *back = NULL;
    if (strcmp(what, "save") == 0)
        return tern_save(dict, path, NULL) != TERN_OK;
    if (strcmp(what, "write") == 0)
        return write_plainly(path, bytes, n);
    if (strcmp(what, "open") == 0)
        file = tern_safe_open(path);
    else
        back = tern_load(path, &(tern_load_options){.map_location = device});
    int failed = !file && !back;
    tern_file_free(file);
    tern_state_dict_free(back);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 1;
    const char *what = argv[1], *path = argv[2];
    long mib = argc > 3 ? atol(argv[3]) : 64, number = argc > 4 ? atol(argv[4]) : 3;
    const char *device = argc > 5 ? argv[5] : "cpu";
    int failed = 0, is_peak = strncmp(what, "peak-", 5) == 0;
    what += is_peak ? 5 : 0;
    tern_state_dict *dict = strcmp(what, "save") == 0 ? tensors(mib, device) : NULL;
    char *bytes = strcmp(what, "write") == 0 ? calloc((size_t)mib, 1 << 20) : NULL;
    if (bytes)
        memset(bytes, 1, (size_t)mib << 20);
    TERN_SCOPE { /* what a device takes by itself */
        tern_item(tern_sum(tern_zeros(TERN_SHAPE(1), TERN_F32, device)));
        tern_synchronize(device);
    }
    double least = 1e30, before = clock_own_peak_memory();
    for (long i = 0; i < (is_peak ? 1 : number); i++) {
        double start = clock_seconds();
        failed |= turn(what, path, dict, bytes, (size_t)mib << 20, device);
        double spent = clock_seconds() - start;
        least = spent < least ? spent : least;
    }
    tern_state_dict_free(dict);
    free(bytes);
    if (failed)
        fprintf(stderr, "bench_files: %s\n", tern_last_error());
    printf("%g\n", is_peak ? clock_own_peak_memory() - before : least);
    return failed;
}
