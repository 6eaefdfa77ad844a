/* save.c -- tern_save: one file, or several with their index. */
#include "io/save.h"
#include "base/option.h"
#include <string.h>

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), k = strlen(with);
    return n >= k && strcmp(text + n - k, with) == 0;
}

static tern_status save_one(const io_list *list, const char *path, const char *function)
{
    io_out out = {.function = function, .path = path};
    tern_status status = io_safetensors_write(&out, list);
    if (status == TERN_OK)
        status = io_out_commit(&out);
    io_out_close(&out);
    return status;
}

tern_status io_save(const tern_state_dict *dict, const char *path, const tern_save_options *options,
                    const char *function)
{
    static const char *const read_only[] = {".pt", ".pth", ".ckpt", ".onnx", ".bin"};
    tern_save_options o = tern_read_save(options);
    if (!dict || !path)
        return tern_fail_argument_null(function, dict ? "path" : "dict");
    TERN_TRY(tern_last_status());
    for (size_t i = 0; i < sizeof read_only / sizeof *read_only; i++)
        if (ends(path, read_only[i]))
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "%s: \"%s\": %s files are not written, safetensors are, which PyTorch "
                             "loads too: call it .safetensors",
                             function, path, read_only[i]);
    io_list list;
    tern_status status = io_list_all(dict, function, &list);
    if (status == TERN_OK)
        status = o.max_shard_size ? io_save_shards(&list, path, o.max_shard_size, function)
                                  : save_one(&list, path, function);
    tern_free(list.place);
    return status;
}

tern_status tern_save(const tern_state_dict *dict, const char *path,
                      const tern_save_options *options)
{
    return io_save(dict, path, options, "tern_save");
}
