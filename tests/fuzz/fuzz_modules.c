/* fuzz_modules.c -- programs of modules and of what trains them. */
#include "objects.h"
#include <string.h>

const names_family *const fuzz_families[] = {&fuzz_tensor_rows,
                                             &fuzz_inplace_rows,
                                             &fuzz_gradient_rows,
                                             &fuzz_layer_rows,
                                             &fuzz_module_rows,
                                             &fuzz_training_rows,
                                             NULL};

/* Models with which a program begins, and what they take. */
static const struct {
    const char *text, *recipe;
} models[] = {
    {"Linear(into=1, in_features=4, out_features=3)\nReLU(into=2)\n"
     "Linear(into=3, in_features=3, out_features=2)\nSequential(into=0, modules=[1,2,3])\n",
     "n4"},
    {"Conv2d(into=1, in_channels=2, out_channels=3, kernel_size=3, padding=1)\n"
     "BatchNorm2d(into=2, num_features=3)\nReLU(into=3)\nMaxPool2d(into=4, kernel_size=2)\n"
     "Flatten(into=5)\nSequential(into=0, modules=[1,2,3,4,5])\n",
     "n2hw"},
    {"TransformerEncoderLayer(into=1, d_model=4, nhead=2)\nLayerNorm(into=2, normalized_shape=4)\n"
     "TransformerEncoder(into=0, module=1, num_layers=2, module2=2)\n",
     "sn4"},
    {"LSTM(into=0, input_size=3, hidden_size=4, num_layers=2, dropout=0.5)\n", "tn3"},
    {"Embedding(into=1, num_embeddings=5, embedding_dim=4)\nDropout(into=2)\n"
     "RMSNorm(into=3, normalized_shape=4)\nSequential(into=0, modules=[1,2,3])\n",
     "5:nt"},
    {"MultiheadAttention(into=0, embed_dim=4, num_heads=2, batch_first=true)\n", "nl4 ns4 ns4"},
    {"Conv1d(into=1, in_channels=2, out_channels=2, kernel_size=3)\n"
     "GroupNorm(into=2, num_groups=2, num_channels=2)\nGLU(into=3, dim=1)\n"
     "Sequential(into=0, modules=[1,2,3])\n",
     "n2t"},
};

static void begin_model(fuzz_source *s)
{
    uint32_t i = fuzz_pick(s, sizeof models / sizeof *models);
    fuzz_shapes_begin(s, &fuzz_held.shapes[0], "");
    fuzz_held.shapes[0].recipe = models[i].recipe;
    fuzz_run_text(models[i].text);
}

/* A slot of a kind: mostly one that is filled. */
static int64_t pick_slot(fuzz_source *s, const void *slots, uint32_t n)
{
    void *object;
    uint32_t i = fuzz_pick(s, n);
    bool any = fuzz_chance(s, 10);
    for (uint32_t k = 0; k < n && !any; k++, i = (i + 1) % n) {
        memcpy(&object, (const char *)slots + i * sizeof object, sizeof object);
        if (object)
            break;
    }
    return i;
}

bool fuzz_pick_object(fuzz_source *s, const char *name, int64_t *value)
{
    const struct {
        const char *name;
        const void *slots;
        uint32_t n;
    } kinds[] = {{"module", fuzz_held.modules, FUZZ_MODULES},
                 {"optimizer", fuzz_held.optimizers, FUZZ_OBJECTS},
                 {"scheduler", fuzz_held.schedulers, FUZZ_OBJECTS},
                 {"scaler", fuzz_held.scalers, FUZZ_OBJECTS},
                 {"ema", fuzz_held.averages, FUZZ_OBJECTS},
                 {"dict", fuzz_held.dicts, FUZZ_OBJECTS},
                 {"graph", fuzz_held.graphs, FUZZ_OBJECTS}};
    if (strcmp(name, "into") == 0) {
        *value = fuzz_pick(s, FUZZ_MODULES);
        return true;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].name);
        /* also "module2", "modules" */
        if (strncmp(name, kinds[i].name, length) == 0 && strlen(name) <= length + 1) {
            *value = pick_slot(s, kinds[i].slots, kinds[i].n);
            return true;
        }
    }
    return false;
}

static void add_layer(fuzz_source *s)
{
    const tern_named_op *op = fuzz_any(s, &fuzz_layer_rows);
    static fuzz_shapes shapes;
    fuzz_shapes_begin(s, &shapes, tern_named_op_name(op));
    if (fuzz_call_with(s, op, &shapes, false) < 0)
        return;
    for (int i = 0; i < FUZZ_MODULES; i++)
        if (fuzz_held.modules[i] && !fuzz_held.shapes[i].recipe)
            fuzz_held.shapes[i] = shapes;
}

/* Run a module with what it takes, and backward pass from the sum of what it gives. */
static void run_module(fuzz_source *s)
{
    static fuzz_step step;
    int64_t i;
    int slots[8];
    fuzz_pick_object(s, "module", &i);
    fuzz_shapes *shapes = &fuzz_held.shapes[i];
    int n = fuzz_inputs(s, shapes, slots, 8);
    bool call = n != 1 || fuzz_chance(s, 20);
    fuzz_step_begin(&step, fuzz_find(call ? "call" : "forward"));
    fuzz_add_int(&step, "module", i);
    if (call) {
        fuzz_value *v = fuzz_add(&step, "inputs", TERN_VALUE_TENSORS);
        for (int k = 0; k < n; k++)
            if (slots[k] >= 0)
                v->slots[v->count++] = slots[k];
        fuzz_add_int(&step, "results", fuzz_chance(s, 80) ? 1 : fuzz_pick(s, 4));
    } else {
        if (slots[0] < 0)
            return;
        fuzz_add_tensor(&step, "input", slots[0]);
    }
    if (fuzz_chance(s, 5))
        fuzz_fail_next(s);
    int slot = fuzz_run(&step) > 0 ? fuzz_place() : -1;
    if (slot < 0 || fuzz_chance(s, 20))
        return;
    fuzz_step_begin(&step, fuzz_find("sum"));
    fuzz_add_tensor(&step, "input", slot);
    slot = fuzz_run(&step) > 0 ? fuzz_place() : -1;
    fuzz_step_begin(&step, fuzz_find("backward"));
    fuzz_add_tensor(&step, "input", slot);
    if (fuzz_chance(s, 20))
        fuzz_add(&step, "create_graph", TERN_VALUE_SCALAR)->scalar = tern_scalar_bool(true);
    if (fuzz_chance(s, 5))
        fuzz_fail_next(s);
    fuzz_run(&step);
}

/* A step with these integers: "module", 0, ..., NULL. */
static int run_ints(const char *name, const char *first, int64_t a, const char *second, int64_t b)
{
    static fuzz_step step;
    fuzz_step_begin(&step, fuzz_find(name));
    if (first)
        fuzz_add_int(&step, first, a);
    if (second)
        fuzz_add_int(&step, second, b);
    return fuzz_run(&step);
}

/* A step of training that is captured and replayed: of a module and its optimizer, if it has one. */
static void capture_step(fuzz_source *s)
{
    int64_t graph = fuzz_pick(s, FUZZ_OBJECTS), optimizer;
    fuzz_pick_object(s, "optimizer", &optimizer);
    bool walks = fuzz_chance(s, 50);
    if (walks) /* gradients are there before */
        run_module(s);
    run_ints("graph", "into", graph, NULL, 0);
    if (fuzz_chance(s, 10))
        fuzz_fail_next(s);
    run_ints("capture_begin", "graph", graph, NULL, 0);
    run_module(s);
    if (fuzz_chance(s, 30))
        fuzz_call(s, fuzz_any(s, &fuzz_training_rows));
    run_ints("step", "optimizer", optimizer, NULL, 0);
    run_ints("capture_end", "graph", graph, NULL, 0);
    for (int i = 0; i < 2; i++)
        run_ints("replay", "graph", graph, NULL, 0);
}

/* Under autocast, with a scaler. */
static void amp_step(fuzz_source *s)
{
    int64_t scaler = fuzz_pick(s, FUZZ_OBJECTS), optimizer;
    fuzz_pick_object(s, "optimizer", &optimizer);
    if (!fuzz_held.scalers[scaler])
        run_ints("grad_scaler", "into", scaler, NULL, 0);
    run_ints("autocast", NULL, 0, NULL, 0);
    run_module(s);
    if (fuzz_chance(s, 80))
        run_ints("leave_autocast", NULL, 0, NULL, 0);
    if (fuzz_chance(s, 30))
        run_ints("unscale_", "scaler", scaler, "optimizer", optimizer);
    if (fuzz_chance(s, 10))
        fuzz_fail_next(s);
    run_ints("scaler_step", "scaler", scaler, "optimizer", optimizer);
    run_ints("scaler_update", "scaler", scaler, NULL, 0);
}

void fuzz_program(fuzz_source *s)
{
    memset(fuzz_held.shapes, 0, sizeof fuzz_held.shapes);
    if (fuzz_chance(s, 60))
        begin_model(s);
    else
        add_layer(s);
    for (int steps = 0; steps < 24 && !fuzz_ended(s); steps++) {
        uint32_t kind = fuzz_pick(s, 20);
        if (kind < 2)
            add_layer(s);
        else if (kind < 7)
            run_module(s);
        else if (kind < 8)
            fuzz_chance(s, 50) ? capture_step(s) : amp_step(s);
        else if (kind < 12)
            fuzz_call(s, fuzz_any(s, &fuzz_module_rows));
        else if (kind < 18)
            fuzz_call(s, fuzz_any(s, &fuzz_training_rows));
        else if (kind < 19)
            fuzz_call(s, fuzz_any(s, &fuzz_gradient_rows));
        else
            fuzz_call(s, fuzz_any(s, &fuzz_tensor_rows));
    }
}
