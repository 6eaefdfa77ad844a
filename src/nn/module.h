/* module.h -- internals of a module. Layers need only tern/nn.h. */
#ifndef TERN_NN_MODULE_H
#define TERN_NN_MODULE_H
#include "base/error.h"
#include "base/handle.h"
#include "base/life.h"
#include <tern/autograd.h>
#include <tern/nn.h>

typedef enum tern_member_kind {
    MEMBER_CHILD,
    MEMBER_PARAMETER,
    MEMBER_BUFFER,
    MEMBER_COMPUTED /* looked up like a parameter, but computed from other members before each
                       forward */
} tern_member_kind;

typedef struct tern_member tern_member;

/* Returns the value of a computed member, from the module's members of its name and a suffix. */
typedef tern_tensor *(*tern_compute)(tern_module *m, tern_member *member);
typedef struct tern_formula {
    tern_compute compute;
    int dim, iterations;
    double eps;
    /* New values of the members with these suffixes, which they take if the run succeeds. */
    struct tern_next_part {
        const char *suffix;
        tern_tensor *x; /* new value, or NULL if there is none */
    } next[2];
} tern_formula;

/* A child, parameter or buffer with its name. Members are in the order in which they were added. */
struct tern_member {
    char *name;
    tern_member_kind kind;
    tern_module *child;
    tern_tensor *tensor; /* NULL if absent */
    bool passing;        /* a buffer that is not in the state_dict */
    tern_formula formula;
};

typedef enum tern_hook_kind {
    HOOK_FORWARD_PRE,
    HOOK_FORWARD,
    HOOK_BACKWARD_PRE,
    HOOK_BACKWARD
} tern_hook_kind;

/* A function called around a module's run. */
typedef struct tern_module_hook_entry {
    struct tern_module_hook_entry *next;
    int id;
    tern_hook_kind kind;
    union {
        tern_module_forward_pre_hook forward_pre;
        tern_module_forward_hook forward;
        tern_module_backward_pre_hook backward_pre;
        tern_module_backward_hook backward;
    } call;
    void *user;
} tern_module_hook_entry;

typedef tern_status (*tern_module_run)(tern_module *m, tern_tensor *const *in, int n,
                                       tern_tensor **out, int k);

/* Replaces the run of a module with its hooks and computed members, for sharded modules. The module
 * owns it and calls `end` when it is freed. Such a module can't be copied. */
typedef struct tern_module_around {
    tern_status (*call)(tern_module *m, tern_module_run run, tern_tensor *const *in, int n,
                        tern_tensor **out, int k);
    void (*end)(struct tern_module_around *around);
} tern_module_around;

struct tern_module {
    tern_handle handle;
    char *name, *extra;
    tern_module_forward forward;
    tern_module_call call;
    void *data;
    void (*free_data)(void *data);
    void *(*copy_data)(const void *data, tern_module *copy); /* copies data; NULL to copy
                                                                data_bytes */
    size_t data_bytes;                                       /* bytes of data that a copy gets
                                                                unchanged */
    tern_module *parent;
    uint64_t number;                  /* unique, also among freed modules */
    tern_module *listed, **listed_at; /* list of all modules (running_modules.c) */
    bool training;
    bool numbered;         /* children are named by their positions: "0", "1", ... */
    bool shows_parameters; /* tern_nn_print shows its parameters, not only its children */
    bool computes;         /* some member is a computed one */
    bool takes_inplace;    /* it has an inplace form ... */
    bool hides_inplace;    /* (not printed) ... */
    bool inplace;          /* ... which is used */
    tern_member *members;
    int count, capacity;
    tern_module_hook_entry *hooks; /* in the order of registration */
    tern_module_around *around;    /* NULL if the module runs normally */
    int last_hook;
    int height;                   /* levels of modules below */
    _Atomic(tern_life *) life;    /* for graphs, which may outlive the module */
    struct tern_cast_list *casts; /* list of its weights, which autocast casts together, or NULL */
};

/* ---- functions of amp that nn calls ---------------------------------------------------------- */

typedef struct tern_amp_functions {
    /* Called around the run of an outermost module inside of autocast: casts_begin casts the
     * weights that the module's operations are known to use, casts_end records which ones they
     * used. */
    tern_status (*casts_begin)(tern_module *m);
    void (*casts_end)(tern_module *m);
    /* Frees a module's list, which may be NULL. */
    void (*casts_free)(struct tern_cast_list *casts);
} tern_amp_functions;

/* The functions of amp/, registered by the first block of autocast; NULL before that. */
extern const tern_amp_functions *_Atomic tern_from_amp;

/* Sets m to NULL after an error if it was freed. */
#define TERN_MODULE_GIVEN(m, function) TERN_GIVEN(m, "module", function)

/* Largest depth of nested modules, which recursive functions visit; PyTorch has a similar limit. */
enum { TERN_NN_MOST_LEVELS = 1000 };

/* Returns the member of that kind at a path of names and dots, or NULL after an error that starts
 * with `function` and lists the existing names. */
tern_member *tern_nn_member(const tern_module *m, const char *path, tern_member_kind kind,
                            const char *function);
/* Records an error if the name has dots, which separate the names of a path, or is not unique in
 * the module. */
tern_status tern_nn_check_name(const tern_module *self, const char *name, const char *kind,
                               const char *function);
/* Records an error if x can't be the parameter `name`. */
tern_status tern_nn_check_parameter(const tern_tensor *x, const char *name, const char *function);
/* Records an error if child can't be added below self. */
tern_status tern_nn_check_child(const tern_module *self, const tern_module *child,
                                const char *function);
/* Records an error if child makes more than TERN_NN_MOST_LEVELS levels. */
tern_status tern_nn_check_levels(const tern_module *self, const tern_module *child,
                                 const char *function);
/* Updates the heights of m and the modules above after a child was added or removed. */
void tern_nn_count_levels(tern_module *m);
/* Records an error if some out[i] is NULL and m, whose code may be the program's, has recorded none
 * since the count `failures`. */
tern_status tern_nn_check_result(const tern_module *m, tern_tensor *const *out, int k,
                                 uint64_t failures);
/* Runs m with its hooks. */
tern_status tern_nn_run_hooked(tern_module *m, tern_module_run run, tern_tensor *const *in, int n,
                               tern_tensor **out, int k);
void tern_nn_free_hooks(tern_module *m);
/* Appends a member with that name and kind; the rest is zero. Returns NULL without memory. */
tern_member *tern_nn_new_member(tern_module *self, const char *name, tern_member_kind kind);
/* Removes a member from its module. The caller owns the child and tensor that it had. */
void tern_nn_drop_member(tern_module *self, int i);

/* ---- computed members (parametrization.c) -------------------------------------------------- */
/* Computes all computed members of m; called before each forward. */
tern_status tern_nn_compute_members(tern_module *m);
/* Called after the forward: if status is TERN_OK, members take the formulas' new values. Returns
 * the first error. */
tern_status tern_nn_settle_members(tern_module *m, tern_status status);
tern_tensor *tern_nn_part(tern_module *m, const tern_member *member, const char *suffix);
tern_status tern_nn_add_part(tern_module *m, const char *name, const char *suffix,
                             tern_member_kind kind, tern_tensor *x);
/* Returns the parameter `name`, which can become a computed member, or NULL after an error. */
tern_tensor *tern_nn_to_compute(tern_module *m, const char *name, int dim, const char *function);
/* Makes the parameter `name` a computed member and computes it. Returns m, or NULL after an error
 * with m unchanged. */
tern_module *tern_nn_set_formula(tern_module *m, const char *name, tern_formula formula);
/* Makes the computed member `name` a parameter with its current value, and removes the members with
 * these suffixes (NULL-terminated). */
tern_module *tern_nn_remove_formula(tern_module *m, const char *name, tern_compute compute,
                                    const char *const *suffixes, const char *function);

#endif
