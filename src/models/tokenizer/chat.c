/* chat.c -- reads the chat templates of a folder's files into an object of texts by name. */
#include "models/tokenizer/tokenizer.h"
#include "base/os.h"
#include "models/tokenizer/maker.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tern_status add(const char *function, json_t *templates, const char *name, const char *text,
                       size_t n)
{
    json_t *value = json_stringn(text, n);
    if (!value)
        return tern_fail(TERN_ERR_IO, "%s: the chat template '%.80s' is not UTF-8", function, name);
    return json_object_set_new(templates, name, value) == 0
               ? TERN_OK
               : tern_fail(TERN_ERR_MEMORY, "%s: no memory for a chat template", function);
}

/* Adds the template of a file; a missing file is no error. */
static tern_status add_file(const char *function, json_t *templates, const char *folder,
                            const char *file, const char *name)
{
    char path[4600];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    char *text = tk_read_file(function, path, true, &n);
    if (!text)
        return n ? TERN_ERR_IO : TERN_OK;
    tern_status status = add(function, templates, name, text, n);
    free(text);
    return status;
}

/* Adds the files additional_chat_templates/NAME.jinja. */
static tern_status add_folder(const char *function, json_t *templates, const char *folder)
{
    static const char end[] = ".jinja";
    char path[4500];
    tern_status status = TERN_OK;
    snprintf(path, sizeof path, "%s/additional_chat_templates", folder);
    tern_os_dir *entries = tern_os_opendir(path);
    for (struct tern_os_dirent *e;
         entries && status == TERN_OK && (e = tern_os_readdir(entries));) {
        char name[256];
        const size_t n = strlen(e->d_name), k = sizeof end - 1;
        if (e->d_name[0] == '.' || n <= k || n >= sizeof name || strcmp(e->d_name + n - k, end))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(n - k), e->d_name);
        status = add_file(function, templates, path, e->d_name, name);
    }
    if (entries)
        tern_os_closedir(entries);
    return status;
}

/* Adds a text, or a list of {"name", "template"}. */
static tern_status add_value(const char *function, json_t *templates, const json_t *value)
{
    size_t i;
    const json_t *one;
    if (json_is_string(value))
        return add(function, templates, "default", json_string_value(value),
                   json_string_length(value));
    tern_status status = TERN_OK;
    json_array_foreach(value, i, one)
    {
        const json_t *text = json_object_get(one, "template");
        const char *name = json_string_value(json_object_get(one, "name"));
        if (status == TERN_OK && name && *name && json_is_string(text))
            status =
                add(function, templates, name, json_string_value(text), json_string_length(text));
    }
    return status;
}

/* Adds {"chat_template": "..."} of the file that older processors have. */
static tern_status add_json(const char *function, json_t *templates, const char *folder)
{
    char path[4600], where[5000];
    size_t n;
    snprintf(path, sizeof path, "%s/chat_template.json", folder);
    snprintf(where, sizeof where, "%s: %s", function, path);
    char *text = tk_read_file(function, path, true, &n);
    if (!text)
        return n ? TERN_ERR_IO : TERN_OK;
    json_t *json = tk_parse(where, text, n);
    free(text);
    tern_status status =
        json ? add_value(function, templates, json_object_get(json, "chat_template")) : TERN_ERR_IO;
    json_decref(json);
    return status;
}

json_t *tk_chat_templates(const char *function, const char *folder, const json_t *config)
{
    json_t *templates = json_object();
    tern_status status =
        templates ? add_file(function, templates, folder, "chat_template.jinja", "default")
                  : tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
    if (status == TERN_OK)
        status = add_folder(function, templates, folder);
    if (status == TERN_OK && json_object_size(templates) == 0)
        status = add_value(function, templates, json_object_get(config, "chat_template"));
    if (status == TERN_OK && json_object_size(templates) == 0)
        status = add_json(function, templates, folder);
    if (status == TERN_OK)
        return templates;
    json_decref(templates);
    return NULL;
}
