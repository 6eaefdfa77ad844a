/* archive.h -- archives of stored members, made in memory, right or with one thing wrong. */
#ifndef TERN_TESTS_ARCHIVE_H
#define TERN_TESTS_ARCHIVE_H
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct archive {
    unsigned char *bytes;
    size_t size, room;
    unsigned char directory[8192];
    size_t directory_size;
    int count;
} archive;

typedef struct archive_member {
    const char *name;
    const void *data;
    size_t size;
    uint32_t wrong_crc;    /* is added to it */
    uint32_t claimed_more; /* to its size in both headers */
    uint16_t flags, method;
    bool no_crc;
    const size_t *at; /* of another's local header, which it shares; NULL */
} archive_member;

static inline void archive_put(archive *a, const void *data, size_t n)
{
    if (!n)
        return;
    if (a->size + n > a->room) {
        a->room = 2 * (a->size + n);
        a->bytes = realloc(a->bytes, a->room);
    }
    memcpy(a->bytes + a->size, data, n);
    a->size += n;
}

static inline size_t archive_number(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
    return (size_t)bytes;
}

static inline uint32_t archive_crc(const unsigned char *data, size_t n)
{
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        c ^= data[i];
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

/* What both headers have from the version on to the lengths of name and extra. */
static inline size_t archive_facts(unsigned char *to, const archive_member *m)
{
    uint32_t crc = m->no_crc ? 0 : archive_crc(m->data, m->size) + m->wrong_crc;
    uint64_t size = m->size + m->claimed_more;
    size_t n = archive_number(to, 20, 2);
    n += archive_number(to + n, m->flags, 2);
    n += archive_number(to + n, m->method, 2);
    n += archive_number(to + n, 0, 2);
    n += archive_number(to + n, 0x21, 2);
    n += archive_number(to + n, crc, 4);
    n += archive_number(to + n, size, 4);
    n += archive_number(to + n, size, 4);
    n += archive_number(to + n, strlen(m->name), 2);
    return n + archive_number(to + n, 0, 2);
}

/* Where its local header is. */
static inline size_t archive_add(archive *a, archive_member m)
{
    unsigned char head[64] = "PK\3\4", *d = a->directory + a->directory_size;
    size_t at = m.at ? *m.at : a->size, n = 4 + archive_facts(head + 4, &m);
    if (!m.at) {
        archive_put(a, head, n);
        archive_put(a, m.name, strlen(m.name));
        archive_put(a, m.data, m.size);
    }
    memcpy(d, "PK\1\2\24\3", 6);
    n = 6 + archive_facts(d + 6, &m);
    n += archive_number(d + n, 0, 2);
    n += archive_number(d + n, 0, 2);
    n += archive_number(d + n, 0, 2);
    n += archive_number(d + n, (uint64_t)0600 << 16, 4);
    n += archive_number(d + n, at, 4);
    memcpy(d + n, m.name, strlen(m.name));
    a->directory_size += n + strlen(m.name);
    a->count++;
    return at;
}

/* The directory and its end, which claims `more` members than there are. */
static inline void archive_end(archive *a, int more)
{
    unsigned char end[22] = "PK\5\6";
    size_t at = a->size;
    archive_put(a, a->directory, a->directory_size);
    archive_number(end + 8, (uint64_t)(a->count + more), 2);
    archive_number(end + 10, (uint64_t)(a->count + more), 2);
    archive_number(end + 12, a->directory_size, 4);
    archive_number(end + 16, at, 4);
    archive_put(a, end, sizeof end);
}

#endif
