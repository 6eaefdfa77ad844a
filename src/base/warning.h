/* warning.h -- warnings: conditions that are no errors, but probably not intended. */
#ifndef TERN_BASE_WARNING_H
#define TERN_BASE_WARNING_H
#include <tern/error.h>

/* Calls the handler of tern_on_warning with "operation: ..." in printf's format, once for each
 * combination of kind, operation, format, and the line of the program if known. kind is one word
 * ("broadcast"), operation the name of a public function ("tern_mse_loss"). Records no error;
 * without a handler it costs one load. */
void tern_warn(const char *kind, const char *operation, const char *format, ...) TERN_PRINTF_(3, 4);

/* Returns whether there is a handler, for work that is only done for a message. */
bool tern_warns(void);

#endif
