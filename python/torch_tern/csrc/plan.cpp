/* plan.cpp -- matches PyTorch's schemas with tern's signatures, by names, kinds and positions. */
#include "plan.h"
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace torch_tern
{

using c10::TypeKind;

struct Row {
    std::vector<tern_parameter> parameters;
};

static const Row &row_of(const tern_named_op *op)
{
    static std::unordered_map<const tern_named_op *, Row> rows;
    auto found = rows.find(op);
    if (found != rows.end())
        return found->second;
    tern_parameter parameters[TERN_MAX_PARAMETERS];
    const int n = tern_named_op_parameters(op, parameters, TERN_MAX_PARAMETERS);
    return rows[op] = {std::vector<tern_parameter>(parameters, parameters + std::max(n, 0))};
}

/* How many tensors a signature returns; -1 for a list. */
static int results_of(const tern_named_op *op)
{
    std::string text = tern_named_op_signature(op);
    text = text.substr(text.rfind("->") + 2);
    if (text.find("Tensor[]") != std::string::npos)
        return -1;
    int n = 0;
    for (size_t at = 0; (at = text.find("Tensor", at)) != std::string::npos; at += 6)
        n++;
    return n;
}

static c10::TypePtr without_optional(const c10::TypePtr &type)
{
    auto optional = type->cast<c10::OptionalType>();
    return optional ? optional->getElementType() : type;
}

static bool is_any_of(const c10::TypePtr &type, std::initializer_list<TypeKind> kinds)
{
    return std::find(kinds.begin(), kinds.end(), type->kind()) != kinds.end();
}

static bool is_list_of(const c10::TypePtr &type, std::initializer_list<TypeKind> kinds)
{
    auto list = type->cast<c10::ListType>();
    return list && is_any_of(without_optional(list->getElementType()), kinds);
}

/* Whether a parameter can take the argument, and how. */
static bool fits(const c10::Argument &argument, const tern_parameter &parameter, Take *take)
{
    const c10::TypePtr type = without_optional(argument.type());
    *take = Take::value;
    switch (parameter.kind) {
    case TERN_PARAMETER_TENSOR:
        return is_any_of(type, {TypeKind::TensorType});
    case TERN_PARAMETER_TENSORS:
        return is_list_of(type, {TypeKind::TensorType});
    case TERN_PARAMETER_INT:
        return is_any_of(type, {TypeKind::IntType, TypeKind::SymIntType});
    case TERN_PARAMETER_INTS:
        return is_list_of(type, {TypeKind::IntType, TypeKind::SymIntType}) ||
               is_any_of(type, {TypeKind::IntType, TypeKind::SymIntType});
    case TERN_PARAMETER_REAL:
        return is_any_of(type, {TypeKind::FloatType, TypeKind::NumberType});
    case TERN_PARAMETER_REALS:
        return is_list_of(type, {TypeKind::FloatType});
    case TERN_PARAMETER_BOOL:
        return is_any_of(type, {TypeKind::BoolType});
    case TERN_PARAMETER_SCALAR:
        if (is_any_of(type, {TypeKind::TensorType}))
            *take = Take::number;
        return is_any_of(type, {TypeKind::TensorType, TypeKind::NumberType, TypeKind::FloatType,
                                TypeKind::IntType, TypeKind::BoolType});
    case TERN_PARAMETER_TEXT:
        if (argument.name() == "reduction" && is_any_of(type, {TypeKind::IntType})) {
            *take = Take::reduction;
            return true;
        }
        return is_any_of(type, {TypeKind::StringType});
    case TERN_PARAMETER_DTYPE:
        return argument.name() == "dtype";
    }
    return false;
}

/* tern's name of an argument. */
static std::string parameter_name(const std::string &base, const std::string &argument)
{
    if (base == "embedding" && argument == "indices")
        return "input";
    return argument == "self" ? "input" : argument;
}

/* Which parameter each argument goes to: that of its name, else that of its position; -1: none. */
static std::vector<int> match(const c10::FunctionSchema &schema, const std::string &base, int n_in,
                              const Row &row)
{
    static const std::unordered_set<std::string> by_name_only = {
        "generator",     "memory_format", "layout", "pin_memory",
        "half_to_float", "non_blocking",  "alpha"};
    std::vector<bool> taken(row.parameters.size());
    std::vector<int> places((size_t)n_in, -1);
    Take take;
    for (int i = 0; i < n_in; i++) {
        const auto &argument = schema.arguments()[(size_t)i];
        for (size_t j = 0; j < row.parameters.size() && places[(size_t)i] < 0; j++)
            if (!taken[j] && parameter_name(base, argument.name()) == row.parameters[j].name &&
                fits(argument, row.parameters[j], &take)) {
                places[(size_t)i] = (int)j;
                taken[j] = true;
            }
    }
    for (int i = 0; i < std::min(n_in, (int)row.parameters.size()); i++) {
        const auto &argument = schema.arguments()[(size_t)i];
        const auto &parameter = row.parameters[(size_t)i];
        if (places[(size_t)i] < 0 && !taken[(size_t)i] && !argument.kwarg_only() &&
            !parameter.by_name && !by_name_only.count(argument.name()) &&
            fits(argument, parameter, &take)) {
            places[(size_t)i] = i;
            taken[(size_t)i] = true;
        }
    }
    return places;
}

static bool make_plan(const tern_named_op *op, const c10::FunctionSchema &schema,
                      const std::string &base, int n_in, Plan *plan)
{
    const Row &row = row_of(op);
    const std::vector<int> places = match(schema, base, n_in, row);
    std::vector<bool> taken(row.parameters.size());
    plan->op = op;
    for (int i = 0; i < n_in; i++) {
        const auto &argument = schema.arguments()[(size_t)i];
        const int place = places[(size_t)i];
        if (place < 0) {
            const bool means_nothing =
                argument.name() == "half_to_float" || argument.name() == "non_blocking";
            if (!argument.default_value() && !means_nothing)
                return false;
            plan->unused.push_back(i);
            continue;
        }
        const auto &parameter = row.parameters[(size_t)place];
        Bound bound{i, parameter.name, Take::value, parameter.kind};
        fits(argument, parameter, &bound.take);
        plan->numbers += bound.take == Take::number;
        plan->bound.push_back(bound);
        taken[(size_t)place] = true;
    }
    for (size_t j = 0; j < row.parameters.size(); j++)
        if (row.parameters[j].required && !taken[j])
            return false;
    return true;
}

/* The names under which tern may have an operation. */
static std::vector<std::string> names_of(const std::string &base)
{
    static const std::unordered_map<std::string, std::string> others = {
        {"_softmax", "softmax"},
        {"_log_softmax", "log_softmax"},
        {"_cat", "cat"},
        {"_adaptive_avg_pool2d", "nn.functional.adaptive_avg_pool2d"},
        {"_adaptive_avg_pool3d", "nn.functional.adaptive_avg_pool3d"},
        {"_cdist_forward", "cdist"},
    };
    auto other = others.find(base);
    if (other != others.end())
        return {other->second};
    std::vector<std::string> names = {base, "nn.functional." + base};
    if (base.rfind("linalg_", 0) == 0)
        names.push_back("linalg." + base.substr(7));
    if (base.rfind("special_", 0) == 0) {
        names.push_back("special." + base.substr(8));
        names.push_back(base.substr(8));
    }
    return names;
}

std::vector<Plan> plans_for(const c10::FunctionSchema &schema, const std::string &base, int n_in,
                            int n_results)
{
    std::vector<Plan> plans;
    for (const auto &name : names_of(base))
        for (auto *op = tern_op_by_name(name.c_str()); op; op = tern_named_op_next(op)) {
            Plan plan;
            if (results_of(op) >= n_results && make_plan(op, schema, base, n_in, &plan))
                plans.push_back(std::move(plan));
        }
    std::stable_sort(plans.begin(), plans.end(), [](const Plan &a, const Plan &b) {
        return a.numbers != b.numbers ? a.numbers > b.numbers : a.bound.size() < b.bound.size();
    });
    return plans;
}

bool is_default(const c10::Argument &argument, const c10::IValue &value)
{
    if (value.isNone())
        return true;
    const std::string &name = argument.name();
    if (name == "half_to_float" || name == "non_blocking")
        return value.isBool() && !value.toBool();
    if (name == "layout" || name == "pin_memory" || name == "device")
        return true;
    if (name == "memory_format")
        return value.toInt() == (int64_t)at::MemoryFormat::Contiguous ||
               value.toInt() == (int64_t)at::MemoryFormat::Preserve;
    if (!argument.default_value())
        return false;
    const c10::IValue &by_default = *argument.default_value();
    if (by_default.isScalar() && value.isScalar())
        return !value.isComplexDouble() &&
               by_default.toScalar().toDouble() == value.toScalar().toDouble();
    if (by_default.isIntList() && value.isIntList())
        return by_default.toIntVector() == value.toIntVector();
    return by_default.isNone() == value.isNone() && by_default.isString() && value.isString() &&
           by_default.toStringRef() == value.toStringRef();
}

} // namespace torch_tern
