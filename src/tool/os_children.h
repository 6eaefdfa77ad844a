/* os_children.h -- children of `tern doctor`, which a driver may kill or keep. */
#ifndef TERN_TOOL_OS_CHILDREN_H
#define TERN_TOOL_OS_CHILDREN_H
#include <stdbool.h>
#include <stddef.h>

typedef struct tool_child {
    long pid;
    int socket; /* the parent's end, or in the child its own */
} tool_child;

/* Whether the system has such children at all: Windows has no fork. */
bool tool_has_children(void);
/* True in the child, which ends with its parent, leaves no core, and prints nothing; c->pid < 0
 * where there is none. routes: TERN_DOCTOR there, "" for none, NULL for "off". */
bool tool_child_start(tool_child *c, const char *routes);
/* What it ended by; it is killed where it still runs. */
int tool_child_end(tool_child *c);
/* That in words. */
void tool_child_describe_end(int status, char *text, size_t bytes);
/* From the child: ends it, past what a driver does at exit. */
_Noreturn void tool_child_leave(void);

/* One message: whether it went. */
bool tool_child_send(int socket, const void *data, size_t bytes);
/* One message within so many seconds (0: however long it takes): its bytes, 0 at the end, -1 where
 * time ran out. */
long tool_child_receive(int socket, int seconds, void *to, size_t bytes);

#endif
