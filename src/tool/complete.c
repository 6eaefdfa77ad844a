/* complete.c -- tern --complete: prints what can follow on a command line; called by the shells'
 * completion scripts. */
#include "tool/tool.h"
#include <string.h>

static void complete_devices(void)
{
    static const char *const kinds[] = {"opencl", "cuda"};
    puts("cpu\nauto");
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < tern_device_count(kinds[k]); i++)
            printf("%s:%d\n", kinds[k], i);
}

int tool_complete(const tool_command *const *commands, int n, char **words, int count)
{
    const tool_command *command = NULL;
    const tool_option *before = NULL; /* the option whose value is next */
    for (int i = 0; i < n && count; i++)
        command = strcmp(commands[i]->name, words[0]) == 0 ? commands[i] : command;
    if (!command) {
        for (int i = 0; i < n && !count; i++)
            puts(commands[i]->name);
        puts(count ? "" : "--help\n--version");
        return TOOL_FINE;
    }
    int arguments = 0;
    for (int w = 1; w < count; w++) {
        const bool value = before != NULL;
        before = NULL;
        for (const tool_option *o = command->options; !value && o && o->name; o++)
            if (o->value && strcmp(o->name, words[w]) == 0)
                before = o;
        arguments += !value && words[w][0] != '-';
    }
    if (before)
        return TOOL_FINE;
    for (const tool_option *o = command->options; o && o->name; o++)
        puts(o->name);
    puts("--help");
    if (arguments >= command->most)
        return TOOL_FINE;
    for (const char *const *word = command->words; word && *word; word++)
        puts(*word);
    if (command->device)
        complete_devices();
    return TOOL_FINE;
}
