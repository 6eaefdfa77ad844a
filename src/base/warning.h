/* warning.h -- telling the program what is odd but right. */
#ifndef TERN_BASE_WARNING_H
#define TERN_BASE_WARNING_H
#include <tern/error.h>

/* Tell tern_on_warning's handler "operation: ..." in printf's format, once for each place, which is
 * kind, operation and format, and the line of the program where that is known. kind is one word
 * ("broadcast"), operation a public function's name ("tern_mse_loss"). Records no error, and costs
 * a load where nobody listens. */
void tern_warn(const char *kind, const char *operation, const char *format, ...) TERN_PRINTF_(3, 4);

/* Whether anybody listens: for what is only worked out for a message. */
bool tern_warns(void);

#endif
