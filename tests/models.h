/* models.h -- what tests of pretrained models share: the reference models beside the repository, folders, and
 * comparisons by their README's tolerances. */
#ifndef TERN_TESTS_MODELS_H
#define TERN_TESTS_MODELS_H
#include "support.h"
#include <tern/models.h>

/* The path of a reference model's folder, in golden/models or beside the repository, or of a file in it (NULL: of the folder). */
const char *models_path(const char *name, const char *file);
/* main of these tests: 77, loudly, where there are no reference models. */
int models_main(const struct CMUnitTest *tests, size_t n);

/* What the file has, on the device but for float64, which stays on the cpu. */
tern_state_dict *models_read(const char *path, const char *device);
/* The same of a file of a reference model. */
tern_state_dict *models_reference(const char *name, const char *file, const char *device);
/* A tensor of it that must be there; one that may. */
tern_tensor *models_get(tern_state_dict *reference, const char *format, ...) TERN_PRINTF_(2, 3);
/* The model's inputs, as they are in it. */
tern_model_inputs models_inputs(tern_state_dict *reference);
/* In float32 on device. */
tern_module *models_load(const char *folder, const char *device);

/* The largest |a - b| is at most `relative` of the largest |b|, plus `absolute`. */
#define assert_near(a, b, relative, absolute)                                                      \
    models_near(a, b, relative, absolute, #a, __FILE__, __LINE__)
void models_near(tern_tensor *a, tern_tensor *b, double relative, double absolute, const char *what,
                 const char *file, int line);

/* models_compare.c: every gradient that the reference has; how many. */
int models_compare_gradients(tern_module *m, tern_state_dict *reference);
/* Logits in training, loss, gradients, five steps of AdamW, running statistics. other: losses and statistics of another way on that is as
 * right, where float32 does not decide between them (golden/other_side.py); or NULL. */
void models_compare_training(tern_module *m, tern_state_dict *reference, tern_state_dict *other);
/* What was saved to folder has the tensors of the folder `from`, bit for bit. */
void models_compare_files(const char *folder, const char *from);

/* A new folder with links to all files of a reference model; files are put into it with models_write. */
char *models_folder(const char *name);
void models_write(const char *folder, const char *file, const char *text);
/* All of a file, to be freed. */
char *models_text(const char *path);
void models_remove(char *folder);

#endif
