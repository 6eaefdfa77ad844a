/* load.c -- reads a tokenizer from a file of any format, and tokenizer_config.json beside it. */
#include "base/address.h"
#include "base/os.h"
#include "models/gguf/gguf.h"
#include "models/option.h"
#include "models/tokenizer/maker.h"
#include <errno.h>
#include <stdio.h>

/* ---- files --------------------------------------------------------------------------------- */

static char *read_failed(const char *function, const char *path, const char *why, size_t *n)
{
    *n = 1;
    tern_fail(TERN_ERR_IO, "%s: can't read %s: %s", function, path, why);
    return NULL;
}

char *tk_read_file(const char *function, const char *path, bool may_lack, size_t *n)
{
    struct tern_os_stat about;
    *n = 0;
    if (tern_os_stat(path, &about) != 0)
        return may_lack && errno == ENOENT ? NULL : read_failed(function, path, strerror(errno), n);
    if (!S_ISREG(about.st_mode)) /* opening a pipe would wait for a writer */
        return read_failed(function, path, S_ISDIR(about.st_mode) ? "a folder" : "no regular file",
                           n);
    FILE *file = tern_os_fopen(path, "rb");
    if (!file || tern_os_fstat(fileno(file), &about) != 0) {
        read_failed(function, path, strerror(errno), n);
        if (file)
            fclose(file);
        return NULL;
    }
    char *bytes = about.st_size < INT32_MAX ? malloc((size_t)about.st_size + 1) : NULL;
    if (bytes)
        *n = fread(bytes, 1, (size_t)about.st_size, file);
    fclose(file);
    if (bytes && *n == (size_t)about.st_size) {
        bytes[*n] = 0;
        return bytes;
    }
    if (bytes)
        read_failed(function, path, "it is shorter than it was", n);
    else
        tern_fail(TERN_ERR_MEMORY, "%s: no memory for %s, %lld bytes", function, path,
                  (long long)about.st_size);
    free(bytes);
    *n = 1;
    return NULL;
}

json_t *tk_parse(const char *where, const char *bytes, size_t n)
{
    json_error_t error;
    json_t *json = json_loadb(bytes, n, JSON_ALLOW_NUL, &error);
    if (json && json_is_object(json))
        return json;
    if (json)
        tern_fail(TERN_ERR_IO, "%s: it is not a JSON object", where);
    else
        tern_fail(TERN_ERR_IO, "%s: it is not JSON: %s at line %d", where, error.text, error.line);
    json_decref(json);
    return NULL;
}

/* ---- tokenizer.json ------------------------------------------------------------------------ */

/* Reads the sides of "padding" and "truncation" and the padding token; the caller gives the
 * lengths. */
static void read_limits(tern_tokenizer *t, const json_t *json)
{
    const json_t *padding = json_object_get(json, "padding"),
                 *cut = json_object_get(json, "truncation");
    const char *side = json_string_value(json_object_get(padding, "direction"));
    t->pad_left = side && strcmp(side, "Left") == 0;
    t->pad_id = tk_int(padding, "pad_id", -1);
    side = json_string_value(json_object_get(cut, "direction"));
    t->cut_left = side && strcmp(side, "Left") == 0;
}

static tern_status read_parts(tern_tokenizer *t, const char *function, const json_t *json)
{
    TK_TRY(tk_step_read(function, "normalizer", tk_normalizers, json_object_get(json, "normalizer"),
                        &t->normalizer));
    TK_TRY(tk_step_read(function, "pre_tokenizer", tk_pre_tokenizers,
                        json_object_get(json, "pre_tokenizer"), &t->pre_tokenizer));
    TK_TRY(tk_step_read(function, "decoder", tk_decoders, json_object_get(json, "decoder"),
                        &t->decoder));
    TK_TRY(tk_model_read(&t->model, function, json_object_get(json, "model")));
    TK_TRY(tk_added_read(&t->added, function, json_object_get(json, "added_tokens"),
                         &t->model.vocab, t->normalizer));
    TK_TRY(tk_post_read(&t->post, function, json_object_get(json, "post_processor")));
    read_limits(t, json);
    return TERN_OK;
}

tern_tokenizer *tk_tokenizer_read(const char *function, const char *bytes, size_t n)
{
    tern_tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for a tokenizer", function);
    tern_status status;
    json_t *json = tk_lists_read(&t->model, bytes, n, &status);
    if (!json && status == TERN_OK)
        json = tk_parse(function, bytes, n);
    t->pad_id = t->bos_id = t->eos_id = -1;
    t->n_json = n;
    t->json = json ? tk_copy(bytes, n) : NULL;
    if (!t->json || read_parts(t, function, json) != TERN_OK) {
        tern_tokenizer_free(t);
        t = NULL;
    }
    json_decref(json);
    return t;
}

void tern_tokenizer_free(tern_tokenizer *t)
{
    if (!t)
        return;
    tk_step_free(t->normalizer);
    tk_step_free(t->pre_tokenizer);
    tk_step_free(t->decoder);
    tk_added_free(&t->added);
    tk_model_free(&t->model);
    tk_post_free(&t->post);
    free(t->chat_template);
    free(t->json);
    free(t);
}

/* ---- tokenizer_config.json ----------------------------------------------------------------- */

/* Returns the id of the token that a key names, "</s>" or {"content": "</s>"}, or otherwise. */
static int64_t named(const tern_tokenizer *t, const json_t *json, const char *key,
                     int64_t otherwise)
{
    size_t n;
    const json_t *value = json_object_get(json, key);
    const char *text =
        json_is_object(value) ? tk_string(value, "content", &n) : tk_string(json, key, &n);
    int64_t id = text ? tern_tokenizer_token_to_id(t, text) : -1;
    return id < 0 ? otherwise : id;
}

/* Adds the tokens of added_tokens_decoder, {"number": {"content": ..., "special": ...}}, like those
 * of "added_tokens". */
static tern_status add_tokens(tern_tokenizer *t, const char *where, const json_t *config)
{
    json_t *list = json_array();
    const json_t *all = json_object_get(config, "added_tokens_decoder");
    for (void *i = json_object_iter((json_t *)all); list && i;
         i = json_object_iter_next((json_t *)all, i)) {
        json_t *one = json_copy(json_object_iter_value(i));
        json_object_set_new(one, "id", json_integer(strtoll(json_object_iter_key(i), NULL, 10)));
        json_array_append_new(list, one);
    }
    tern_status status =
        list ? tk_added_read(&t->added, where, list, &t->model.vocab, t->normalizer)
             : tern_fail(TERN_ERR_MEMORY, "%s: no memory for the added tokens", where);
    json_decref(list);
    return status;
}

static tern_status apply_config(tern_tokenizer *t, const json_t *json)
{
    const char *side = json_string_value(json_object_get(json, "padding_side"));
    if (side)
        t->pad_left = strcmp(side, "left") == 0;
    side = json_string_value(json_object_get(json, "truncation_side"));
    if (side)
        t->cut_left = strcmp(side, "left") == 0;
    t->pad_id = named(t, json, "pad_token", t->pad_id);
    t->bos_id = named(t, json, "bos_token", t->bos_id);
    t->eos_id = named(t, json, "eos_token", t->eos_id);
    return TERN_OK;
}

/* Reads the chat template "default" from the files beside path or from config. */
static tern_status find_template(const char *function, tern_tokenizer *t, const char *path,
                                 const json_t *config)
{
    char folder[4096];
    const char *slash = tern_os_last_slash(path);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    json_t *templates = tk_chat_templates(function, folder, config);
    const char *chat = json_string_value(json_object_get(templates, "default"));
    t->chat_template = chat ? tk_copy(chat, strlen(chat)) : NULL;
    const bool good = templates && (!chat || t->chat_template);
    json_decref(templates);
    return good ? TERN_OK : TERN_ERR_IO;
}

/* *config is NULL if the file does not exist. */
static tern_status read_config(const char *function, const char *path, json_t **config)
{
    size_t n;
    char *bytes = tk_read_file(function, path, true, &n), where[5000];
    *config = NULL;
    if (!bytes)
        return n ? TERN_ERR_IO : TERN_OK;
    snprintf(where, sizeof where, "%s: %s", function, path);
    *config = tk_parse(where, bytes, n);
    free(bytes);
    return *config ? TERN_OK : TERN_ERR_IO;
}

/* Finds the padding token by its usual names if the files do not name it. */
static void find_padding(tern_tokenizer *t)
{
    static const char *const names[] = {"[PAD]", "<pad>", "<|pad|>", "<|finetune_right_pad_id|>"};
    for (size_t i = 0; i < sizeof names / sizeof *names && t->pad_id < 0; i++)
        t->pad_id = tern_tokenizer_token_to_id(t, names[i]);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

/* ---- files of all formats ------------------------------------------------------------------- */

tern_tokenizer *tk_read_json(const char *where, const char *path, const char *bytes, size_t n,
                             const tk_settings *settings)
{
    (void)path, (void)settings;
    return tk_tokenizer_read(where, bytes, n);
}

static tern_tokenizer *of_bytes(const char *function, const char *path, const char *bytes, size_t n,
                                const tk_settings *settings)
{
    char where[5000]; /* start of all error messages about the file */
    snprintf(where, sizeof where, "%s: %s", function, path);
    tk_reader read = tk_reader_of(bytes, n);
    if (!read && ends_with(path, ".json"))
        read = tk_read_json; /* reports what is wrong with the JSON */
    if (!read)
        return tern_fail_null(
            TERN_ERR_IO,
            "%s: it is none of tokenizer.json, a SentencePiece model, a tiktoken file, "
            "tekken.json, vocab.txt, vocab.json and merges.txt, GGUF",
            where);
    if (settings->tiktoken && read != tk_read_tiktoken)
        return tern_fail_null(TERN_ERR_IO, "%s: it is not a tiktoken file", where);
    tern_tokenizer *t = read(where, path, bytes, n, settings);
    bool good = t && (read == tk_read_json || !settings->config ||
                      add_tokens(t, where, settings->config) == TERN_OK);
    good = good && (!settings->config || apply_config(t, settings->config) == TERN_OK);
    if (good) {
        find_padding(t);
        return t;
    }
    tern_tokenizer_free(t);
    return NULL;
}

/* config: path of a tokenizer_config.json, which may be absent; NULL: no such file is read. */
static tern_tokenizer *read_at(const char *function, const char *path, const char *config,
                               const tern_tiktoken_options *tiktoken)
{
    size_t n;
    json_t *json = NULL;
    char *bytes = tk_read_file(function, path, false, &n);
    tern_tokenizer *t = NULL;
    if (bytes && (!config || read_config(function, config, &json) == TERN_OK))
        t = of_bytes(function, path, bytes, n, &(tk_settings){json, tiktoken});
    if (t && config && find_template(function, t, config, json) != TERN_OK) {
        tern_tokenizer_free(t);
        t = NULL;
    }
    free(bytes);
    json_decref(json);
    return t;
}

/* ---- folders ------------------------------------------------------------------------------- */

static const char *const files_of_folders[] = {
    "tokenizer.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
    "vocab.json",     "vocab.txt",       "tekken.json"};

/* Finds the only file of a folder whose name ends so; returns false if there are none or
 * several. */
static bool only_file(const char *folder, const char *end, char path[4096])
{
    int found = 0;
    tern_os_dir *entries = tern_os_opendir(folder);
    for (struct tern_os_dirent *e; entries && (e = tern_os_readdir(entries));)
        if (e->d_name[0] != '.' && ends_with(e->d_name, end) &&
            snprintf(path, 4096, "%s/%s", folder, e->d_name) < 4096)
            found++;
    if (entries)
        tern_os_closedir(entries);
    return found == 1;
}

static bool find_file(const char *folder, char path[4096])
{
    struct tern_os_stat about;
    for (size_t i = 0; i < sizeof files_of_folders / sizeof *files_of_folders; i++)
        if (snprintf(path, 4096, "%s/%s", folder, files_of_folders[i]) < 4096 &&
            tern_os_stat(path, &about) == 0)
            return true;
    return only_file(folder, ".tiktoken", path) || only_file(folder, ".gguf", path);
}

/* Returns the tokenizer of a GGUF file; a tokenizer.json beside the file has precedence. */
static tern_tokenizer *of_gguf(const char *function, const char *file)
{
    char path[2][4096];
    const char *slash = tern_os_last_slash(file);
    int n = slash ? (int)(slash - file) + 1 : 0;
    struct tern_os_stat about;
    if (snprintf(path[0], sizeof path[0], "%.*stokenizer.json", n, file) < (int)sizeof path[0] &&
        snprintf(path[1], sizeof path[1], "%.*stokenizer_config.json", n, file) <
            (int)sizeof path[1] &&
        tern_os_stat(path[0], &about) == 0)
        return read_at(function, path[0], path[1], NULL);
    return gguf_tokenizer(function, file);
}

tern_tokenizer *tern_tokenizer_from_pretrained(const char *directory)
{
    static const char function[] = "tern_tokenizer_from_pretrained";
    char path[2][4096];
    struct tern_os_stat about;
    if (!directory)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: directory is NULL", function);
    if (gguf_is_file(directory))
        return of_gguf(function, directory);
    if (snprintf(path[1], sizeof path[1], "%s/tokenizer_config.json", directory) >=
        (int)sizeof path[1])
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: the path is too long", function);
    if (tern_os_stat(directory, &about) == 0 && S_ISREG(about.st_mode))
        return read_at(function, directory, NULL, NULL);
    if (tern_os_stat(directory, &about) != 0 && tern_refuse_address(function, directory) != TERN_OK)
        return NULL;
    if (tern_os_stat(directory, &about) != 0)
        return tern_fail_null(TERN_ERR_IO, "%s: can't read %s: %s", function, directory,
                              strerror(errno));
    if (!find_file(directory, path[0]))
        return tern_fail_null(
            TERN_ERR_IO,
            "%s: can't read a tokenizer in %s: there is no tokenizer.json, tokenizer.model, "
            "spiece.model, sentencepiece.bpe.model, vocab.json and merges.txt, vocab.txt, "
            "tekken.json, and not one .tiktoken or .gguf",
            function, directory);
    return gguf_is_file(path[0]) ? gguf_tokenizer(function, path[0])
                                 : read_at(function, path[0], path[1], NULL);
}

tern_tokenizer *tern_tokenizer_from_file(const char *path)
{
    static const char function[] = "tern_tokenizer_from_file";
    if (!path)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: path is NULL", function);
    if (gguf_is_file(path))
        return gguf_tokenizer(function, path);
    return read_at(function, path, NULL, NULL);
}

tern_tokenizer *tern_tokenizer_from_tiktoken(const char *path, const tern_tiktoken_options *options)
{
    static const char function[] = "tern_tokenizer_from_tiktoken";
    const tern_tiktoken_options o = tern_read_tiktoken(options);
    if (!path)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: path is NULL", function);
    return read_at(function, path, NULL, &o);
}

const char *tern_tokenizer_chat_template(const tern_tokenizer *t)
{
    return t ? t->chat_template : NULL;
}

tern_status tern_tokenizer_save(const tern_tokenizer *t, const char *path)
{
    static const char function[] = "tern_tokenizer_save";
    if (!t || !path)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s is NULL", function, t ? "path" : "tokenizer");
    FILE *file = tern_os_fopen(path, "wb");
    bool good = file && fwrite(t->json, 1, t->n_json, file) == t->n_json;
    if (file)
        good = fclose(file) == 0 && good;
    return good ? TERN_OK
                : tern_fail(TERN_ERR_IO, "%s: can't write %s: %s", function, path, strerror(errno));
}
