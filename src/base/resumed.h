/* resumed.h -- what loaders receive of the snapshot that a training goes on from. */
#ifndef TERN_BASE_RESUMED_H
#define TERN_BASE_RESUMED_H
#include <stdbool.h>

/* A snapshot was loaded, whether of a training with an optimizer and without the state of a
 * loader. */
void tern_resumed_note(bool without_loader);
bool tern_resumed_without_loader(void);

#endif
