/* images.h -- images of 28 x 28 with labels, read or drawn, and training with them: what the
 * examples that look at images share, so that each is its network and its step. */
#ifndef EXAMPLES_IMAGES_H
#define EXAMPLES_IMAGES_H
#include <stdbool.h>
#include <tern/tern.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, KINDS = 4 };

/* The command line: [IMAGES LABELS] [--device D] [--seed N] [--epochs N] [--train N]
 * [--snapshots FOLDER] [--every N]. */
typedef struct image_settings {
    const char *images, *labels, *device;
    const char *snapshots; /* where to go on from, and to save to; NULL: nothing is saved */
    uint64_t seed;
    int epochs, train; /* train: how many images at most; 0: all */
    int every;         /* steps from one snapshot to the next */
} image_settings;

typedef struct image_set {
    tern_dataset *train, *held; /* the images trained with; those that are held out */
    int classes;
    double mean, deviation; /* of pixels from 0 to 1: what is taken off, and divided by */
    uint64_t seed;
} image_set;

/* The defaults, then the command line; false where it is wrong. */
bool image_settings_read(image_settings *s, int argc, char **argv);

/* Read the files, a fifth held out, or draw images of KINDS kinds. False after a message to stderr.
 * Closing is due in either case. */
bool images_open(image_set *d, const image_settings *s, double mean, double deviation);
void images_close(image_set *d);
/* A disc, a box, a cross or a ring (kind 0 to 3) somewhere, of some size: bytes 0 and 255. */
void image_draw(uint64_t *random, uint8_t *image, int kind);

/* One step on x (N, 1, 28, 28) and y (N) -> its loss. */
typedef tern_tensor *(*image_step)(tern_module *model, tern_optimizer *optimizer, tern_tensor *x,
                                   tern_tensor *y);
/* Epochs of steps; after each a line with the mean loss and how many percent of the images held out
 * the model tells right. With s->snapshots it goes on where the newest one there stands, whatever
 * ended the process that wrote it, and ends with the same numbers. */
void images_train(image_set *d, const image_settings *s, tern_module *model,
                  tern_optimizer *optimizer, image_step step);

#endif
