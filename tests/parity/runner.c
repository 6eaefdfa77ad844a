/* runner.c -- runs every case of every operation that tern has by name against PyTorch's results.
 *
 *   runner [--errors | --both | --kept] [--all | --forward] [--layout NAME] [--set CASES] [--op NAME]
 *          [--verbose] FOLDER DEVICE
 *
 * FOLDER has cases/ and unsupported.txt, the list of its exceptions; --set fresh reads FOLDER/fresh/ and fresh.txt, --set edges
 * FOLDER/edges/, fresh.txt and edges.txt; another CASES, a path with a slash, has these two and seeds.txt. By default the cpu
 * runs everything, other devices the forward cases of float32. --errors runs what PyTorch refuses instead, --both that too; then an exception
 * in the set's own list that no case of all needed is stale, and an error. --kept runs all while an
 * earlier error is recorded, which must not change a result. --layout transposed, permuted,
 * spaced or rows lays inputs and incoming gradients out otherwise in memory, which must not either; --layout incoming
 * incoming gradients alone, in each of these ways, and repeated ones; --layout lent the inputs on memory that is not tern's. */
#include "runner.h"
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 4 };

struct parity_run run;

/* Whether a failure is listed; it is counted there. */
static bool is_listed(const parity_file *file, const parity_case *c, const char *form,
                      const char *text)
{
    bool differs = false;
    int line = parity_listed(file, c, form, text, &differs);
    if (line < 0)
        return false;
    run.hits[line]++;
    *(differs ? &run.differ : &run.unsupported) += 1;
    return true;
}

static void fail(const parity_file *file, const parity_case *c, const char *form, const char *text)
{
    if (is_listed(file, c, form, text))
        return;
    run.failed++;
    if (run.op_failed++ >= SHOWN && !run.verbose)
        return;
    printf("FAIL %s case %d, %s %s %s: %s\n    ", file->op, c->number, form,
           tern_dtype_name(c->dtype), c->kind, text);
    for (int i = 0; i < c->n_arguments; i++) {
        const case_argument *a = &c->argument[i];
        printf("%s%s=", i ? ", " : "", a->value.name);
        for (int k = 0; k < a->numbers && k < 4; k++) {
            const stored_tensor *t = &file->tensor[a->number[k]];
            printf("%s%s(", k ? " " : "", tern_dtype_name(t->dtype));
            for (int d = 0; d < t->shape.ndim; d++)
                printf("%s%lld", d ? "," : "", (long long)t->shape.dims[d]);
            printf(")");
        }
        if (!a->numbers)
            printf("%s", a->text);
    }
    printf("\n");
}

/* Whether some operation of the name has this parameter. */
static bool has_parameter(const char *name, const char *parameter)
{
    tern_parameter parameters[TERN_MAX_PARAMETERS];
    for (const tern_named_op *op = tern_op_by_name(name); op; op = tern_named_op_next(op)) {
        int n = tern_named_op_parameters(op, parameters, TERN_MAX_PARAMETERS);
        for (int i = 0; i < n; i++)
            if (strcmp(parameters[i].name, parameter) == 0)
                return true;
    }
    return false;
}

static const char earlier[] = "an earlier error";

static void start_clean(void)
{
    tern_clear_error();
    if (run.kept)
        tern_fail(TERN_ERR_IO, "%s", earlier);
}

bool parity_call(const parity_file *file, const tern_value *values, int n, tern_tensor **out,
                 int *n_out, char *text, size_t size)
{
    tern_value given[CASE_ARGUMENTS];
    int count = 0;
    for (int i = 0; i < n; i++)
        if (values[i].kind != TERN_VALUE_NONE || has_parameter(file->op, values[i].name))
            given[count++] = values[i];
    start_clean();
    *n_out = tern_call_by_name(file->op, given, count, out, OUTS);
    if (*n_out < 0)
        snprintf(text, size, "refused: %s", tern_last_error());
    return *n_out >= 0;
}

bool parity_check(const parity_file *file, const char *what, const case_result *r, int i,
                  const tern_tensor *x, char *text, size_t size)
{
    char why[256];
    if (parity_close_to(x, file, r, why, sizeof why))
        return true;
    snprintf(text, size, "%s %d: %s", what, i, why);
    return false;
}

/* Operations whose second result says where the first one stands: among equals
 * any place will do. */
static bool chosen_alike(const parity_file *file, const parity_case *c, const tern_value *values,
                         tern_tensor *const *out)
{
    static const char *const choose[] = {"kthvalue", "median", "mode", "nanmedian", "topk"};
    char why[256];
    bool found = false, keepdim = strcmp(file->op, "topk") == 0;
    int dim = -1;
    for (size_t i = 0; i < sizeof choose / sizeof *choose; i++)
        found |= strcmp(file->op, choose[i]) == 0;
    for (int i = 0; i < c->n_arguments; i++) {
        if (strcmp(values[i].name, "dim") == 0)
            dim = (int)tern_scalar_to_int(values[i].as.scalar);
        if (strcmp(values[i].name, "keepdim") == 0)
            keepdim = tern_scalar_to_int(values[i].as.scalar) != 0;
    }
    tern_tensor *x = values[0].as.tensor;
    if (!found || tern_dtype_of(out[1]) != TERN_I64)
        return false;
    keepdim |= tern_dim(x) == 0;
    x = tern_gather(x, dim, keepdim ? out[1] : tern_unsqueeze(out[1], dim));
    return parity_close_to(keepdim ? x : tern_squeeze_dim(x, dim), file, &c->out[0], why,
                           sizeof why);
}

static bool forward(const parity_file *file, const parity_case *c, char *text, size_t size)
{
    tern_value values[CASE_ARGUMENTS];
    tern_tensor *list[OUTS], *out[OUTS];
    int n = parity_values(file, c, TERN_F32, run.device, run.layout, values, list), n_out;
    if (!parity_call(file, values, n, out, &n_out, text, size))
        return false;
    if (n_out != c->n_outs) {
        snprintf(text, size, "%d results, expected %d", n_out, c->n_outs);
        return false;
    }
    for (int i = 0; i < n_out; i++)
        if (!parity_check(file, "result", &c->out[i], i, out[i], text, size) &&
            !(i == 1 && chosen_alike(file, c, values, out)))
            return false;
    for (int i = 0; i < c->n_afters; i++)
        if (!parity_check(file, "afterwards argument", &c->after[i], c->after[i].argument,
                          values[c->after[i].argument].as.tensor, text, size))
            return false;
    return true;
}

/* The form in place; true where tern has none for these arguments. */
static bool in_place(const parity_file *file, const parity_case *c, char *text, size_t size)
{
    tern_value values[CASE_ARGUMENTS];
    tern_tensor *list[OUTS], *out = NULL;
    int n = parity_values(file, c, TERN_F32, run.device, run.layout, values, list);
    const stored_tensor *first = &file->tensor[c->argument[0].number[0]];
    for (int i = 0; i < first->shape.ndim; i++)
        if (first->stride.dims[i] == 0) /* elements at one place can't be written */
            values[0].as.tensor = tern_contiguous(values[0].as.tensor);
    start_clean();
    if (!parity_in_place(file, values, n, &out))
        return true;
    if (c->in_place_refused && out)
        snprintf(text, size, "not refused; PyTorch: %s", c->in_place_refused);
    if (!c->in_place_refused && !out)
        snprintf(text, size, "refused: %s", tern_last_error());
    if (c->in_place_refused || !out)
        return c->in_place_refused && !out;
    return parity_check(file, "in place", &c->in_place, 0, values[0].as.tensor, text, size);
}

static void run_form(const parity_file *file, const parity_case *c, const char *form,
                     bool (*function)(const parity_file *, const parity_case *, char *, size_t))
{
    char text[512] = "";
    bool passed = false;
    TERN_SCOPE {
        passed = function(file, c, text, sizeof text);
    }
    if (passed && run.kept && strcmp(tern_last_error(), earlier) != 0) {
        snprintf(text, sizeof text, "the error that was recorded is gone");
        passed = false;
    }
    run.cases++;
    run.passed += passed;
    run.float32 += function == forward && c->dtype == TERN_F32;
    run.gradients +=
        function == parity_gradient || function == parity_second || function == parity_incoming;
    if (!passed)
        fail(file, c, form, text);
    tern_clear_error();
}

/* A case that PyTorch refuses: tern must, and say why in the same numbers. */
static bool refusal(const parity_file *file, const parity_case *c, char *text, size_t size)
{
    tern_value values[CASE_ARGUMENTS];
    tern_tensor *list[OUTS], *out[OUTS];
    char lacking[128];
    int n = parity_values(file, c, TERN_F32, run.device, run.layout, values, list),
        n_out; /* as they are */
    bool called = parity_call(file, values, n, out, &n_out, text, size);
    for (int i = 0; called && i < n_out; i++) { /* a device finds a bad index when it gets there */
        size_t bytes = (size_t)tern_numel(out[i]) * tern_dtype_size(tern_dtype_of(out[i]));
        void *data = malloc(bytes + 1);
        tern_copy_to_host(out[i], (void *)data, bytes);
        free(data);
    }
    if (tern_last_status() == TERN_OK) {
        snprintf(text, size, "not refused; PyTorch: %s", c->error ? c->error : c->refused);
        return false;
    }
    if (run.verbose)
        printf("%s\n    PyTorch: %s\n    tern:    %s\n", file->op, c->error ? c->error : c->refused,
               tern_last_error());
    if (c->refused || parity_same_facts(c->error, tern_last_error(), lacking, sizeof lacking))
        return true;
    snprintf(text, size, "refused without %s: %s; PyTorch: %s", lacking, tern_last_error(),
             c->error);
    return false;
}

/* Operations whose result is of the layout: what is asked of the storage, and views that not every
 * layout has. */
static bool is_about_layout(const char *op)
{
    static const char *const names[] = {"as_strided", "view", "view_as", "as_strided_scatter"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op, names[i]) == 0)
            return true;
    return false;
}

/* Whether a result is float64, which the device does not have. */
static bool lacks_results(const parity_file *file, const parity_case *c)
{
    bool lacks = false;
    for (int i = 0; i < c->n_outs && run.lacks_f64; i++)
        lacks |= file->tensor[c->out[i].tensor].dtype == TERN_F64;
    return lacks;
}

/* Whether a case that is listed as unsupported is so. */
static bool is_lacking(const parity_file *file, const parity_case *c)
{
    char text[512] = "";
    bool passed = false;
    TERN_SCOPE {
        passed = (c->error || c->refused ? refusal : forward)(file, c, text, sizeof text);
    }
    tern_clear_error();
    return !passed;
}

static void run_case(const parity_file *file, const parity_case *c)
{
    int line = parity_unsupported(file, c);
    bool refuses = c->error || c->refused, in_place_too = c->has_in_place || c->in_place_refused;
    if (refuses ? !run.errors : run.errors && !run.both)
        return;
    if (c->dtype != TERN_F32 && !run.all && !refuses)
        return;
    if (lacks_results(file, c)) {
        run.left_out++;
        return;
    }
    if (line >= 0 && is_lacking(file, c)) {
        int forms = 1 + (c->n_grads > 0 && run.all);
        run.hits[line] += forms;
        run.cases += forms;
        run.unsupported += forms;
        return;
    }
    if (run.layout == PARITY_INCOMING) {
        if (c->n_grads > 0)
            run_form(file, c, "incoming", parity_incoming);
        return;
    }
    run_form(file, c, refuses ? "refusal" : "forward", refuses ? refusal : forward);
    if (c->n_grads > 0 && run.all)
        run_form(file, c, "gradient", parity_gradient);
    if (c->n_grads2 > 0 && run.all)
        run_form(file, c, "second", parity_second);
    if (in_place_too)
        run_form(file, c, "inplace", in_place);
}

static void run_op(const char *name)
{
    char folder[1024];
    parity_file file;
    int before = run.cases;
    if (run.set && strchr(run.set, '/'))
        snprintf(folder, sizeof folder, "%s", run.set);
    else
        snprintf(folder, sizeof folder, "%s/%s", run.folder, run.set ? run.set : "cases");
    if (run.layout != PARITY_AS_STORED && run.layout != PARITY_LENT && is_about_layout(name))
        return;
    if (!parity_open(&file, folder, name))
        return;
    run.op_failed = 0;
    for (int i = 0; i < file.n_cases; i++)
        run_case(&file, &file.cases[i]);
    if (run.op_failed > SHOWN && !run.verbose)
        printf("     %s: %d more\n", name, run.op_failed - SHOWN);
    run.ops += run.cases > before;
    parity_close(&file);
}

static parity_layout layout_named(const char *name)
{
    static const char *const names[] = {"stored", "transposed", "permuted", "spaced",
                                        "rows",   "incoming",   "lent"};
    for (int i = 0; i < 7; i++)
        if (strcmp(name, names[i]) == 0)
            return (parity_layout)i;
    fprintf(stderr, "parity: there is no layout %s\n", name);
    exit(2);
}

static bool read_arguments(int argc, char **argv)
{
    int forms = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--errors") == 0)
            run.errors = true;
        else if (strcmp(argv[i], "--both") == 0)
            run.errors = run.both = true;
        else if (strcmp(argv[i], "--kept") == 0)
            run.kept = true;
        else if (strcmp(argv[i], "--all") == 0)
            forms = 2;
        else if (strcmp(argv[i], "--forward") == 0)
            forms = 1;
        else if (strcmp(argv[i], "--verbose") == 0)
            run.verbose = true;
        else if (strcmp(argv[i], "--layout") == 0 && i + 1 < argc)
            run.layout = layout_named(argv[++i]);
        else if (strcmp(argv[i], "--set") == 0 && i + 1 < argc)
            run.set = argv[++i];
        else if (strcmp(argv[i], "--op") == 0 && i + 1 < argc)
            run.only = argv[++i];
        else if (!run.folder)
            run.folder = argv[i];
        else
            run.device = argv[i];
    }
    run.all = forms == 2 || (forms == 0 && run.device && strcmp(run.device, "cpu") == 0);
    return run.folder && run.device;
}

static bool read_list(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.txt", run.folder, name);
    return parity_read_unsupported(path, !run.set || strcmp(run.set, name) == 0);
}

/* The exceptions that the set may need. */
static bool read_lists(void)
{
    const bool other = run.set && strchr(run.set, '/');
    if (!run.set)
        return read_list("unsupported");
    return read_list("fresh") &&
           ((!other && strcmp(run.set, "edges") != 0) || read_list("edges")) &&
           (!other || read_list("seeds"));
}

/* Prints the exceptions that were needed; how many of the set's own were not, where all that may need one was run. */
static int print_listed(void)
{
    const bool everything =
        run.both && run.all && !run.only && run.layout == PARITY_AS_STORED && !run.lacks_f64;
    const char *text;
    bool own;
    int stale = 0;
    for (int i = 0; (text = parity_unsupported_line(i, &own)); i++) {
        if (run.hits[i])
            printf("listed: %s (%d cases)\n", text, run.hits[i]);
        else if (own && everything) {
            printf("STALE exception, which no case needs: %s\n", text);
            stale++;
        }
    }
    return stale;
}

int main(int argc, char **argv)
{
    if (!read_arguments(argc, argv)) {
        fprintf(stderr,
                "usage: runner [--errors | --both | --kept] [--all | --forward] [--layout NAME] "
                "[--set CASES] [--op NAME] [--verbose] FOLDER DEVICE\n");
        return 2;
    }
    if (!tern_device_is_available(run.device)) {
        printf("parity: SKIP: there is no %s\n", run.device);
        return 77;
    }
    if (!read_lists())
        return 2;
    tern_device_info info = {0};
    run.lacks_f64 = tern_device_get_info(run.device, &info) == TERN_OK && !info.has_f64;
    tern_backends_cudnn_set_allow_tf32(false); /* float32 is compared as float32 */
    const tern_named_op *op;
    for (int i = 0; (op = tern_named_op_at(i)); i++) {
        const char *name = tern_named_op_name(op);
        if (tern_op_by_name(name) == op && (!run.only || strcmp(run.only, name) == 0))
            run_op(name);
    }
    const int stale = print_listed();
    if (run.errors && !run.both)
        printf("on %s: refusals with PyTorch's facts\n", run.device);
    else
        printf("on %s: %d forward float32, %d gradient float64, %d forward of other types\n",
               run.device, run.float32, run.gradients,
               run.cases - run.unsupported - run.float32 - run.gradients);
    if (run.left_out)
        printf("left out: %d cases with results of float64, which %s does not have\n", run.left_out,
               run.device);
    printf(
        "ops %d, cases %d: %d passed, %d failed, %d unsupported, %d listed differences, %d stale "
        "exceptions\n",
        run.ops, run.cases, run.passed, run.failed, run.unsupported, run.differ, stale);
    return run.failed > 0 || stale > 0 || run.passed == 0; /* no cases, no proof */
}
