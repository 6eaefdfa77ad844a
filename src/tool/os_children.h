/* os_children.h -- child processes of `tern doctor`, which a driver may crash or hang. */
#ifndef TERN_TOOL_OS_CHILDREN_H
#define TERN_TOOL_OS_CHILDREN_H
#include <stdbool.h>
#include <stddef.h>

typedef struct tool_child {
    long pid;
    int socket; /* the parent's end of the socket pair, in the child its own */
} tool_child;

/* Whether the system can start such children; Windows has no fork. */
bool tool_has_children(void);
/* Starts a child and returns true in the child, which dies with its parent, writes no core file and
 * prints nothing. c->pid < 0 after an error. routes: the value of TERN_DOCTOR in the child, "" for
 * none, NULL for "off". */
bool tool_child_start(tool_child *c, const char *routes);
/* Kills the child if it still runs, and returns its exit status. */
int tool_child_end(tool_child *c);
/* Describes that status in words. */
void tool_child_describe_end(int status, char *text, size_t bytes);
/* Ends the child without running a driver's exit handlers. */
_Noreturn void tool_child_leave(void);

/* Sends one message; returns whether it was sent. */
bool tool_child_send(int socket, const void *data, size_t bytes);
/* Receives one message within `seconds` (0: no limit); returns its number of bytes, 0 at the end,
 * -1 after the time limit. */
long tool_child_receive(int socket, int seconds, void *to, size_t bytes);

#endif
