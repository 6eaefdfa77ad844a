/* list.h -- internals of printing a list of sizes as Python does. */
#ifndef TERN_NN_LIST_H
#define TERN_NN_LIST_H
#include <tern/tensor.h>

typedef struct tern_list_text {
    char text[192];
} tern_list_text;
/* Returns 2 or (2, 3). With `tuple`, one number has brackets too: (2,). With `none`, -1 is printed
 * as None. */
tern_list_text tern_list_to_text(const tern_shape *list, bool tuple, bool none);
#define LIST(list)  (tern_list_to_text(&(list), false, false).text)
#define TUPLE(list) (tern_list_to_text(&(list), true, false).text)

#endif
