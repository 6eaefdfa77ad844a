/* save.c -- tern_save: writes one file, or several with their index. */
#include "io/save.h"
#include "base/os.h"
#include "base/option.h"
#include <string.h>

static tern_status save_one(const io_list *list, const char *path, const char *function)
{
    io_out out = {.function = function, .path = path};
    tern_status status = io_safetensors_write(&out, list);
    if (status == TERN_OK)
        status = io_out_commit(&out);
    io_out_close(&out);
    return status;
}

/* Refuses extensions of other formats, in any case; the first three are written by other
 * functions. */
static tern_status check_name(const char *path, const char *function)
{
    static const char *const by[] = {" but by tern_npz_save", " but by tern_npy_save",
                                     " but by tern_onnx_export", ""};
    static const char others[][8] = {"npz", "npy",  "onnx", "pt",   "pth", "ckpt",
                                     "bin", "gguf", "h5",   "hdf5", "pkl"};
    const char *end = strrchr(path, '.');
    for (size_t i = 0; end && i < sizeof others / sizeof *others; i++)
        if (tern_os_strcasecmp(end + 1, others[i]) == 0)
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "%s: \"%s\": .%s files are not written%s, safetensors are, which "
                             "PyTorch loads too: call it .safetensors",
                             function, path, others[i], by[i < 3 ? i : 3]);
    return TERN_OK;
}

tern_status io_save(const tern_state_dict *dict, const char *path, const tern_save_options *options,
                    const char *function)
{
    tern_save_options o = tern_read_save(options);
    if (!dict || !path)
        return tern_fail_argument_null(function, dict ? "path" : "dict");
    TERN_TRY(tern_last_status());
    TERN_TRY(check_name(path, function));
    if (o.type)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: \"%s\": type is \"%.40s\", and only a GGUF has one", function, path,
                         o.type);
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
