/* safetensors_write.c -- writes tensors as a safetensors file, byte for byte as the reference
 * library: sorted by type, then by name, the header without blanks and padded to a multiple of
 * 8. */
#include "base/checked.h"
#include "io/save.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ----------------------------------------------------------------------------------- */

bool io_is_utf8(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    while (*c) {
        int more = *c < 0x80 ? 0 : *c >= 0xc2 && *c < 0xe0 ? 1 : *c >= 0xe0 && *c < 0xf0 ? 2 : 3;
        if (*c >= 0xf5 || (*c >= 0x80 && *c < 0xc2))
            return false;
        unsigned char low = *c == 0xe0 ? 0xa0 : *c == 0xf0 ? 0x90 : 0x80;
        unsigned char high = *c == 0xed ? 0x9f : *c == 0xf4 ? 0x8f : 0xbf;
        for (c++; more; more--, c++, low = 0x80, high = 0xbf)
            if (*c < low || *c > high)
                return false;
    }
    return true;
}

void io_json_text(tern_text *to, const char *text)
{
    static const char names[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    tern_text_add_bytes(to, "\"", 1);
    for (const char *c = text; *c;) {
        size_t plain = 0;
        while ((unsigned char)c[plain] >= 0x20 && c[plain] != '"' && c[plain] != '\\')
            plain++;
        tern_text_add_bytes(to, c, plain);
        c += plain;
        if (!*c)
            break;
        const char *name = strchr(names, *c);
        if (name)
            tern_text_add(to, "\\%c", letters[name - names]);
        else
            tern_text_add(to, "\\u%04x", (unsigned)*c);
        c++;
    }
    tern_text_add_bytes(to, "\"", 1);
}

/* ---- lists ------------------------------------------------------------------------------- */

uint64_t io_tensor_bytes(const tern_tensor *x)
{
    return (uint64_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
}

static tern_status check_text(const char *text, const char *what, const char *function)
{
    if (*text && strcmp(text, "__metadata__") != 0 && io_is_utf8(text))
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: %s can't be called \"%s\": %s", function, what, text,
                     !*text             ? "it needs a name"
                     : io_is_utf8(text) ? "that is the metadata's name"
                                        : "it is no UTF-8");
}

tern_status io_list_all(const tern_state_dict *dict, const char *function, io_list *list)
{
    int n = tern_state_dict_count(dict);
    *list = (io_list){.dict = dict, .count = n};
    for (int i = 0; i < n; i++) {
        TERN_TRY(check_text(tern_state_dict_key_at(dict, i), "a tensor", function));
        tern_dtype dtype = tern_dtype_of(tern_state_dict_at(dict, i));
        if (!io_type_of(dtype))
            return tern_fail(TERN_ERR_DTYPE, "%s: safetensors has no %s", function,
                             tern_dtype_name(dtype));
    }
    for (int i = 0; i < tern_state_dict_metadata_count(dict); i++) {
        const char *key = tern_state_dict_metadata_key_at(dict, i);
        if (!io_is_utf8(key) || !io_is_utf8(tern_state_dict_metadata(dict, key)))
            return tern_fail(TERN_ERR_ARGUMENT, "%s: metadata is no UTF-8", function);
    }
    list->place = tern_grow(NULL, sizeof *list->place * ((size_t)n + 1));
    for (int i = 0; list->place && i < n; i++)
        list->place[i] = i;
    return list->place ? TERN_OK : TERN_ERR_MEMORY;
}

/* ---- the header -------------------------------------------------------------------------- */

/* A tensor to write. */
typedef struct item {
    const char *name;
    tern_tensor *x;
    const io_type *type;
} item;

static int in_order(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int rank = io_type_rank(x->type) - io_type_rank(y->type);
    return rank ? rank : strcmp(x->name, y->name);
}

static void add_metadata(tern_text *header, const tern_state_dict *dict)
{
    int n = tern_state_dict_metadata_count(dict);
    if (!n)
        return;
    tern_text_add(header, "\"__metadata__\":");
    for (int i = 0; i < n; i++) {
        const char *key = tern_state_dict_metadata_key_at(dict, i);
        tern_text_add(header, i ? "," : "{");
        io_json_text(header, key);
        tern_text_add(header, ":");
        io_json_text(header, tern_state_dict_metadata(dict, key));
    }
    tern_text_add(header, "}");
}

/* Returns the header with its length before it, and sets *data to the number of bytes that
 * follow. */
static tern_text header_of(const item *items, int n, const tern_state_dict *dict, uint64_t *data)
{
    tern_text header = {0};
    uint64_t at = 0;
    tern_text_add_bytes(&header, "\0\0\0\0\0\0\0\0{", 9);
    add_metadata(&header, dict);
    for (int i = 0; i < n; i++) {
        tern_shape shape = tern_shape_of(items[i].x);
        tern_text_add(&header, i || header.length > 9 ? "," : "");
        io_json_text(&header, items[i].name);
        tern_text_add(&header, ":{\"dtype\":\"%s\",\"shape\":[", items[i].type->name);
        for (int k = 0; k < shape.ndim; k++)
            tern_text_add(&header, "%s%lld", k ? "," : "", (long long)shape.dims[k]);
        uint64_t end = at + io_tensor_bytes(items[i].x);
        tern_text_add(&header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                      (unsigned long long)end);
        at = end;
    }
    tern_text_add(&header, "}");
    while (!header.failed && header.length % 8)
        tern_text_add_bytes(&header, " ", 1);
    uint64_t length = header.length - 8;
    for (int i = 0; i < 8 && !header.failed; i++)
        header.data[i] = (char)(length >> 8 * i & 255);
    *data = at;
    return header;
}

static tern_status write_items(io_out *out, const io_list *list, item *items)
{
    enum { MOST_HEADER = 100000000 };
    for (int i = 0; i < list->count; i++) {
        items[i].name = tern_state_dict_key_at(list->dict, list->place[i]);
        items[i].x = tern_state_dict_at(list->dict, list->place[i]);
        items[i].type = io_type_of(tern_dtype_of(items[i].x));
    }
    if (list->count)
        qsort(items, (size_t)list->count, sizeof *items, in_order);
    uint64_t data;
    tern_text header = header_of(items, list->count, list->dict, &data);
    tern_status status = header.failed ? TERN_ERR_MEMORY : TERN_OK;
    if (status == TERN_OK && header.length > MOST_HEADER)
        status = tern_fail(TERN_ERR_ARGUMENT,
                           "%s: names and metadata are %zu bytes long, %d are allowed",
                           out->function, header.length, MOST_HEADER);
    if (status == TERN_OK)
        status = io_out_open(out, header.length + data);
    if (status == TERN_OK)
        status = io_out_write(out, header.data, header.length);
    tern_text_free(&header);
    for (int i = 0; i < list->count && status == TERN_OK; i++)
        status = io_out_tensor(out, items[i].x, NULL, NULL);
    return status;
}

tern_status io_safetensors_write(io_out *out, const io_list *list)
{
    item *items = tern_alloc(sizeof *items * ((size_t)list->count + 1));
    tern_status status = items ? write_items(out, list, items) : TERN_ERR_MEMORY;
    tern_free(items);
    return status;
}
