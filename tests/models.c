/* models.c -- what tests of pretrained models share. */
#include "models.h"
#include "temporary.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARED TEST_FOLDER "/../../shared/models"

const char *models_path(const char *name, const char *file)
{
    static char paths[4][1024];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], TEST_FOLDER "/golden/models/%s", name);
    bool golden = access(path, R_OK) == 0;
    snprintf(path, sizeof paths[0], "%s/%s%s%s", golden ? TEST_FOLDER "/golden/models" : SHARED,
             name, file ? "/" : "", file ? file : "");
    return path;
}

int models_main(const struct CMUnitTest *tests, size_t n)
{
    if (access(SHARED "/llama/config.json", R_OK) != 0) {
        printf(
            "SKIP: there are no reference models in ../shared/models: nothing of pretrained models "
            "was compared with PyTorch\n");
        return 77;
    }
    return test_main(tests, n);
}

tern_state_dict *models_read(const char *path, const char *device)
{
    tern_state_dict *all = tern_load(path, NULL);
    assert_non_null(all);
    for (int i = 0; i < tern_state_dict_count(all); i++)
        TERN_SCOPE {
            tern_tensor *x = tern_state_dict_at(all, i);
            if (tern_dtype_of(x) != TERN_F64)
                assert_ok(
                    tern_state_dict_set(all, tern_state_dict_key_at(all, i), tern_to(x, device)));
        }
    return all;
}

tern_state_dict *models_reference(const char *name, const char *file, const char *device)
{
    return models_read(models_path(name, file), device);
}

tern_tensor *models_get(tern_state_dict *reference, const char *format, ...)
{
    char name[512];
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof name, format, list);
    va_end(list);
    return tern_state_dict_get(reference, name);
}

tern_model_inputs models_inputs(tern_state_dict *r)
{
    return (tern_model_inputs){
        .input_ids = models_get(r, "input.input_ids"),
        .attention_mask = models_get(r, "input.attention_mask"),
        .token_type_ids = models_get(r, "input.token_type_ids"),
        .pixel_values = models_get(r, "input.pixel_values"),
        .input_features = models_get(r, "input.input_features"),
        .labels = models_get(r, "input.labels"),
    };
}

tern_module *models_load(const char *folder, const char *device)
{
    tern_module *m = tern_models_from_pretrained(
        folder, &(tern_pretrained_options){.dtype = TERN_F32, .device = device});
    if (!m)
        print_error("%s\n", tern_last_error());
    assert_non_null(m);
    return m;
}

static double largest(const tern_tensor *x)
{
    double *values = test_read(x), most = 0;
    for (int64_t i = 0; i < tern_numel(x); i++)
        most = fmax(most, fabs(values[i]));
    free(values);
    return most;
}

void models_near(tern_tensor *a, tern_tensor *b, double relative, double absolute, const char *what,
                 const char *file, int line)
{
    if (!a || !b || !tern_same_shape(a, b)) {
        print_error("%s: %s or its reference is not there, or of another shape: %s\n", what,
                    a ? "it" : "", tern_last_error());
        _fail(file, line);
    }
    double *x = test_read(a), *y = test_read(b), most = 0;
    for (int64_t i = 0; i < tern_numel(a); i++)
        most = isnan(x[i]) ? INFINITY : fmax(most, fabs(x[i] - y[i]));
    free(x);
    free(y);
    double allowed = relative * largest(b) + absolute;
    if (most <= allowed)
        return;
    print_error("%s differs by %g, %g is allowed\n", what, most, allowed);
    _fail(file, line);
}

/* ---- folders ----------------------------------------------------------------------------- */

static void link_or_copy(const char *from, const char *to)
{
    if (symlink(from, to) == 0)
        return;
    DIR *folder = opendir(from); /* there are no links */
    if (folder) {
        assert_int_equal(mkdir(to, 0700), 0);
        for (struct dirent *e; (e = readdir(folder));) {
            char below[2][1024];
            snprintf(below[0], sizeof below[0], "%s/%s", from, e->d_name);
            snprintf(below[1], sizeof below[1], "%s/%s", to, e->d_name);
            if (e->d_name[0] != '.')
                link_or_copy(below[0], below[1]);
        }
        closedir(folder);
        return;
    }
    FILE *source = fopen(from, "rb"), *copy = fopen(to, "wb");
    assert_true(source && copy);
    for (int c; (c = getc(source)) != EOF;)
        putc(c, copy);
    fclose(source);
    assert_int_equal(fclose(copy), 0);
}

char *models_folder(const char *name)
{
    char *folder = temporary(malloc(TEMPORARY_BYTES), "tern-models-XXXXXX");
    assert_non_null(mkdtemp(folder));
    DIR *from = name ? opendir(models_path(name, NULL)) : NULL;
    for (struct dirent *e; from && (e = readdir(from));) {
        char to[1024];
        snprintf(to, sizeof to, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.')
            link_or_copy(models_path(name, e->d_name), to);
    }
    if (from)
        closedir(from);
    return folder;
}

void models_write(const char *folder, const char *file, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    unlink(path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

char *models_text(const char *path)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = calloc(1, 1 << 16);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

void models_remove(char *folder)
{
    DIR *all = opendir(folder);
    for (struct dirent *e; all && (e = readdir(all));) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (all)
        closedir(all);
    rmdir(folder);
    free(folder);
}
