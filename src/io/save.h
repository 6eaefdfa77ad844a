/* save.h -- tensors that are to be written: which, in what order, into which files. */
#ifndef TERN_IO_SAVE_H
#define TERN_IO_SAVE_H
#include "base/text.h"
#include "io/out.h"
#include "io/types.h"
#include <tern/io/file.h>

/* Some tensors of a dict. */
typedef struct io_list {
    const tern_state_dict *dict;
    int *place; /* of count: those in it, as a file has them */
    int count;
} io_list;

/* All that a dict has; place is to be freed. Names were checked: UTF-8, not empty. */
tern_status io_list_all(const tern_state_dict *dict, const char *function, io_list *list);
uint64_t io_tensor_bytes(const tern_tensor *x);
/* "text" as JSON. */
void io_json_text(tern_text *to, const char *text);
bool io_is_utf8(const char *text);

/* Write a list as one file; out is not open yet, and is open afterwards, without a name. */
tern_status io_safetensors_write(io_out *out, const io_list *list);
/* tern_save, whatever the path's name: of function. */
tern_status io_save(const tern_state_dict *dict, const char *path, const tern_save_options *options,
                    const char *function);
tern_status io_save_shards(const io_list *list, const char *path, uint64_t most,
                           const char *function);

#endif
