/* progress.c -- a report, and lines between its own. */
#include "progress.h"
#include "portable.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Before main: on a terminal tern shows a line while it compiles kernels, which the first run waits
 * for. A program of your own may set the variable at the beginning of main, or show such a line
 * itself (tern_on_compile). */
__attribute__((constructor)) static void show_compiling(void)
{
    if (isatty(STDERR_FILENO))
        setenv("TERN_PROGRESS", "1", 0);
}

tern_report *progress_begin(const char *unit, int64_t steps)
{
    tern_device_info d;
    const char *folder = getenv("EXAMPLES_REPORT");
    bool files = folder && *folder;
    if (tern_device_get_info(NULL, &d) != TERN_OK)
        return NULL;
    printf("on %s: %s (%s)\n", d.device, d.name, d.platform);
    return tern_report_new(
        files ? folder : NULL,
        &(tern_report_options){
            .steps = steps, .unit = unit, .csv = files, .svg = files, .tensorboard = files});
}

void progress_say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (isatty(STDOUT_FILENO))
        fputs("\r\033[K", stdout);
    vprintf(format, list);
    putchar('\n');
    fflush(stdout);
    va_end(list);
}
