/* save.h -- the selection and order of tensors to write, and the functions that write them. */
#ifndef TERN_IO_SAVE_H
#define TERN_IO_SAVE_H
#include "base/text.h"
#include "io/out.h"
#include "io/types.h"
#include <tern/io/file.h>

/* Some of a dict's tensors. */
typedef struct io_list {
    const tern_state_dict *dict;
    int *place; /* count indices in dict, in the file's order */
    int count;
} io_list;

/* Lists all tensors of a dict; the caller frees list->place. Fails if a name is not UTF-8, or
 * empty. */
tern_status io_list_all(const tern_state_dict *dict, const char *function, io_list *list);
uint64_t io_tensor_bytes(const tern_tensor *x);
/* Appends text as a JSON string. */
void io_json_text(tern_text *to, const char *text);
bool io_is_utf8(const char *text);

/* Writes a list as one file. It opens out, which has no name yet afterwards. */
tern_status io_safetensors_write(io_out *out, const io_list *list);
/* tern_save with another function in errors; the extension of path does not matter. */
tern_status io_save(const tern_state_dict *dict, const char *path, const tern_save_options *options,
                    const char *function);
tern_status io_save_shards(const io_list *list, const char *path, uint64_t most,
                           const char *function);

#endif
