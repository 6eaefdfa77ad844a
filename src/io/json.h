/* json.h -- reads the outer object of a JSON text member by member, without building a tree. */
#ifndef TERN_IO_JSON_H
#define TERN_IO_JSON_H
#include "base/error.h"
#include <jansson.h>

/* A member: its name, and the unparsed bytes of its value. */
typedef struct io_member {
    const char *key;   /* NUL-terminated */
    const char *value; /* n bytes */
    size_t n;
    int depth; /* nesting depth of its brackets */
} io_member;

typedef struct io_json {
    const char *text; /* n bytes */
    size_t n;
    /* Records the error `what` at byte `at` of the text, and returns the status. */
    tern_status (*bad)(void *user, size_t at, const char *what);
    tern_status (*member)(void *user, const io_member *m);
    void *user;
} io_json;

/* Calls json->member for each member, until one returns an error. */
tern_status io_json_walk(const io_json *json);
/* Parses a member's value by jansson; NULL after json->bad. Numbers must be integers without a
 * sign. */
json_t *io_json_value(const io_json *json, const io_member *m);

#endif
