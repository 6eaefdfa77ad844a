/* address.c -- URLs and names of models on a hub, given where a path is expected. */
#include "base/address.h"
#include "base/os.h"
#include "base/text.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Returns whether path begins with "https://" or similar. */
static bool is_url(const char *path)
{
    const char *end = strstr(path, "://");
    for (const char *c = path; end && c < end; c++)
        if (!isalnum((unsigned char)*c))
            return false;
    return end && end > path;
}

/* Returns whether path is OWNER/NAME, with no file name's ending and no folder OWNER. */
static bool is_hub_name(const char *path)
{
    static const char *const endings[] = {".safetensors", ".gguf", ".pt",    ".pth",
                                          ".bin",         ".ckpt", ".npz",   ".npy",
                                          ".json",        ".onnx", ".model", ".txt"};
    char owner[200];
    struct tern_os_stat about;
    const char *slash = strchr(path, '/');
    const size_t first = slash ? (size_t)(slash - path) : 0;
    if (!first || first >= sizeof owner || !slash[1] || strchr(slash + 1, '/') || *path == '.' ||
        *path == '~')
        return false;
    for (const char *c = path; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("/._-", *c))
            return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (tern_ends_with(path, endings[i]))
            return false;
    snprintf(owner, sizeof owner, "%.*s", (int)first, path);
    return tern_os_stat(owner, &about) != 0;
}

tern_status tern_refuse_address(const char *function, const char *path)
{
    if (is_url(path)) {
        const char *name = strrchr(path, '/') + 1;
        return tern_fail(
            TERN_ERR_IO,
            "%s: \"%s\" is an address, and nothing is fetched: download %s, as by `curl "
            "-LO`, and give the path of the file",
            function, path, *name ? name : "the file");
    }
    if (is_hub_name(path))
        return tern_fail(
            TERN_ERR_IO,
            "%s: there is no file or folder \"%s\". If it is a model of the Hugging Face "
            "Hub, nothing is fetched: download config.json, model.safetensors (or its "
            "index and parts) and tokenizer.json, as by `hf download %s --local-dir "
            "FOLDER`, and give the folder",
            function, path, path);
    return TERN_OK;
}
