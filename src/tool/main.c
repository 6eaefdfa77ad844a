/* main.c -- the program `tern`: its commands, their options and their help. */
#include "tool/tool.h"
#include "base/os.h"
#include "base/os_program.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const tool_command *const commands[] = {
    &tool_new,    &tool_summary, &tool_show,  &tool_convert, &tool_devices,
    &tool_doctor, &tool_tune,    &tool_bench, &tool_cache,   &tool_environment,
};
enum { COMMANDS = sizeof commands / sizeof *commands, MOST_WORDS = 4 };

int tool_fail(int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("tern: ", stderr);
    vfprintf(stderr, format, list);
    putc('\n', stderr);
    va_end(list);
    return code;
}

static const char *running; /* name of the running command */

const char *tool_command_name(void)
{
    return running;
}

const char *tool_error(void)
{
    const char *message = tern_last_error();
    const size_t n = strspn(message, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return strncmp(message, "tern_", 5) == 0 && strncmp(message + n, ": ", 2) == 0 ? message + n + 2
                                                                                   : message;
}

int tool_fail_with_error(void)
{
    return tool_fail(TOOL_WRONG, "%s: %s", running, tool_error());
}

const char *tool_bytes(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

const char *tool_shape(tern_shape shape, char text[128])
{
    size_t used = (size_t)snprintf(text, 128, "[");
    for (int d = 0; d < shape.ndim && used < 100; d++)
        used += (size_t)snprintf(text + used, 128 - used, "%s%lld", d ? ", " : "",
                                 (long long)shape.dims[d]);
    snprintf(text + used, 128 - used, "]");
    return text;
}

const char *tool_type_name(tern_device_type type)
{
    static const char *const names[] = {"?", "cpu", "gpu", "accelerator"};
    return (unsigned)type <= TERN_DEVICE_ACCELERATOR ? names[type] : names[0];
}

double tool_now(void)
{
    return 1e-9 * (double)tern_os_now();
}

void tool_make_folders(const char *path)
{
    char folder[4200];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = tern_os_plain_path(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        tern_os_mkdir(folder, 0700);
        *slash = '/';
    }
}

/* ---- help ---------------------------------------------------------------------------------- */

static int help(FILE *out)
{
    fputs("Usage: tern COMMAND [OPTIONS]\n\n", out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n`tern COMMAND --help` explains a command; `tern --version` prints the version.\n",
          out);
    return out == stdout ? TOOL_FINE : TOOL_USAGE;
}

/* Prints what `tern` without arguments shows: an example of each command, below its heading. */
static int show_screen(void)
{
    static const struct {
        tool_part part;
        const char *title;
    } parts[] = {{TOOL_BEGIN, "Begin"},
                 {TOOL_FILES, "Look at files"},
                 {TOOL_MACHINE, "Look at this machine"},
                 {TOOL_INSTALLATION, "Look at this installation"}};
    puts("tern " TERN_VERSION_TEXT
         ": tensors, autograd and training for C, on the cpu, OpenCL and CUDA");
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        printf("\n%s\n", parts[p].title);
        for (int i = 0; i < COMMANDS; i++) {
            const tool_command *c = commands[i];
            char plain[32];
            if (c->part != parts[p].part)
                continue;
            snprintf(plain, sizeof plain, "tern %s", c->name);
            printf("  %-30s  %s\n", c->example ? c->example : plain, c->summary);
        }
    }
    puts("\n`tern COMMAND --help` explains a command, `man tern` explains all of them.\n"
         "A program of your own: cc program.c $(pkg-config --cflags --libs tern)");
    return fflush(stdout) == 0 && !ferror(stdout)
               ? TOOL_FINE
               : tool_fail(TOOL_WRONG, "stdout: %s", strerror(errno));
}

static int help_of(const tool_command *c, FILE *out)
{
    char left[64];
    fprintf(out, "Usage: tern %s%s%s%s\n", c->name, c->options ? " [OPTIONS]" : "",
            *c->arguments ? " " : "", c->arguments);
    if (out == stderr)
        return TOOL_USAGE;
    fprintf(out, "\n%s.\n%s", c->summary, c->more);
    for (const tool_option *o = c->options; o && o->name; o++) {
        if (o == c->options)
            putc('\n', out);
        snprintf(left, sizeof left, "%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        fprintf(out, "  %-20s  %s\n", left, o->help);
    }
    return TOOL_FINE;
}

/* ---- options ------------------------------------------------------------------------------- */

static bool number_of(const char *text, int *number)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > INT_MAX)
        return false;
    *number = (int)value;
    return true;
}

/* Parses the option argv[*i] and its value, the next argument or the text after "="; returns
 * TOOL_FINE or TOOL_USAGE. */
static int take(const tool_command *c, char **argv, int argc, int *i)
{
    const char *word = argv[*i], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const tool_option *o = c->options;
    while (o && o->name && (strlen(o->name) != length || strncmp(o->name, word, length) != 0))
        o++;
    if (!o || !o->name)
        return tool_fail(TOOL_USAGE, "%s has no option %.*s; see `tern %s --help`", c->name,
                         (int)length, word, c->name);
    if (!o->value) {
        if (equals)
            return tool_fail(TOOL_USAGE, "%s takes no value", o->name);
        *o->flag = true;
        return TOOL_FINE;
    }
    if (!equals && *i + 1 == argc)
        return tool_fail(TOOL_USAGE, "%s needs %s", o->name, o->value);
    const char *value = equals ? equals + 1 : argv[++*i];
    if (o->text)
        *o->text = value;
    else if (!number_of(value, o->number))
        return tool_fail(TOOL_USAGE, "%s %s: a number from 0 on is expected", o->name, value);
    return TOOL_FINE;
}

static int run(const tool_command *c, int argc, char **argv)
{
    const char *words[MOST_WORDS];
    int n = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return help_of(c, stdout);
        if (argv[i][0] != '-') {
            if (n == c->most) {
                tool_fail(TOOL_USAGE, "%s: \"%s\" is one argument too many", c->name, argv[i]);
                return help_of(c, stderr);
            }
            words[n++] = argv[i];
        } else if (take(c, argv, argc, &i) != TOOL_FINE) {
            return TOOL_USAGE;
        }
    }
    running = c->name;
    int code = c->run(words, n);
    if (code == TOOL_USAGE)
        help_of(c, stderr);
    if (fflush(stdout) != 0 || ferror(stdout))
        return tool_fail(TOOL_WRONG, "stdout: %s", strerror(errno));
    return code;
}

int main(int argc, char **argv)
{
    tern_os_take_arguments(&argc, &argv);
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--version") == 0) {
        puts("tern " TERN_VERSION_TEXT);
        return TOOL_FINE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help(stdout);
    if (strcmp(name, "--complete") == 0)
        return tool_complete(commands, COMMANDS, argv + 2, argc - 2);
    if (argc < 2)
        return show_screen();
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return run(commands[i], argc - 2, argv + 2);
    if (*name)
        tool_fail(TOOL_USAGE, "there is no command \"%s\"", name);
    return help(stderr);
}
