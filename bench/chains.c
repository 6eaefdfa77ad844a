/* chains.c -- four elementwise operations, recorded: as one command and as four, in turns.
 *
 *   chains [DEVICE [ROUNDS]]
 *
 * A round replays one recording, then the other, until both have taken about a hundredth of a second; the
 * least of all rounds counts, as other programs have the processors too. The results are compared. */
#include "clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>

typedef struct side {
    tern_graph *graph;
    tern_tensor *y;
    double least; /* seconds of a replay */
} side;

static const tern_shape shapes[] = {{2, {1024, 128}}, {2, {8192, 768}}};
static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16, TERN_F16};

static bool record(side *s, const char *device, tern_tensor *x, tern_tensor *w, bool apart)
{
    s->least = 1e9;
    s->graph = tern_graph_new_with(device, &(tern_graph_options){.no_fusion = apart});
    TERN_CAPTURE (s->graph)
        TERN_SCOPE
            s->y = tern_keep(tern_relu(tern_add(tern_mul(tern_add(x, w), x), w)));
    return tern_graph_replay(s->graph) == TERN_OK && tern_synchronize(device) == TERN_OK;
}

static void replay(side *s, const char *device)
{
    const double begin = clock_seconds();
    int n = 0;
    do {
        for (int i = 0; i < 4; i++, n++)
            tern_graph_replay(s->graph);
        tern_synchronize(device);
    } while (clock_seconds() - begin < 0.01);
    const double each = (clock_seconds() - begin) / n;
    s->least = each < s->least ? each : s->least;
}

/* A row of the table; false: the bits differ, or something failed. */
static bool measure(const char *device, tern_shape shape, tern_dtype dtype, int rounds)
{
    side one, four;
    tern_tensor *x = tern_to_dtype(tern_randn(shape, TERN_F32, device), dtype);
    tern_tensor *w = tern_to_dtype(tern_randn(shape, TERN_F32, device), dtype);
    if (!record(&one, device, x, w, false) || !record(&four, device, x, w, true))
        return false;
    for (int i = 0; i < rounds; i++) {
        replay(&one, device);
        replay(&four, device);
    }
    const bool same = tern_equal(one.y, four.y);
    printf("%-9s %5lld x %-4lld %10.4f %10.4f %6.2f   %s\n", tern_dtype_name(dtype),
           (long long)shape.dims[0], (long long)shape.dims[1], four.least * 1e3, one.least * 1e3,
           four.least / one.least, same ? "the same bits" : "other bits");
    tern_graph_free(one.graph);
    tern_graph_free(four.graph);
    tern_release(one.y);
    tern_release(four.y);
    return same;
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "cpu";
    const int rounds = argc > 2 ? atoi(argv[2]) : 20;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%s, ms\n%-9s %12s %10s %10s %6s\n", device, "type", "shape", "four", "one", "ratio");
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            TERN_SCOPE
                if (!measure(device, shapes[i], dtypes[t], rounds))
                    return fprintf(stderr, "chains: %s\n", tern_last_error()), 1;
    return 0;
}
