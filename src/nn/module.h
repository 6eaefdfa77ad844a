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
    bool passing;        /* a buffer that is not part of the state_dict */
} tern_member;

struct tern_module {
    char *name, *extra;
    tern_module_forward forward;
    tern_module_call call;
    void *data;
    void (*free_data)(void *data);
    tern_module *parent;
    bool training;
    bool numbered;         /* children are named by their places: "0", "1", ... */
    bool shows_parameters; /* printed with its parameters, not only its children */
    tern_member *members;
    int count, capacity;
};

/* The member of that kind at a path of names and dots; NULL after an error that names function and
 * lists the names there are. */
tern_member *tern_nn_member(const tern_module *m, const char *path, tern_member_kind kind,
                            const char *function);
/* Whether x may be the parameter called name. */
tern_status tern_nn_check_parameter(const tern_tensor *x, const char *name, const char *function);
/* Whether child may come to stand below self. */
tern_status tern_nn_check_child(const tern_module *self, const tern_module *child,
                                const char *function);
/* Take a member out of its module's list; what it held is the caller's. */
void tern_nn_drop_member(tern_module *self, int i);

#endif
