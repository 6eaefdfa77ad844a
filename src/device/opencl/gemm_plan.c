/* gemm_plan.c -- which kernel of matmul_vector.cl computes a matrix product, and in how many
 * work-groups. */
#include "device/opencl/gemm_plan.h"
#include <float.h>

/* The blocking of matmul_vector.cl: rows of a packed block of A, bytes in a row of a packed block
   of B, k of a block. */
enum { MC = 96, B_ROW = 1024, KC = 256 };

/* Rows and columns of a tile of matmul_vector.cl. */
static int64_t tile_rows(const tern_cl_gemm_problem *p)
{
    return p->width == 64 ? 12 : 6;
}
static int64_t tile_cols(const tern_cl_gemm_problem *p)
{
    return 2 * p->width / p->element;
}

/* Costs in cycles, fitted to a 2-core Zen 5. Only their ratios matter, and those not much. */
static const double group_start = 1000; /* cost of one work-group */
static const double wake = 40000;       /* until a sleeping PoCL thread helps: about 10 us */
static const double launch = 40000;     /* cost of the second kernel that a cut along k needs */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
static int64_t round_up(int64_t a, int64_t b)
{
    return divide_up(a, b) * b;
}

/* Cost of packing one element: vectors along the lanes are copied, vectors across them are
 * transposed in registers, others are gathered. */
static double pack_cost(int64_t lane_stride, int64_t stride)
{
    return lane_stride == 1 ? 0.2 : stride == 1 ? 0.4 : 1.5;
}

/* Cost of one work-group with rows x cols of C and k elements: packing A and B, the products (two
 * vectors a cycle; the last rows go 4 at a time), storing C. */
static double group_cost(const tern_cl_gemm_problem *p, int64_t rows, int64_t cols, int64_t k)
{
    int64_t high = tile_rows(p), rest = rows % high;
    int64_t padded = rows - rest + (rest > high - 4 ? high : round_up(rest, 4));
    double pack =
        pack_cost(p->a_col, p->a_row) * (double)rows + pack_cost(p->b_col, p->b_row) * (double)cols;
    double products = (double)(padded * divide_up(cols, tile_cols(p)));
    return group_start + (double)k * (pack + products) + 0.2 * (double)(rows * cols);
}

/* Returns when all groups are done: one thread starts at once, the others `wake` later, and at the
 * end some wait for the last group (for a short time, because PoCL assigns groups one by one). */
static double finish_time(double groups, double cost, int threads)
{
    double used = groups < threads ? groups : threads;
    double alone = groups * cost, together = (alone + (used - 1) * wake) / used + 0.2 * cost;
    return alone < together ? alone : together;
}

/* Returns the plan that finishes first. Every group packs its own A and B, so few and square groups
 * do the least work, but more groups keep all threads busy to the end. The plans cut n, m and, if C
 * has too few tiles for all threads, k. */
static tern_cl_gemm_plan cut(const tern_cl_gemm_problem *p)
{
    tern_cl_gemm_plan plan = {.dot = false};
    int64_t mr = tile_rows(p), nr = tile_cols(p);
    int64_t tiles = divide_up(p->m, mr) * divide_up(p->n, nr) * p->batch;
    int64_t most_parts = p->narrow || tiles >= 4 * p->compute_units ? 1 : p->k / (2 * KC);
    double best = DBL_MAX;
    for (int64_t parts = 1; parts == 1 || (parts <= most_parts && parts <= 2 * p->compute_units);
         parts *= 2) {
        int64_t k_part = parts == 1 ? p->k : round_up(divide_up(p->k, parts), KC),
                used = divide_up(p->k, k_part);
        double sum = used == 1 ? 0 : launch + 0.2 * (double)(p->m * p->n * p->batch * used);
        for (int64_t col_cuts = divide_up(p->n, B_ROW / p->element), cols = 2 * nr; cols > nr;
             col_cuts *= 2) {
            cols = round_up(divide_up(p->n, col_cuts), nr);
            int64_t col_groups = divide_up(p->n, cols);
            for (int waves = 0; waves <= 8; waves = waves ? 2 * waves : 1) {
                int64_t others = used * p->batch * col_groups;
                int64_t row_cuts = waves ? divide_up((int64_t)waves * p->compute_units, others) : 1;
                int64_t rows = divide_up(p->m, row_cuts);
                rows = round_up(rows, rows > mr ? mr : 4);
                if (p->narrow)
                    rows = smaller(rows, MC);
                int64_t row_groups = divide_up(p->m, rows);
                double cost = group_cost(p, smaller(rows, p->m), smaller(cols, p->n), k_part);
                double time =
                    sum + finish_time((double)(row_groups * others), cost, p->compute_units);
                if (time >= best)
                    continue;
                best = time;
                plan.global[0] = (size_t)col_groups;
                plan.global[1] = (size_t)row_groups;
                plan.group_rows = rows;
                plan.group_cols = cols;
                plan.k_part = k_part;
                plan.parts = used;
            }
        }
    }
    plan.global[2] = (size_t)(p->batch * plan.parts);
    plan.scratch = plan.parts == 1 ? 0 : (size_t)(p->m * p->n * p->batch * plan.parts);
    plan.sum_rows = round_up(divide_up(p->m, 2 * p->compute_units), 4);
    return plan;
}

/* Plans dot products of a few rows with many: groups of 64 Ki elements of the longer operand. */
static tern_cl_gemm_plan cut_dot(const tern_cl_gemm_problem *p)
{
    int64_t lines = round_up(divide_up(65536, p->k), 4);
    tern_cl_gemm_plan plan = {.dot = true, .k_part = p->k, .parts = 1};
    plan.group_rows = p->m > 4 ? lines : 4;
    plan.group_cols = p->m > 4 ? 4 : lines;
    plan.global[0] = (size_t)divide_up(p->n, plan.group_cols);
    plan.global[1] = (size_t)divide_up(p->m, plan.group_rows);
    plan.global[2] = (size_t)p->batch;
    return plan;
}

tern_cl_gemm_plan tern_cl_gemm_plan_make(const tern_cl_gemm_problem *p)
{
    int skinny = smaller(p->m, p->n) <= 4, along_k = p->a_col == 1 && p->b_row == 1;
    return skinny && along_k && p->k >= tile_cols(p) ? cut_dot(p) : cut(p);
}
