/* environment.c -- tern env: the environment variables that the library reads, and errors in those
 * that are set. */
#include "tool/tool.h"
#include <string.h>

static bool only_set;

static const tool_option options[] = {
    {"--set", NULL, "list only variables that are set", .flag = &only_set},
    {0},
};

const char *tool_env(const char *name)
{
    tern_env_info info;
    for (int i = 0; tern_env_at(i, &info); i++)
        if (strcmp(info.name, name) == 0)
            return info.value;
    return NULL;
}

/* Prints "0|1" as "0, 1". */
static void print_values(const char *values)
{
    for (const char *v = values; *v; v++)
        if (*v == '|')
            fputs(", ", stdout);
        else
            putchar(*v);
}

static void print_variable(const tern_env_info *v)
{
    printf("%-28s  ", v->name);
    if (v->value)
        printf("%s  (from the environment)\n", *v->value ? v->value : "\"\"");
    else
        printf("not set  (by default: %s)\n", v->by_default);
    if (*v->description) {
        printf("    %s Values: ", v->description);
        print_values(v->values);
        puts(".");
    }
    if (*v->problem)
        printf("    wrong: %s\n", v->problem);
}

static int run(const char *const *words, int n)
{
    tern_env_info info;
    int wrong = 0, found = 0;
    for (int i = 0; tern_env_at(i, &info); i++) {
        wrong += *info.problem != '\0';
        if ((only_set && !info.value) || (n > 0 && strcmp(info.name, words[0]) != 0))
            continue;
        print_variable(&info);
        found++;
    }
    if (n > 0 && !found)
        return tool_fail(TOOL_WRONG, "env: tern has no variable %s; `tern env` lists all",
                         words[0]);
    if (n == 0 && !found)
        puts("none is set");
    return wrong ? TOOL_WRONG : TOOL_FINE;
}

const tool_command tool_environment = {
    .name = "env",
    .arguments = "[VARIABLE]",
    .summary = "List the environment variables that tern reads, and their values",
    .more = "For each variable the list has its value, or what holds without one, what it is for, "
            "and what is\n"
            "wrong with the value. Variables TERN_... that tern does not know come last. The "
            "status is 1 where\n"
            "something is wrong.\n",
    .part = TOOL_INSTALLATION,
    .most = 1,
    .options = options,
    .run = run,
};
