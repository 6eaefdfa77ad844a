/* test_onnx_nodes.c -- the node tests of ONNX (Debian's libonnx-testdata): each model against its stored
 * results, also after it was exported again; what tern does not have, or does not write, is listed with the reason.
 *
 *   test_onnx_nodes [FOLDER [PART OF A NAME]]
 *
 * TEST_ONNX_WRITE=FOLDER/ keeps the exported models there. */
#include "io/onnx/graph.h"
#include "support.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <tern/io/onnx.h>

#define DATA "/usr/share/libonnx-testdata/data/"
enum { MOST = 16 };

static int passed, failed, lacking, written, refused;

/* A TensorProto in a file; NULL after an error. */
static tern_tensor *read_tensor(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    static uint8_t bytes[16 << 20];
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    Onnx__TensorProto *proto = onnx__tensor_proto__unpack(NULL, n, bytes);
    tern_tensor *x = proto
                         ? onnx_tensor(proto, NULL)
                         : tern_fail_null(TERN_ERR_UNSUPPORTED, "tern_onnx: %s is no tensor", path);
    if (proto)
        onnx__tensor_proto__free_unpacked(proto, NULL);
    if (proto && !x &&
        tern_last_status() ==
            TERN_ERR_IO) { /* a SequenceProto, which has other fields of these numbers */
        tern_clear_error();
        tern_fail(TERN_ERR_UNSUPPORTED, "tern_onnx: %s is no tensor", path);
    }
    return x;
}

/* NumPy had no bfloat16: these files hold its bits as uint16. */
static tern_tensor *as_bfloat16(tern_tensor *x)
{
    static uint16_t bits[1 << 16];
    if (!x || tern_dtype_of(x) != TERN_U16 || tern_numel(x) > 1 << 16)
        return x;
    tern_copy_to_host(x, (void *)bits, sizeof *bits * (size_t)tern_numel(x));
    return tern_from_data((const void *)bits, tern_shape_of(x), TERN_BF16, "cpu");
}

static int read_all(const char *folder, const char *kind, tern_tensor *list[MOST])
{
    char path[600];
    int n = 0;
    for (; n < MOST; n++) {
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, n);
        if (!(list[n] = read_tensor(path)))
            break;
        if (strstr(folder, "BFLOAT16"))
            list[n] = as_bfloat16(list[n]);
    }
    return n;
}

/* |a - b| <= 1e-7 + 1e-3 |b|, as onnx.backend.test compares. A bfloat16 may be a step away: the stored
 * results were cut off, where later versions of ONNX round, as tern does. A spectrum has sums of large numbers that are nothing:
 * there it is 1e-7 of the largest. */
static bool is_close(tern_tensor *a, tern_tensor *b, bool spectrum)
{
    if (!tern_same_shape(a, b) || tern_dtype_of(a) != tern_dtype_of(b))
        return false;
    return tern_allclose(tern_to_dtype(tern_to(tern_detach(a), "cpu"), TERN_F64),
                         tern_to_dtype(b, TERN_F64), tern_dtype_of(b) == TERN_BF16 ? 0x1p-7 : 1e-3,
                         spectrum ? 1e-7 * tern_item(tern_max(tern_abs(b))) : 1e-7, true);
}

static void report(const char *name, const char *what, const char *why)
{
    printf("%-7s %s%s%.200s\n", what, name, *why ? ": " : "", why);
}

/* What is drawn at random is compared in its shape and dtype alone. */
static bool is_random(const char *name)
{
    return strstr(name, "bernoulli") ||
           (strstr(name, "training_dropout") && !strstr(name, "zero_ratio"));
}

static bool compare(const char *name, tern_tensor **got, tern_tensor **want, int n)
{
    for (int i = 0; i < n; i++) {
        char text[160];
        if (is_random(name) ? tern_same_shape(got[i], want[i]) &&
                                  tern_dtype_of(got[i]) == tern_dtype_of(want[i])
                            : is_close(got[i], want[i], strstr(name, "dft") != NULL))
            continue;
        snprintf(text, sizeof text, "output %d differs (%s, %s)", i,
                 tern_dtype_name(tern_dtype_of(got[i])),
                 tern_same_shape(got[i], want[i]) ? "same shape" : "another shape");
        report(name, "FAIL", text);
        return false;
    }
    return true;
}

/* The module as ONNX again: what the file computes is the same, or its operations are not written. */
static void write_node(tern_module *m, const char *name, tern_tensor **in, int n,
                       tern_tensor **want, int k)
{
    const char *kept = getenv("TEST_ONNX_WRITE");
    char path[600];
    tern_tensor *got[MOST] = {NULL};
    if (kept)
        snprintf(path, sizeof path, "%s%s.onnx", kept, name);
    else
        snprintf(path, sizeof path, "onnx-node-%d.onnx", (int)getpid());
    if (tern_onnx_export(m, in, n, path, &(tern_onnx_export_options){.n_outputs = k}) != TERN_OK) {
        bool fails =
            tern_last_status() != TERN_ERR_UNSUPPORTED && tern_last_status() != TERN_ERR_DTYPE;
        report(name, fails ? "FAIL" : "unsaid", tern_last_error());
        failed += fails;
        refused += !fails;
        tern_clear_error();
        return;
    }
    tern_module *again = tern_onnx_load(path);
    if (!kept)
        unlink(path);
    if (again)
        tern_nn_eval(tern_nn_to(again, tern_device(in[0])));
    if (!again || tern_nn_call(again, in, n, got, k) != TERN_OK) {
        report(name, "FAIL", tern_last_error());
        failed++;
    } else {
        bool same = compare(name, got, want, k);
        written += same;
        failed += !same;
    }
    tern_clear_error();
    tern_nn_free(again);
}

static void run_node(const char *folder, const char *name, const char *device)
{
    char path[600];
    tern_tensor *in[MOST] = {NULL}, *want[MOST] = {NULL}, *got[MOST] = {NULL};
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    tern_module *m = tern_onnx_load(path);
    int n = m ? read_all(folder, "input", in) : 0, k = m ? read_all(folder, "output", want) : 0;
    bool readable = m && tern_last_status() == TERN_OK;
    for (int i = 0; readable && i < n; i++)
        in[i] = tern_to(in[i], device);
    if (m)
        tern_nn_train(tern_nn_to(m, device), strstr(name, "training") != NULL);
    if (readable && tern_nn_call(m, in, n, got, k) == TERN_OK) {
        bool same = compare(name, got, want, k);
        passed += same;
        failed += !same;
        if (same && getenv("TEST_ONNX_LIST"))
            report(name, "ok", "");
        if (same && n > 0 && !tern_nn_is_training(m) && !is_random(name))
            write_node(m, name, in, n, want, k);
    } else if (tern_last_status() == TERN_ERR_UNSUPPORTED || tern_last_status() == TERN_ERR_DTYPE) {
        report(name, "lacks", tern_last_error());
        lacking++;
    } else {
        report(name, "FAIL", tern_last_error());
        failed++;
    }
    tern_clear_error();
    tern_nn_free(m);
}

/* The cases of a folder, those with a part in their names; false where there is no such folder. */
static bool run_folder(const char *folder, const char *part)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char path[500];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && (!part || strstr(entries[i]->d_name, part)))
            TERN_SCOPE
                run_node(path, entries[i]->d_name, test_device(0));
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return n >= 0;
}

int main(int argc, char **argv)
{
    /* single operations of sets 1 to 17, models of PyTorch's operations and layers of set 6, small ones */
    static const char *const folders[] = {DATA "node", DATA "pytorch-operator",
                                          DATA "pytorch-converted", DATA "simple"};
    bool there = tern_onnx_is_available();
    if (there && argc > 1)
        there = run_folder(argv[1], argc > 2 ? argv[2] : NULL);
    for (size_t i = 0; there && argc < 2 && i < sizeof folders / sizeof *folders; i++)
        there = run_folder(folders[i], NULL);
    if (!there && failed == 0) {
        printf("test_onnx_nodes: skipped: %s\n",
               tern_onnx_is_available() ? "no libonnx-testdata" : "this build does not read ONNX");
        return 77;
    }
    printf("%d passed, %d failed, %d that tern does not have; %d written again, %d that are not "
           "written\n",
           passed, failed, lacking, written, refused);
    return failed > 0;
}
