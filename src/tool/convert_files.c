/* convert_files.c -- files that appear complete or not at all, like those of the library. */
#include "tool/convert.h"
#include "tool/tool.h"
#include <string.h>

static void flush(tool_out *out)
{
    if (out->status == TERN_OK && out->held)
        out->status = io_out_write(&out->out, out->buffer, out->held);
    out->held = 0;
}

bool tool_out_open(tool_out *out, const char *path)
{
    out->out = (io_out){.function = "tern_convert", .path = path};
    out->at = 0;
    out->held = 0;
    out->status = io_out_open(&out->out, 0);
    if (out->status != TERN_OK)
        tool_fail_with_error();
    return out->status == TERN_OK;
}

void tool_out_bytes(tool_out *out, const void *bytes, size_t n)
{
    out->at += n;
    if (n > sizeof out->buffer - out->held)
        flush(out);
    if (n > sizeof out->buffer) {
        if (out->status == TERN_OK)
            out->status = io_out_write(&out->out, bytes, n);
        return;
    }
    memcpy(out->buffer + out->held, bytes, n);
    out->held += n;
}

void tool_out_number(tool_out *out, uint64_t x, int bytes)
{
    unsigned char b[8];
    for (int i = 0; i < bytes; i++)
        b[i] = (unsigned char)(x >> 8 * i);
    tool_out_bytes(out, b, (size_t)bytes);
}

void tool_out_pad(tool_out *out, uint64_t multiple)
{
    while (out->at % multiple)
        tool_out_number(out, 0, 1);
}

int tool_out_close(tool_out *out, bool good)
{
    flush(out);
    if (good && out->status == TERN_OK)
        out->status = io_out_commit(&out->out);
    if (good && out->status != TERN_OK)
        tool_fail_with_error();
    const bool done = good && out->status == TERN_OK;
    io_out_close(&out->out);
    return done ? TOOL_FINE : TOOL_WRONG;
}
