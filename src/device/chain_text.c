/* chain_text.c -- writes the source of a chain's kernel, in the dialect of cl_kernels. The source
 * has no sizes and no numbers, so chains with the same rows have one program. If the chain has a
 * slot, the source is the text of the kernel with the slot, after macros and functions for the
 * chain (cl_kernels/chain_slots.h). */
#include "device/beside.h"
#include "device/signature.h"
#include "device/sources.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_written(const tern_chain *chain, int t)
{
    for (int i = 0; i < chain->rows; i++)
        if (chain->row[i].out == t)
            return true;
    return false;
}

static const char *type_of(const tern_chain *chain, int t)
{
    return chain->wide[t] ? "f32" : "TERN_T";
}

/* Adds the chain's parameters: of a kernel of its own, with n, or those that precede the parameters
 * of the kernel with the slot. */
static void add_parameters(tern_text *text, const tern_chain *chain)
{
    const char *before = chain->slot ? "" : ", ", *behind = chain->slot ? ", " : "";
    for (int t = 0; t < chain->tensors; t++)
        tern_text_add(text, "PARAM_%s(STO_OF(%s), t%d), ", is_written(chain, t) ? "OUT" : "IN",
                      type_of(chain, t), t);
    if (!chain->slot)
        tern_text_add(text, "PARAM_ARG(i64, n)");
    for (int i = 0; i < chain->rows; i++)
        for (int k = 0; k < chain->row[i].numbers; k++)
            tern_text_add(text, "%sPARAM_ARG(REAL, n%d_%d)%s", before, i, k, behind);
}

static void add_function_parameters(tern_text *text, const tern_chain *chain)
{
    for (int t = 0; t < chain->tensors; t++)
        tern_text_add(text, "%sGLOBAL STO *t%d, ", is_written(chain, t) ? "" : "const ", t);
    for (int i = 0; i < chain->rows; i++)
        for (int k = 0; k < chain->row[i].numbers; k++)
            tern_text_add(text, "const REAL n%d_%d, ", i, k);
    tern_text_add(text, "const idx j");
}

/* Adds the arguments for these parameters, without j. */
static void add_arguments(tern_text *text, const tern_chain *chain)
{
    for (int t = 0; t < chain->tensors; t++)
        tern_text_add(text, "t%d, ", t);
    for (int i = 0; i < chain->rows; i++)
        for (int k = 0; k < chain->row[i].numbers; k++)
            tern_text_add(text, "n%d_%d, ", i, k);
}

static void add_bases(tern_text *text, const tern_chain *chain)
{
    for (int t = 0; t < chain->tensors; t++)
        tern_text_add(text, "BASE(t%d); ", t);
}

/* Returns whether a row reads tensor t from memory. */
static bool is_read(const tern_chain *chain, int t)
{
    for (int i = 0; i < chain->rows; i++)
        for (int k = 0; k < chain->row[i].n; k++)
            if (chain->row[i].in[k] == t)
                return true;
    return false;
}

/* Returns whether a kernel loads tensor t for each element. */
static bool is_loaded(const tern_chain *chain, int t)
{
    return chain->step[t] && is_read(chain, t);
}

/* Adds the loads of element j of tensors with step 1, or of element 0 of tensors with step 0. */
static void add_loads(tern_text *text, const tern_chain *chain, int step)
{
    for (int t = 0; t < chain->tensors; t++)
        if (chain->step[t] == step && is_read(chain, t))
            tern_text_add(text, "const REAL x%d = LD_OF(%s, t%d, %s);\n", t, type_of(chain, t), t,
                          step ? "j" : "0");
}

/* Adds a row's operand: "x3" for tensor 3, or "v2" for the result of row 2. */
static void add_operand(tern_text *text, uint8_t in)
{
    tern_text_add(text, "%s%d", in < TERN_CHAIN_TENSORS ? "x" : "v", in % TERN_CHAIN_TENSORS);
}

/* Adds the row that is the kernel with the slot. If the rows follow a store, the row's result is
 * the stored v, or v[e] by fours; if they precede a load, the operand becomes v[e] or the value of
 * the function. */
static void add_slot(tern_text *text, const tern_chain *chain, int i, bool fours)
{
    if (chain->slot->stores) {
        tern_text_add(text, "const REAL v%d = AS_STORED%s(v%s);\n", i, fours ? "4" : "",
                      fours ? "[e]" : "");
        return;
    }
    tern_text_add(text, fours ? "v[e] = " : "return ");
    add_operand(text, chain->row[i].in[0]);
    tern_text_add(text, ";\n");
}

static void add_row(tern_text *text, const tern_chain *chain, int i, bool fours, bool stores)
{
    const tern_chain_row *row = &chain->row[i];
    if (tern_chain_is_slot(chain, i)) {
        add_slot(text, chain, i, fours);
    } else {
        const bool casts = tern_chain_is_cast(row) != 0;
        tern_text_add(text, "const REAL v%d = %s%s(", i, row->wide ? "" : "AS_STORED",
                      fours && !row->wide ? "4" : "");
        tern_text_add(text, casts ? "(" : "row_%s(", row->name);
        for (int k = 0; k < row->n; k++) {
            tern_text_add(text, k ? ", " : "");
            add_operand(text, row->in[k]);
        }
        for (int k = 0; k < row->numbers; k++)
            tern_text_add(text, ", n%d_%d", i, k);
        tern_text_add(text, "));\n");
    }
    if (row->out < 0 || !stores)
        return;
    if (fours)
        tern_text_add(text, "b%d[e] = v%d;\n", row->out, i);
    else
        tern_text_add(text, "ST_OF(%s, t%d, j, v%d);\n", type_of(chain, row->out), row->out, i);
}

static void add_rows(tern_text *text, const tern_chain *chain, bool stores)
{
    for (int i = 0; i < chain->rows; i++)
        add_row(text, chain, i, false, stores);
}

static void add_aligned(tern_text *text, const tern_chain *chain, const char *aligned)
{
    tern_text_add(text, "1");
    for (int t = 0; t < chain->tensors; t++)
        if (chain->step[t])
            tern_text_add(text, " && %s(t%d)", aligned, t);
}

/* Adds the rows for the four elements of unit j, or for vector j if the chain has no slot. */
static void add_rows_of_unit(tern_text *text, const tern_chain *chain, bool stores)
{
    for (int t = 0; t < chain->tensors; t++)
        if (is_written(chain, t) && stores)
            tern_text_add(text, "REAL b%d[%s];\n", t, chain->slot ? "4" : "ROW_WIDTH");
    tern_text_add(text, chain->slot ? "EACH4(e)\n{\n" : "EACH_OF_ROW(e)\n{\n");
    for (int t = 0; t < chain->tensors; t++)
        if (is_loaded(chain, t))
            tern_text_add(text,
                          chain->slot ? "const REAL x%d = UNIT_OF(a%d, e);\n"
                                      : "const REAL x%d = a%d[e];\n",
                          t, t);
    for (int i = 0; i < chain->rows; i++)
        add_row(text, chain, i, true, stores);
    tern_text_add(text, "}\n");
    for (int t = 0; t < chain->tensors; t++)
        if (is_written(chain, t) && stores)
            tern_text_add(text, "%s, %s)(t%d, j, b%d);\n",
                          chain->slot ? "TERN_CAT(STORE4" : "ROW_OF_(ROW_STORE8", type_of(chain, t),
                          t, t);
}

/* Adds `format` for each tensor that is loaded, with its type and twice its number. */
static void add_each_read(tern_text *text, const tern_chain *chain, const char *format)
{
    for (int t = 0; t < chain->tensors; t++)
        if (is_loaded(chain, t))
            tern_text_add(text, format, type_of(chain, t), t, t);
}

/* Adds a loop over vectors, as in row_kernels.h for devices with many lanes, for tensors that are
 * all aligned. The elements from `first` on, which fill no vector, follow one by one. */
static void add_vectors(tern_text *text, const tern_chain *chain)
{
    tern_text_add(text, "#if BY_FOURS\nif (");
    add_aligned(text, chain, "FLAT_FITS");
    tern_text_add(text, ")\n{\nfirst = (idx)n / ROW_WIDTH * ROW_WIDTH;\n"
                        "FLAT_VECTORS(1, first / ROW_WIDTH)\n{\n");
    add_each_read(text, chain, "FLAT_TWO(%s, t%d)\n");
    tern_text_add(text, "FLAT_LOADED(r, j)\n{\n");
    add_each_read(text, chain, "FLAT_GET(%s, t%d, t%d, j);\n");
    tern_text_add(text, "}\nFLAT_USED(j)\n{\n");
    add_each_read(text, chain, "FLAT_VALUES(%s, a%d, t%d)\n");
    add_rows_of_unit(text, chain, true);
    tern_text_add(text, "}\n}\n}\n#endif\n");
}

static void add_rows_alone(tern_text *text, const tern_chain *chain, const char *suffix)
{
    tern_text_add(text, "TERN_KERNEL(chain_%s)(", suffix);
    add_parameters(text, chain);
    tern_text_add(text, ")\n{\n");
    add_bases(text, chain);
    add_loads(text, chain, 0);
    tern_text_add(text, "idx first = 0;\n");
    add_vectors(text, chain);
    tern_text_add(text,
                  "FLAT(r, 1, n - first)\n{\nSIMD INNER(r, i)\n{\nconst idx j = first + i;\n");
    add_loads(text, chain, 1);
    add_rows(text, chain, true);
    tern_text_add(text, "}\n}\n}\n");
}

/* ---- in another kernel ------------------------------------------------------------------ */

/* Adds functions chain_<name> for element j and chain_<name>4 for four elements. What the chain
 * reads are their parameters: x0, or a0 for four. */
static void add_functions(tern_text *text, const tern_chain *chain, const char *name, bool stores)
{
    const bool puts = chain->slot->stores;
    tern_text_add(text, "INLINE %s chain_%s(", puts ? "void" : "REAL", name);
    add_function_parameters(text, chain);
    for (int t = 0; t < chain->tensors; t++)
        if (is_loaded(chain, t))
            tern_text_add(text, ", const REAL x%d", t);
    tern_text_add(text, "%s)\n{\n", puts ? ", const REAL v" : "");
    add_loads(text, chain, 0);
    add_rows(text, chain, stores);
    tern_text_add(text, "}\n#if TERN_FLOAT4 && IN_SET(FLOAT4, TERN_T)\nINLINE void chain_%s4(",
                  name);
    add_function_parameters(text, chain);
    for (int t = 0; t < chain->tensors; t++)
        if (is_loaded(chain, t))
            tern_text_add(text, ", const UNIT_WORD *a%d", t);
    tern_text_add(text, ", %sREAL *v)\n{\n", puts ? "const " : "");
    add_loads(text, chain, 0);
    add_rows_of_unit(text, chain, stores);
    tern_text_add(text, "}\n#endif\n");
}

/* The argument of these functions for tensor %d: its element, or what CHAIN_LOAD_UNIT loaded. */
static const char at_once[] = ", LD(t%d, at)", as_four[] = ", c%d[u]",
                  as_one[] = ", UNIT_OF(c%d[u], 0)";

/* Adds a call of such a function; `loaded` is one of the three arguments above. */
static void add_call(tern_text *text, const tern_chain *chain, const char *name, const char *at,
                     const char *loaded, const char *end)
{
    tern_text_add(text, "chain_%s(", name);
    add_arguments(text, chain);
    tern_text_add(text, "%s", at);
    for (int t = 0; t < chain->tensors; t++)
        if (is_loaded(chain, t))
            tern_text_add(text, loaded, t);
    tern_text_add(text, "%s", end);
}

/* Adds a call for a unit of four elements, or of one. */
static void add_unit(tern_text *text, const tern_chain *chain, const char *name, const char *to,
                     const char *end)
{
    char four[16];
    snprintf(four, sizeof four, "%s4", name);
    tern_text_add(text, "TERN_CAT(CHAIN_FOUR, IN_SET(FLOAT4, TERN_T))(");
    add_call(text, chain, four, "(at) / 4", as_four, ", v)) ");
    tern_text_add(text, "%s", to);
    add_call(text, chain, name, "at", as_one, end);
}

static void add_unit_loads(tern_text *text, const tern_chain *chain)
{
    for (int t = 0; t < chain->tensors; t++)
        if (is_loaded(chain, t))
            tern_text_add(text, "UNIT_LOAD(c%d[u], t%d) ", t, t);
}

/* Defines the macros that the kernel's text uses in place of a store. */
static void add_put(tern_text *text, const tern_chain *chain)
{
    add_functions(text, chain, "put", true);
    tern_text_add(text, "#define CHAIN_LOAD_UNIT ");
    add_unit_loads(text, chain);
    tern_text_add(text, "\n#define CHAIN_PUT(p, at, v) ");
    add_call(text, chain, "put", "at", at_once, ", v);\n#define CHAIN_PUT_UNIT(p, at, v) ");
    add_unit(text, chain, "put", "", ", v[0]);\n");
}

/* Defines the macros that the kernel's text uses in place of a load. In pass 1 they load what the
 * chain stored in pass 0, or compute it again. */
static void add_get(tern_text *text, const tern_chain *chain)
{
    const uint8_t in = chain->row[chain->rows - 1].in[0];
    const int stored = chain->row[in - TERN_CHAIN_TENSORS].out;
    add_functions(text, chain, "get", true);
    add_functions(text, chain, "again", false);
    tern_text_add(text, "#define CHAIN_GETS\n#define CHAIN_GET(pass, p, at) (pass ? ");
    if (stored >= 0)
        tern_text_add(text, "LD(t%d, at)", stored);
    else
        add_call(text, chain, "again", "at", at_once, ")");
    tern_text_add(text, " : ");
    add_call(text, chain, "get", "at", at_once,
             "))\n#define CHAIN_GET_LOAD(pass, v, p) if (pass) { ");
    if (stored >= 0)
        tern_text_add(text, "NORM_LOAD_(v, t%d) ", stored);
    else
        add_unit_loads(text, chain);
    tern_text_add(text, "} else { ");
    add_unit_loads(text, chain);
    tern_text_add(text, "}\n#define CHAIN_GET_USE(pass, v, at) if (pass) { ");
    if (stored < 0)
        add_unit(text, chain, "again", "v[0] = ", "); ");
    tern_text_add(text, "} else { ");
    add_unit(text, chain, "get", "v[0] = ", "); }\n");
}

static void add_slot_kernel(tern_text *text, tern_sources_seen *seen, const tern_chain *chain,
                            const char *suffix)
{
    char file[64];
    tern_text_add(text,
                  "#define %s_%s chain_%s\n#undef CHAIN_PARAMETERS\n"
                  "#define CHAIN_PARAMETERS ",
                  chain->slot->kernel->name, suffix, suffix);
    add_parameters(text, chain);
    tern_text_add(text, "\n#define CHAIN_BASE(p) ");
    add_bases(text, chain);
    tern_text_add(text, "\n#define CHAIN_ALIGNED4(p) ");
    add_aligned(text, chain, "ALIGNED4");
    tern_text_add(text, "\n#define CHAIN_DECLARE ");
    for (int t = 0; t < chain->tensors; t++)
        if (is_loaded(chain, t))
            tern_text_add(text, "UNIT_WORD c%d[UNITS][4]; ", t);
    tern_text_add(text, "\n#define CHAIN_FOUR_0(text)\n"
                        "#define CHAIN_FOUR_1(text) if (EACH == 4) text; else\n");
    if (chain->slot->stores)
        add_put(text, chain);
    else
        add_get(text, chain);
    snprintf(file, sizeof file, "%s.cl", chain->slot->kernel->file);
    tern_source_add(text, seen, file);
}

/* ---- side by side ------------------------------------------------------------------------ */

/* Adds the parameters of launch number `side`, or if `takes`, the statements that assign them to
 * the kernel's own parameters. */
static void add_side(tern_text *text, const char *parameters, int side, bool takes)
{
    char role[8], type[32], name[32];
    for (int n; sscanf(parameters, "(%7[^,], %31[^,], %31[^)])%n", role, type, name, &n) == 3;
         parameters += n)
        tern_text_add(text, takes ? "TAKE_%s(%s, %s_%d) " : "PARAM_%s(%s, %s_%d), ", role,
                      takes ? name : type, name, side);
}

static void add_sides(tern_text *text, tern_sources_seen *seen, const tern_chain *chain,
                      tern_dtype dtype)
{
    const char *name = chain->row[0].name, *suffix = tern_dtype_rows[dtype].suffix;
    const char *parameters = tern_host_parameters(name, dtype);
    tern_text_add(text, "#define TERN_SIDES %d\n", chain->rows);
    tern_source_add(text, seen, "beside.h");
    tern_text_add(text, "#define %s_%s chain_%s\n#define CHAIN_PARAMETERS ", name, suffix, suffix);
    for (int side = 1; side < chain->rows; side++)
        add_side(text, parameters, side, false);
    tern_text_add(text, "\n");
    for (int k = 0; k < TERN_BESIDE_KERNELS; k++)
        if (tern_beside_kernels[k].name != name)
            tern_text_add(text, "#define BESIDE_%s\n", tern_beside_kernels[k].name);
    tern_text_add(text, "#define BESIDE_%s SIDES ", name);
    for (int side = 1; side < chain->rows; side++) {
        tern_text_add(text, "if (tern_side == %d) { ", side);
        add_side(text, parameters, side, true);
        tern_text_add(text, "} ");
    }
    tern_text_add(text, "\n");
}

void tern_chain_text(tern_text *text, tern_sources_seen *seen, const tern_chain *chain,
                     tern_dtype dtype)
{
    const char *suffix = tern_dtype_rows[dtype].suffix;
    char file[64];
    if (chain->is_beside) {
        add_sides(text, seen, chain, dtype);
        snprintf(file, sizeof file, "%s.cl", chain->row[0].file);
        tern_source_add(text, seen, file);
        return;
    }
    tern_text names = {0};
    for (int i = 0; i < chain->rows; i++)
        if (!tern_chain_is_slot(chain, i))
            tern_text_add(&names, " %s ", chain->row[i].name);
    text->failed |= names.failed;
    seen->kernels = names.data;
    tern_source_add(text, seen, "float4.h");
    tern_source_add(text, seen, "row_functions.h");
    for (int i = 0; i < chain->rows; i++) {
        if (tern_chain_is_slot(chain, i) || tern_chain_is_cast(&chain->row[i]))
            continue;
        snprintf(file, sizeof file, "%s.def", chain->row[i].file);
        tern_source_add(text, seen, file);
    }
    seen->kernels = NULL;
    tern_text_free(&names);
    if (chain->slot)
        add_slot_kernel(text, seen, chain, suffix);
    else
        add_rows_alone(text, chain, suffix);
}
