/* list.h -- a list of sizes as Python prints it. */
#ifndef TERN_NN_LIST_H
#define TERN_NN_LIST_H
#include <tern/tensor.h>

typedef struct tern_list_text {
    char text[192];
} tern_list_text;
/* 2 or (2, 3), as it was given; with tuple always in brackets: (2,). -1 is None if `none`. */
tern_list_text tern_list_to_text(const tern_shape *list, bool tuple, bool none);
#define LIST(list)  (tern_list_to_text(&(list), false, false).text)
#define TUPLE(list) (tern_list_to_text(&(list), true, false).text)

#endif
