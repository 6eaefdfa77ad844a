/* tool.h -- what the commands of `tern` share: options, exit codes, texts. */
#ifndef TERN_TOOL_TOOL_H
#define TERN_TOOL_TOOL_H
#include <stdio.h>
#include <tern/tern.h>

/* Exit codes: success, failure, wrong usage. */
enum { TOOL_FINE = 0, TOOL_WRONG = 1, TOOL_USAGE = 2 };

/* An option of a command; the one non-NULL pointer of text, number and flag receives its value. */
typedef struct tool_option {
    const char *name, *value; /* for example "--limit" and "SECONDS"; value NULL: the option has
                                 none */
    const char *help;
    const char **text;
    int *number;
    bool *flag;
} tool_option;

/* The heading under which `tern` without arguments lists a command. */
typedef enum tool_part { TOOL_FILES, TOOL_BEGIN, TOOL_MACHINE, TOOL_INSTALLATION } tool_part;

typedef struct tool_command {
    const char *name, *arguments, *summary;
    const char *example; /* example that `tern` without arguments prints; NULL: "tern NAME" */
    tool_part part;
    const char *const
        *words;       /* possible first arguments, for completion, ending with NULL; NULL: a file */
    bool device;      /* the first argument is a device */
    const char *more; /* paragraphs of --help */
    int most;         /* maximal number of arguments that are no options */
    const tool_option *options; /* ends with an option without a name; NULL: none */
    int (*run)(const char *const *words, int n);
} tool_command;
extern const tool_command tool_devices, tool_doctor, tool_bench, tool_tune, tool_cache,
    tool_summary, tool_environment, tool_new, tool_show, tool_convert;

/* Writes to out the cards below folder (/sys/bus/pci/devices) that no driver offers as a device,
 * and what to install for each; returns their number. */
int tool_missing_drivers(const char *folder, FILE *out);
/* Prints the words that can follow a command line (words: those after "tern"), one per line, for a
 * shell's completion. */
int tool_complete(const tool_command *const *commands, int n, char **words, int count);

/* Prints "tern: ..." to stderr and returns code. */
int tool_fail(int code, const char *format, ...) TERN_PRINTF_(2, 3);
/* Returns the name of the running command, for example "bench". */
const char *tool_command_name(void);
/* Returns the library's last error without the function's name, which means nothing to the user of
 * a command. */
const char *tool_error(void);
/* Calls tool_fail with the command's name and tool_error(). */
int tool_fail_with_error(void);

/* Returns the value of an environment variable that the library reads, or NULL if it is not set. */
const char *tool_env(const char *name);

/* Writes a size such as "3.2 GiB" or "12 B" to text and returns text. */
const char *tool_bytes(double bytes, char text[32]);
/* Writes a shape such as "[2, 3]" to text and returns text. */
const char *tool_shape(tern_shape shape, char text[128]);
const char *tool_type_name(tern_device_type type);
/* Creates the parent folders of a path. */
void tool_make_folders(const char *path);
/* Returns the fraction, 0 to 1, of the processors' time that other programs use, measured while
 * this program sleeps. */
double tool_others(void);
/* Prints a warning, ending with `what`, if other programs use so much that timings suffer; returns
 * whether it did. */
bool tool_warn_of_others(const char *what);
/* Returns the seconds of a monotonic clock. */
double tool_now(void);

#endif
