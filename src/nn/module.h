/* module.h -- the inside of a module; layers are written against tern/nn.h and need none of it. */
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
    MEMBER_COMPUTED /* found as a parameter is, but made of others before each forward */
} tern_member_kind;

typedef struct tern_member tern_member;

/* What a computed member is, from the module's members of its name and a suffix. */
typedef tern_tensor *(*tern_compute)(tern_module *m, tern_member *member);
typedef struct tern_formula {
    tern_compute compute;
    int dim, iterations;
    double eps;
    /* What the parts of these suffixes become once the run that it was computed for went well. */
    struct tern_next_part {
        const char *suffix;
        tern_tensor *x; /* or NULL */
    } next[2];
} tern_formula;

/* A child, a parameter or a buffer under its name, in the order they were added. */
struct tern_member {
    char *name;
    tern_member_kind kind;
    tern_module *child;
    tern_tensor *tensor; /* NULL for one that is absent */
    bool passing;        /* a buffer that is not part of the state_dict */
    tern_formula formula;
};

typedef enum tern_hook_kind {
    HOOK_FORWARD_PRE,
    HOOK_FORWARD,
    HOOK_BACKWARD_PRE,
    HOOK_BACKWARD
} tern_hook_kind;

/* What is called around a module's run. */
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

/* What runs a module in its own way, hooks and computed members with it: one that is sharded. The
 * module's, which ends it; such a module is not copied. */
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
    void *(*copy_data)(const void *data, tern_module *copy); /* or: */
    size_t data_bytes;                                       /* copied as they are */
    tern_module *parent;
    uint64_t number;                  /* no other module has or had it */
    tern_module *listed, **listed_at; /* all modules (running_modules.c) */
    bool training;
    bool numbered;         /* children are named by their places: "0", "1", ... */
    bool shows_parameters; /* printed with its parameters, not only its children */
    bool computes;         /* some member is computed */
    bool takes_inplace;    /* it may be made to write into its input ... */
    bool hides_inplace;    /* (which is not printed) */
    bool inplace;          /* ... and was */
    tern_member *members;
    int count, capacity;
    tern_module_hook_entry *hooks; /* in the order they came in */
    tern_module_around *around;    /* NULL: it runs as it is */
    int last_hook;
    int height;                   /* levels of modules below */
    _Atomic(tern_life *) life;    /* for graphs, which may outlive the module */
    struct tern_cast_list *casts; /* of its weights, which autocast makes together; or NULL */
};

/* ---- what nn calls of amp ------------------------------------------------------------------ */

typedef struct tern_amp_functions {
    /* Around the run of an outermost module within a block of autocast: casts the weights that the
     * module is known to ask for; notes which it asked for. */
    tern_status (*casts_begin)(tern_module *m);
    void (*casts_end)(tern_module *m);
    /* Gives up a module's list; NULL is allowed. */
    void (*casts_free)(struct tern_cast_list *casts);
} tern_amp_functions;

/* The functions of amp/, which registers them with the first block of autocast; NULL before. */
extern const tern_amp_functions *_Atomic tern_from_amp;

/* m is NULL from here on if it was freed, which is an error. */
#define TERN_MODULE_GIVEN(m, function) TERN_GIVEN(m, "module", function)

/* Modules are visited by recursion: so many levels there may be, as in PyTorch. */
enum { TERN_NN_MOST_LEVELS = 1000 };

/* The member of that kind at a path of names and dots; NULL after an error that names function and
 * lists the names there are. */
tern_member *tern_nn_member(const tern_module *m, const char *path, tern_member_kind kind,
                            const char *function);
/* A name has no dots, which separate the names of a path, and is unique in its module. */
tern_status tern_nn_check_name(const tern_module *self, const char *name, const char *kind,
                               const char *function);
/* Whether x may be the parameter called name. */
tern_status tern_nn_check_parameter(const tern_tensor *x, const char *name, const char *function);
/* Whether child may come to stand below self. */
tern_status tern_nn_check_child(const tern_module *self, const tern_module *child,
                                const char *function);
/* Whether that would be too many levels. */
tern_status tern_nn_check_levels(const tern_module *self, const tern_module *child,
                                 const char *function);
/* After a child of m came or went. */
void tern_nn_count_levels(tern_module *m);
/* Makes an error of a NULL that m gave without recording one since there were that many failures:
 * its code may be the user's. */
tern_status tern_nn_check_result(const tern_module *m, tern_tensor *const *out, int k,
                                 uint64_t failures);
/* Run m with its hooks around it. */
tern_status tern_nn_run_hooked(tern_module *m, tern_module_run run, tern_tensor *const *in, int n,
                               tern_tensor **out, int k);
void tern_nn_free_hooks(tern_module *m);
/* Room for one more; the new member is all zeros but for its name and kind. NULL: no memory. */
tern_member *tern_nn_new_member(tern_module *self, const char *name, tern_member_kind kind);
/* Take a member out of its module's list; what it held is the caller's. */
void tern_nn_drop_member(tern_module *self, int i);

/* ---- computed members (parametrization.c) -------------------------------------------------- */
/* Work out all of m's; before each forward. */
tern_status tern_nn_compute_members(tern_module *m);
/* After it: parts take the values that the formulas have for them if it went well, which the result
 * says too. */
tern_status tern_nn_settle_members(tern_module *m, tern_status status);
tern_tensor *tern_nn_part(tern_module *m, const tern_member *member, const char *suffix);
tern_status tern_nn_add_part(tern_module *m, const char *name, const char *suffix,
                             tern_member_kind kind, tern_tensor *x);
/* The parameter `name`, which is to become a computed one; NULL after an error. */
tern_tensor *tern_nn_to_compute(tern_module *m, const char *name, int dim, const char *function);
/* It becomes one, and is worked out; NULL after an error, being what it was. */
tern_module *tern_nn_set_formula(tern_module *m, const char *name, tern_formula formula);
/* It becomes a parameter with the value it has; the parts called by suffixes (NULL-ended) go. */
tern_module *tern_nn_remove_formula(tern_module *m, const char *name, tern_compute compute,
                                    const char *const *suffixes, const char *function);

#endif
