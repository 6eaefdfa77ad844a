/* plan.h -- how the arguments of one operation of PyTorch's become those of one of tern's. */
#pragma once
#include "torch_tern.h"

namespace torch_tern
{

/* How an argument becomes a value. */
enum class Take : uint8_t {
    value,
    number,   /* a 0-dim tensor of the host that stands for a number */
    reduction /* 0, 1, 2 for "none", "mean", "sum" */
};

struct Bound {
    int argument;     /* of PyTorch's */
    const char *name; /* of tern's parameter */
    Take take;
    tern_parameter_kind kind;
};

struct Plan {
    const tern_named_op *op;
    std::vector<Bound> bound;
    std::vector<int> unused; /* arguments that tern's has no parameter for: must be defaults */
    int numbers = 0;         /* of arguments that are taken as numbers */
};

/* The plans for an operation, those first that want tensors to be numbers, then those that bind the
 * fewest arguments; empty where tern has none. n_in: the arguments before those named out. */
std::vector<Plan> plans_for(const c10::FunctionSchema &schema, const std::string &base, int n_in,
                            int n_results);
/* Whether an argument that no parameter takes has a value that means nothing. */
bool is_default(const c10::Argument &argument, const c10::IValue &value);

} // namespace torch_tern
