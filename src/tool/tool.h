/* tool.h -- what the commands of `tern` share: their options, exit codes, texts, children. */
#ifndef TERN_TOOL_TOOL_H
#define TERN_TOOL_TOOL_H
#include <stdio.h>
#include <tern/tern.h>

/* What a command ends with: all is well, something is wrong, it was called wrongly. */
enum { TOOL_FINE = 0, TOOL_WRONG = 1, TOOL_USAGE = 2 };

/* An option; one of the pointers says where its value goes. */
typedef struct tool_option {
    const char *name, *value; /* "--limit", "SECONDS"; value NULL: it takes none */
    const char *help;
    const char **text;
    int *number;
    bool *flag;
} tool_option;

/* Under which heading `tern` alone shows a command. */
typedef enum tool_part { TOOL_FILES, TOOL_BEGIN, TOOL_MACHINE, TOOL_INSTALLATION } tool_part;

typedef struct tool_command {
    const char *name, *arguments, *summary;
    const char *example; /* a call of it, as `tern` alone shows it; NULL: "tern NAME" */
    tool_part part;
    const char *const
        *words;  /* what the first argument can be, for completion; ends with NULL; NULL: a file */
    bool device; /* the first argument is a device */
    const char *more;           /* paragraphs of --help */
    int most;                   /* words that are no options */
    const tool_option *options; /* ends with one that has no name; NULL: none */
    int (*run)(const char *const *words, int n);
} tool_command;
extern const tool_command tool_devices, tool_doctor, tool_bench, tool_tune, tool_cache,
    tool_summary, tool_environment, tool_new, tool_show, tool_convert;

/* Writes to out which cards below folder (/sys/bus/pci/devices) no driver shows as a device, and
 * what to install for each; returns how many. */
int tool_missing_drivers(const char *folder, FILE *out);
/* Prints the words that can follow those of a command line that begins behind "tern", for a shell's
 * completion: one a line. */
int tool_complete(const tool_command *const *commands, int n, char **words, int count);

/* "tern: ..." to stderr, and an exit code. */
int tool_fail(int code, const char *format, ...) TERN_PRINTF_(2, 3);
/* The command that runs: "bench". */
const char *tool_command_name(void);
/* The library's last error without the name of the function, which nobody who runs a command
 * called. */
const char *tool_error(void);
/* tool_fail with the command and that error. */
int tool_fail_with_error(void);

/* The value of a variable of the environment that the library reads; NULL where it is not set. */
const char *tool_env(const char *name);

/* "3.2 GiB", "12 B", into text. */
const char *tool_bytes(double bytes, char text[32]);
/* "[2, 3]" */
const char *tool_shape(tern_shape shape, char text[128]);
const char *tool_type_name(tern_device_type type);
/* Those above a file. */
void tool_make_folders(const char *path);
/* Which part of the processors others take, 0 to 1, as this program waits. */
double tool_others(void);
/* Prints so where it matters to times, and what follows. */
bool tool_warn_of_others(const char *what);
/* Seconds of a clock that only grows. */
double tool_now(void);

#endif
