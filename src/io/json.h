/* json.h -- the outer object of a JSON text, member by member, without a tree of it. */
#ifndef TERN_IO_JSON_H
#define TERN_IO_JSON_H
#include "base/error.h"
#include <jansson.h>

/* A member: its name, and the bytes of its value, which were not looked at but for their end. */
typedef struct io_member {
    const char *key;   /* ends in a zero */
    const char *value; /* of n bytes */
    size_t n;
    int depth; /* of brackets in it */
} io_member;

typedef struct io_json {
    const char *text; /* of n bytes */
    size_t n;
    /* What is wrong, and at which byte of the text; gives the status. */
    tern_status (*bad)(void *user, size_t at, const char *what);
    tern_status (*member)(void *user, const io_member *m);
    void *user;
} io_json;

/* Calls member for each; an error of its ends the walk. */
tern_status io_json_walk(const io_json *json);
/* The value of a member, by jansson: NULL after json->bad. A whole number is of digits alone. */
json_t *io_json_value(const io_json *json, const io_member *m);

#endif
