/* tensorboard.c -- TensorBoard's event files: records of TFRecord with messages of protobuf.
 *
 * A record is the length (8 bytes), its masked crc, the data, its masked crc; all little endian.
 * The data is an Event {1: wall_time double, 2: step varint, 3: file_version or 5: Summary {1:
 * Value {1: tag, 2: simple_value float}}}. https://github.com/tensorflow/tensorboard
 * (compat/proto/event.proto) */
#include "report/report.h"
#include "base/os.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* CRC-32C (Castagnoli), reflected. */
static uint32_t crc32c(const unsigned char *data, size_t n)
{
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82F63B78) : 0);
    }
    return ~crc;
}

static uint32_t masked(const unsigned char *data, size_t n)
{
    uint32_t crc = crc32c(data, n);
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static size_t put_fixed(unsigned char *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
    return bytes;
}

static size_t put_varint(unsigned char *to, uint64_t value)
{
    size_t n = 0;
    for (; value > 127; value >>= 7)
        to[n++] = (unsigned char)(value | 128);
    to[n++] = (unsigned char)value;
    return n;
}

/* Writes a field of bytes: its tag, its length, the bytes. */
static size_t put_bytes(unsigned char *to, unsigned char tag, const void *bytes, size_t n)
{
    *to = tag;
    size_t head = 1 + put_varint(to + 1, n);
    memcpy(to + head, bytes, n);
    return head + n;
}

static tern_status put_record(tern_report *r, const unsigned char *data, size_t n)
{
    unsigned char head[12], tail[4];
    put_fixed(head, n, 8);
    put_fixed(head + 8, masked(head, 8), 4);
    put_fixed(tail, masked(data, n), 4);
    bool good = fwrite(head, sizeof head, 1, r->events) == 1 &&
                fwrite(data, n, 1, r->events) == 1 &&
                fwrite(tail, sizeof tail, 1, r->events) == 1 && fflush(r->events) == 0;
    return good ? TERN_OK : tern_report_io("tern_report_value", r->events_path);
}

/* Writes the time of an event, and its step unless that is 0. */
static size_t put_when(unsigned char *to, int64_t step)
{
    union {
        double seconds;
        uint64_t bits;
    } wall = {1e-9 * (double)tern_os_date()};
    to[0] = 0x09;
    size_t n = 1 + put_fixed(to + 1, wall.bits, 8);
    if (step != 0) {
        to[n++] = 0x10;
        n += put_varint(to + n, (uint64_t)step);
    }
    return n;
}

tern_status tern_report_open_events(tern_report *r)
{
    static const char version[] = "brain.Event:2";
    char host[128] = "localhost";
    tern_os_gethostname(host, sizeof host - 1);
    size_t capacity = strlen(r->folder) + sizeof host + 64;
    if (!(r->events_path = malloc(capacity)))
        return tern_fail(TERN_ERR_MEMORY, "tern_report_new: out of memory");
    snprintf(r->events_path, capacity, "%s/events.out.tfevents.%lld.%s", r->folder,
             (long long)time(NULL), host);
    if (!(r->events = tern_os_fopen(r->events_path, "wb")))
        return tern_report_io("tern_report_new", r->events_path);
    unsigned char event[64];
    size_t n = put_when(event, 0);
    n += put_bytes(event + n, 0x1a, version, sizeof version - 1);
    return put_record(r, event, n);
}

tern_status tern_report_write_event(tern_report *r, const char *name, int64_t step, double value)
{
    size_t length = strlen(name);
    unsigned char *buffer = malloc(3 * (length + 64));
    if (!buffer)
        return tern_fail(TERN_ERR_MEMORY, "tern_report_value: out of memory");
    unsigned char *one = buffer, *summary = buffer + length + 64, *event = summary + length + 64;
    union {
        float value;
        uint32_t bits;
    } simple = {(float)value};
    size_t n = put_bytes(one, 0x0a, name, length);
    one[n++] = 0x15;
    n += put_fixed(one + n, simple.bits, 4);
    n = put_bytes(summary, 0x0a, one, n);
    size_t at = put_when(event, step);
    at += put_bytes(event + at, 0x2a, summary, n);
    tern_status status = put_record(r, event, at);
    free(buffer);
    return status;
}
