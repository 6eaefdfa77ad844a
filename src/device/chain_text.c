/* chain_text.c -- the kernel of a chain, in the dialect of cl_kernels. Its text has no sizes and no
 * numbers: the same rows are one program. */
#include "device/sources.h"
#include <stdbool.h>
#include <stdio.h>

static bool is_written(const tern_chain *chain, int t)
{
    for (int i = 0; i < chain->rows; i++)
        if (chain->row[i].out == t)
            return true;
    return false;
}

static void add_parameters(tern_text *text, const tern_chain *chain, const char *suffix)
{
    tern_text_add(text, "TERN_KERNEL(chain_%s)(", suffix);
    for (int t = 0; t < chain->tensors; t++)
        tern_text_add(text, "PARAM_%s(STO, t%d), ", is_written(chain, t) ? "OUT" : "IN", t);
    tern_text_add(text, "PARAM_ARG(i64, n)");
    for (int i = 0; i < chain->rows; i++)
        for (int k = 0; k < chain->row[i].numbers; k++)
            tern_text_add(text, ", PARAM_ARG(REAL, n%d_%d)", i, k);
    tern_text_add(text, ")\n{\n");
    for (int t = 0; t < chain->tensors; t++)
        tern_text_add(text, "BASE(t%d);\n", t);
}

/* A tensor that the first row to read it has not loaded yet. */
static bool is_read(const tern_chain *chain, int t)
{
    for (int i = 0; i < chain->rows; i++)
        for (int k = 0; k < chain->row[i].n; k++)
            if (chain->row[i].in[k] == t)
                return true;
    return false;
}

/* What the rows read, by fours or one by one, of the tensors with a step or of those without. */
static void add_loads(tern_text *text, const tern_chain *chain, int step, bool fours)
{
    for (int t = 0; t < chain->tensors; t++) {
        if (chain->step[t] != step || !is_read(chain, t))
            continue;
        if (fours)
            tern_text_add(text, "REAL a%d[4];\nLOAD4(a%d, t%d, j);\n", t, t, t);
        else
            tern_text_add(text, "const REAL x%d = LD(t%d, %s);\n", t, t, step ? "j" : "0");
    }
}

static void add_row(tern_text *text, const tern_chain *chain, int i, bool fours)
{
    const tern_chain_row *row = &chain->row[i];
    tern_text_add(text, "const REAL v%d = AS_STORED%s(row_%s(", i, fours ? "4" : "", row->name);
    for (int k = 0; k < row->n; k++)
        tern_text_add(text, "%s%s%d", k ? ", " : "", row->in[k] < TERN_CHAIN_TENSORS ? "x" : "v",
                      row->in[k] % TERN_CHAIN_TENSORS);
    for (int k = 0; k < row->numbers; k++)
        tern_text_add(text, ", n%d_%d", i, k);
    tern_text_add(text, "));\n");
    if (row->out >= 0)
        tern_text_add(text, fours ? "b%d[e] = v%d;\n" : "ST(t%d, j, v%d);\n", row->out, i);
}

/* As rows have it where lanes are many (row_kernels.h): four elements a load, where all tensors lie
 * so; those that are left over follow one by one, from `first` on. */
static void add_fours(tern_text *text, const tern_chain *chain)
{
    tern_text_add(text, "#if TERN_FLOAT4 && IN_SET(FLOAT4, TERN_T)\nif (1");
    for (int t = 0; t < chain->tensors; t++)
        if (chain->step[t])
            tern_text_add(text, " && ALIGNED4(t%d)", t);
    tern_text_add(text, ")\n{\nfirst = ((idx)n & ~(idx)3);\n"
                        "FLAT(r, 1, first / 4)\n{\nINNER(r, j)\n{\n");
    add_loads(text, chain, 1, true);
    for (int t = 0; t < chain->tensors; t++)
        if (is_written(chain, t))
            tern_text_add(text, "REAL b%d[4];\n", t);
    tern_text_add(text, "EACH4(e)\n{\n");
    for (int t = 0; t < chain->tensors; t++)
        if (chain->step[t] && is_read(chain, t))
            tern_text_add(text, "const REAL x%d = a%d[e];\n", t, t);
    for (int i = 0; i < chain->rows; i++)
        add_row(text, chain, i, true);
    tern_text_add(text, "}\n");
    for (int t = 0; t < chain->tensors; t++)
        if (is_written(chain, t))
            tern_text_add(text, "STORE4(t%d, j, b%d);\n", t, t);
    tern_text_add(text, "}\n}\n}\n#endif\n");
}

void tern_chain_text(tern_text *text, tern_sources_seen *seen, const tern_chain *chain,
                     const char *suffix)
{
    char file[64];
    tern_text names = {0};
    for (int i = 0; i < chain->rows; i++)
        tern_text_add(&names, " %s ", chain->row[i].name);
    text->failed |= names.failed;
    seen->kernels = names.data;
    tern_source_add(text, seen, "float4.h");
    tern_source_add(text, seen, "row_functions.h");
    for (int i = 0; i < chain->rows; i++) {
        snprintf(file, sizeof file, "%s.def", chain->row[i].file);
        tern_source_add(text, seen, file);
    }
    seen->kernels = NULL;
    tern_text_free(&names);
    add_parameters(text, chain, suffix);
    add_loads(text, chain, 0, false);
    tern_text_add(text, "idx first = 0;\n");
    add_fours(text, chain);
    tern_text_add(text,
                  "FLAT(r, 1, n - first)\n{\nSIMD INNER(r, i)\n{\nconst idx j = first + i;\n");
    add_loads(text, chain, 1, false);
    for (int i = 0; i < chain->rows; i++)
        add_row(text, chain, i, false);
    tern_text_add(text, "}\n}\n}\n");
}
