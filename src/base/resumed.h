/* resumed.h -- whether the snapshot from which a training was resumed has the state of a loader. */
#ifndef TERN_BASE_RESUMED_H
#define TERN_BASE_RESUMED_H
#include <stdbool.h>

/* Records that a snapshot was loaded, and whether it has an optimizer's state but no loader's. The
 * second function returns what the last call recorded. */
void tern_resumed_note(bool without_loader);
bool tern_resumed_without_loader(void);

#endif
