/* busy.c -- measures whether other programs use the processors, which would distort timings. */
#include "tool/tool.h"
#include "base/os.h"

/* Reads the ticks of all processors: busy ones, and all. */
static bool read_ticks(double *busy, double *all)
{
    unsigned long long user, nice, system, idle, wait;
    FILE *file = tern_os_fopen("/proc/stat", "r");
    bool read = file && fscanf(file, "cpu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
                               &wait) == 5;
    if (file)
        fclose(file);
    if (!read)
        return false;
    *busy = (double)(user + nice + system);
    *all = *busy + (double)(idle + wait);
    return true;
}

double tool_others(void)
{
    double busy[2], all[2];
    if (!read_ticks(&busy[0], &all[0]))
        return 0;
    tern_os_sleep(300000000); /* 30 ticks of each processor */
    if (!read_ticks(&busy[1], &all[1]) || all[1] <= all[0])
        return 0;
    return (busy[1] - busy[0]) / (all[1] - all[0]);
}

bool tool_warn_of_others(const char *what)
{
    double others = tool_others();
    if (others < 0.15)
        return false;
    printf("the machine is busy: other programs take %.0f %% of its processors, %s\n", 100 * others,
           what);
    fflush(stdout);
    return true;
}
