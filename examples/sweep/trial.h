/* trial.h -- one setting of the hyperparameters, and how good it is after some epochs. */
#ifndef SWEEP_TRIAL_H
#define SWEEP_TRIAL_H
#include <stdint.h>
#include <tern/tern.h>

typedef struct trial_settings {
    double lr, weight_decay;
    int width, layers, batch_size;
} trial_settings;

/* Those of trial number i of a search with that seed: always the same. */
trial_settings trial_draw(uint64_t seed, int i);

/* Two interleaved spirals to tell apart, made alike by every process. */
typedef struct trial_data {
    tern_dataset *train;
    tern_tensor *x, *y; /* held out */
} trial_data;
tern_status trial_data_open(trial_data *d);
void trial_data_close(trial_data *d);

/* Train until so many epochs are done, from the newest snapshot in folder if there is one, and leave another there:
 * the loss and the share of right answers on what was held out. */
tern_status trial_train(const trial_data *d, const trial_settings *s, int number, int epochs,
                        const char *folder, double *loss, double *accuracy);

#endif
