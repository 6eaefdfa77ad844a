/* export_file.c -- writes a graph to a file, with its weights in the same file or in a second
 * one. */
#include "base/memory.h"
#include "base/os.h"
#include "io/onnx/export.h"
#include "io/out.h"
#include <string.h>

/* An ONNX file is limited to 2 GiB. Tensors of less than SMALL bytes stay in the model, since
 * readers look for shapes there. */
enum { SMALL = 1024, ALIGNMENT = 4096 };
static const uint64_t most = (uint64_t)INT32_MAX - (64 << 20);

static uint64_t bytes_of(const tern_tensor *x)
{
    return (uint64_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
}

static const onnx_weight *weight(const onnx_export *w, size_t i)
{
    return w->weights.items[i];
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Stores the bytes of a weight in the model. They live in a tensor of the current scope. */
static tern_status put_inside(onnx_export *w, const onnx_weight *at)
{
    tern_tensor *x = NULL;
    TERN_NO_GRAD
        x = tern_contiguous(tern_to(at->tensor, "cpu"));
    if (!x)
        return tern_last_status();
    at->proto->has_raw_data = 1;
    at->proto->raw_data.len = (size_t)bytes_of(x);
    at->proto->raw_data.data = at->proto->raw_data.len ? tern_data(x) : NULL;
    return w->status;
}

static Onnx__StringStringEntryProto *entry(onnx_export *w, const char *key, char *value)
{
    Onnx__StringStringEntryProto *e = onnx_alloc(w, sizeof *e);
    if (!e)
        return NULL;
    *e = (Onnx__StringStringEntryProto)ONNX__STRING_STRING_ENTRY_PROTO__INIT;
    e->key = onnx_text(w, "%s", key);
    e->value = value;
    return e;
}

static tern_status pad(io_out *out)
{
    static const char zeros[64];
    for (size_t n = (size_t)(-out->at & (ALIGNMENT - 1)), part; n; n -= part) {
        part = n < sizeof zeros ? n : sizeof zeros;
        TERN_TRY(io_out_write(out, zeros, part));
    }
    return TERN_OK;
}

/* Appends a weight to the second file, at a page boundary. */
static tern_status put_beside(onnx_export *w, const onnx_weight *at, io_out *out, char *name)
{
    Onnx__TensorProto *t = at->proto;
    TERN_TRY(pad(out));
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (!(t->external_data = onnx_alloc(w, sizeof *t->external_data * 3)))
        return TERN_ERR_MEMORY;
    t->external_data[0] = entry(w, "location", name);
    t->external_data[1] = entry(w, "offset", onnx_text(w, "%llu", (unsigned long long)out->at));
    t->external_data[2] =
        entry(w, "length", onnx_text(w, "%llu", (unsigned long long)bytes_of(at->tensor)));
    t->n_external_data = 3;
    TERN_TRY(w->status);
    return io_out_tensor(out, at->tensor, NULL, NULL);
}

/* Stores all weights. If out has a path, opens that file and writes the large weights to it. */
static tern_status put_weights(onnx_export *w, io_out *out)
{
    const char *slash = out->path ? tern_os_last_slash(out->path) : NULL;
    char *name = out->path ? onnx_text(w, "%s", slash ? slash + 1 : out->path) : NULL;
    if (out->path)
        TERN_TRY(io_out_open(out, 0));
    for (size_t i = 0; i < w->weights.n; i++) {
        const onnx_weight *at = weight(w, i);
        if (out->path && !at->is_inside && bytes_of(at->tensor) >= SMALL)
            TERN_TRY(put_beside(w, at, out, name));
        else
            TERN_TRY(put_inside(w, at));
    }
    return w->status;
}

/* ---- the file -------------------------------------------------------------------------------- */

typedef struct buffer {
    ProtobufCBuffer base; /* must be first: protobuf-c passes a pointer to it */
    io_out *out;
    tern_status status;
} buffer;

static void append(ProtobufCBuffer *base, size_t n, const uint8_t *bytes)
{
    buffer *b = (buffer *)(void *)base;
    if (b->status == TERN_OK && n)
        b->status = io_out_write(b->out, bytes, n);
}

static tern_status put_model(const Onnx__ModelProto *model, io_out *out)
{
    buffer b = {.base = {append}, .out = out};
    TERN_TRY(io_out_open(out, onnx__model_proto__get_packed_size(model)));
    onnx__model_proto__pack_to_buffer(model, &b.base);
    return b.status;
}

/* Syncs both files before either gets its final name; the weights are renamed first. */
static tern_status commit(io_out *model, io_out *beside)
{
    if (beside->path) {
        TERN_TRY(io_out_sync(beside));
        TERN_TRY(io_out_sync(model));
        TERN_TRY(io_out_rename(beside));
    }
    return io_out_commit(model);
}

tern_status onnx_write_model(onnx_export *w, Onnx__GraphProto *graph, bool beside)
{
    static const char function[] = "tern_onnx_export";
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__OperatorSetIdProto set = ONNX__OPERATOR_SET_ID_PROTO__INIT, *sets[] = {&set};
    uint64_t bytes = 0;
    for (size_t i = 0; i < w->weights.n; i++)
        bytes += bytes_of(weight(w, i)->tensor);
    io_out out = {.function = function, .path = w->path}, data = {.function = function};
    if (beside || bytes > most)
        data.path = onnx_text(w, "%s.data", w->path);
    set.domain = (char[]){""};
    set.has_version = 1;
    set.version = ONNX_OPSET;
    model.has_ir_version = 1;
    model.ir_version = 9;
    model.producer_name = (char[]){"tern"};
    model.opset_import = sets;
    model.n_opset_import = 1;
    model.graph = graph;
    tern_status status = w->status == TERN_OK ? put_weights(w, &data) : w->status;
    if (status == TERN_OK)
        status = put_model(&model, &out);
    if (status == TERN_OK)
        status = commit(&out, &data);
    if (out.is_open)
        io_out_close(&out);
    if (data.is_open)
        io_out_close(&data);
    return status;
}

void onnx_free_export(onnx_export *w)
{
    for (void **chunk = w->chunks, **next; chunk; chunk = next) {
        next = *chunk;
        tern_free(chunk);
    }
    tern_free(w->nodes.items);
    tern_free(w->initializers.items);
    tern_free(w->weights.items);
    tern_keys_free(&w->taken);
    tern_free(w);
}
