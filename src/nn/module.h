/* module.h -- the inside of a module; layers are written against tern/nn.h and do not look here. */
#ifndef TERN_NN_MODULE_H
#define TERN_NN_MODULE_H
#include "base/error.h"
#include <tern/autograd.h>
#include <tern/nn.h>

typedef enum tern_member_kind { MEMBER_CHILD, MEMBER_PARAMETER, MEMBER_BUFFER } tern_member_kind;

/* A child, a parameter or a buffer under its name, in the order they were added. */
typedef struct tern_member {
    char *name;
    tern_member_kind kind;
    tern_module *child;
    tern_tensor *tensor; /* NULL for one that is absent */
} tern_member;

struct tern_module {
    char *name, *extra;
    tern_module_forward forward;
    tern_module_call call;
    void *data;
    void (*free_data)(void *data);
    tern_module *parent;
    bool training;
    tern_member *members;
    int count, capacity;
};

/* The member of that kind at a path of names and dots; NULL after an error that names function and
 * lists the names there are. */
const tern_member *tern_nn_member(const tern_module *m, const char *path, tern_member_kind kind,
                                  const char *function);

#endif
