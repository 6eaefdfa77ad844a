/* grammars.c -- files of each kind as trees of their parts (structure.h). */
#include "../archive.h"
#include "structure.h"
#include <stdio.h>

/* A place in a file; `bad` once something is beyond its end. */
typedef struct cursor {
    const uint8_t *at, *end;
    bool bad;
} cursor;

static size_t left(const cursor *c)
{
    return (size_t)(c->end - c->at);
}

static const uint8_t *take(cursor *c, size_t n)
{
    if (c->bad || n > left(c)) {
        c->bad = true;
        return NULL;
    }
    c->at += n;
    return c->at - n;
}

static uint64_t look(const uint8_t *at, int width)
{
    uint64_t x = 0;
    for (int i = width; at && i > 0; i--)
        x = x << 8 | at[i - 1];
    return x;
}

static uint64_t number(cursor *c, int width)
{
    return look(take(c, (size_t)width), width);
}

static part *take_number(cursor *c, int width)
{
    return part_number(width, number(c, width));
}

static part *take_bytes(cursor *c, uint64_t n)
{
    const uint8_t *at = n <= left(c) ? take(c, (size_t)n) : take(c, SIZE_MAX);
    return part_bytes(at, at ? (size_t)n : 0);
}

/* Bytes behind their length of `width` bytes. */
static void add_counted(part *group, cursor *c, int width)
{
    part *content = take_bytes(c, number(c, width));
    part_add(group, part_saying(width, SAYS_LENGTH, content));
    part_add(group, content);
}

static part *whole(blob file)
{
    return part_bytes(file.at, file.n);
}

/* ---- GGUF ------------------------------------------------------------------------------------ */

static void add_value(part *group, cursor *c, uint64_t kind)
{
    static const int widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (kind == 8) {
        add_counted(group, c, 8);
    } else if (kind == 9) {
        const uint64_t of = number(c, 4), n = number(c, 8);
        part *elements = part_group();
        part_add(group, part_number(4, of));
        part_add(group, part_saying(8, SAYS_COUNT, elements));
        part_add(group, elements);
        for (uint64_t i = 0; i < n && !c->bad && i < 4096; i++) {
            part *element = part_add(elements, part_group());
            add_value(element, c, of == 9 ? 99 : of);
        }
    } else if (kind < 13) {
        part_add(group, take_number(c, widths[kind]));
    } else
        c->bad = true;
}

part *parse_gguf(blob file)
{
    cursor c = {file.at, file.at + file.n, file.n < 24};
    part *root = part_group(), *head = part_add(root, part_group());
    part *pairs = part_group(), *records = part_group();
    head->align = 32;
    part_add(head, take_bytes(&c, 4));
    part_add(head, take_number(&c, 4));
    const uint64_t n_records = number(&c, 8), n_pairs = number(&c, 8);
    part_add(head, part_saying(8, SAYS_COUNT, records));
    part_add(head, part_saying(8, SAYS_COUNT, pairs));
    part_add(head, pairs);
    part_add(head, records);
    for (uint64_t i = 0; i < n_pairs && !c.bad; i++) {
        part *pair = part_add(pairs, part_group());
        add_counted(pair, &c, 8);
        const uint64_t kind = number(&c, 4);
        part_add(pair, part_number(4, kind));
        add_value(part_add(pair, part_group()), &c, kind);
    }
    for (uint64_t i = 0; i < n_records && !c.bad; i++) {
        part *record = part_add(records, part_group()), *dims = part_group();
        add_counted(record, &c, 8);
        const uint64_t n = number(&c, 4);
        part_add(record, part_saying(4, SAYS_COUNT, dims));
        part_add(record, dims);
        for (uint64_t d = 0; d < n && !c.bad; d++)
            part_add(dims, take_number(&c, 8));
        part_add(record, take_number(&c, 4));
        part_add(record, take_number(&c, 8));
    }
    const size_t padding = (32 - (size_t)(c.at - file.at) % 32) % 32;
    take(&c, padding < left(&c) ? padding : left(&c));
    if (c.bad)
        return whole(file);
    part_add(root, take_bytes(&c, left(&c)));
    return root;
}

/* ---- pickles, in archives and in streams ----------------------------------------------------- */

/* The bytes of an operation's argument: -1 a line, -2 two lines, -4 bytes behind a length of 1, -8 of 4, -16 of 8. */
static int argument(uint8_t op)
{
    switch (op) {
    case 'K':
    case 'q':
    case 'h':
    case 0x80:
    case 0x82:
        return 1;
    case 'M':
    case 0x83:
        return 2;
    case 'J':
    case 'r':
    case 'j':
    case 0x84:
        return 4;
    case 'G':
    case 0x95:
        return 8;
    case 'I':
    case 'L':
    case 'F':
    case 'S':
    case 'V':
    case 'p':
    case 'g':
    case 'P':
        return -1;
    case 'c':
    case 'i':
        return -2;
    case 'U':
    case 'C':
    case 0x8c:
    case 0x8a:
        return -4;
    case 'X':
    case 'T':
    case 'B':
    case 0x8b:
        return -8;
    case 0x8d:
    case 0x8e:
    case 0x96:
        return -16;
    default:
        return 0;
    }
}

static void add_line(part *op, cursor *c)
{
    const uint8_t *end = c->bad ? NULL : memchr(c->at, '\n', left(c));
    part_add(op, take_bytes(c, end ? (uint64_t)(end - c->at) : UINT64_MAX));
    part_add(op, take_bytes(c, 1));
}

/* A pickle up to its end, an operation a part. */
static part *take_pickle(cursor *c)
{
    part *pickle = part_group();
    for (bool ends = false; !ends && !c->bad && left(c);) {
        part *op = part_add(pickle, part_group());
        const uint8_t code = *c->at;
        ends = code == '.';
        part_add(op, take_bytes(c, 1));
        const int n = argument(code);
        if (n > 0)
            part_add(op, take_number(c, n));
        for (int i = n; i < 0 && i > -3; i++)
            add_line(op, c);
        if (n <= -4)
            add_counted(op, c, -n / 4 == 1 ? 1 : -n / 2);
    }
    return pickle;
}

/* An archive whose members' names and contents are pairs of children. */
static blob archived(const part *group)
{
    archive a = {0};
    for (int i = 0; i < group->n && a.count < 40; i++) {
        const part *member = group->children[i];
        if (member->n < 2)
            continue;
        char *name = structure_room(256);
        const blob from = member->children[0]->made, content = member->children[1]->made;
        memcpy(name, from.at, from.n < 100 ? from.n : 100);
        archive_add(&a, (archive_member){.name = name, .data = content.at, .size = content.n});
    }
    archive_end(&a, 0);
    const blob made = part_bytes(a.bytes, a.size)->content;
    free(a.bytes);
    return made;
}

static part *parse_archive(blob file)
{
    part *root = part_group();
    root->wrap = archived;
    for (size_t i = 0; i + 46 < file.n; i++) {
        const uint8_t *d = file.at + i;
        if (memcmp(d, "PK\1\2", 4))
            continue;
        const size_t size = look(d + 20, 4), name = look(d + 28, 2), at = look(d + 42, 4);
        if (i + 46 + name > file.n || at + 30 > file.n)
            return whole(file);
        const size_t from = at + 30 + look(file.at + at + 26, 2) + look(file.at + at + 28, 2);
        if (from > file.n || size > file.n - from)
            return whole(file);
        part *member = part_add(root, part_group());
        cursor c = {file.at + from, file.at + from + size, false};
        part_add(member, part_bytes(d + 46, name));
        part *content = name > 4 && !memcmp(d + 46 + name - 4, ".pkl", 4) ? take_pickle(&c) : NULL;
        part_add(member, content && !c.bad ? content : part_bytes(file.at + from, size));
    }
    return root->n ? root : whole(file);
}

part *parse_torch(blob file)
{
    cursor c = {file.at, file.at + file.n, false};
    if (file.n > 4 && !memcmp(file.at, "PK\3\4", 4))
        return parse_archive(file);
    part *root = part_group();
    while (!c.bad && left(&c) > 1 && *c.at == 0x80 && root->n < 8)
        part_add(root, take_pickle(&c));
    if (c.bad)
        return whole(file);
    part_add(root, take_bytes(&c, left(&c)));
    return root;
}

/* ---- protobuf -------------------------------------------------------------------------------- */

static uint64_t varint(cursor *c)
{
    uint64_t x = 0;
    for (int i = 0; i < 64 && !c->bad; i += 7) {
        const uint8_t *b = take(c, 1);
        x |= b ? (uint64_t)(*b & 127) << i : 0;
        if (b && *b < 128)
            return x;
    }
    c->bad = true;
    return 0;
}

/* The fields of a message; NULL: it is none. */
static part *message(const uint8_t *at, size_t n, int depth)
{
    cursor c = {at, at + n, n == 0};
    part *fields = part_group();
    while (!c.bad && left(&c)) {
        const uint64_t tag = varint(&c);
        part *field = part_add(fields, part_group());
        c.bad = c.bad || tag >> 3 == 0 || tag >> 3 > 50;
        part_add(field, part_number(0, tag));
        if ((tag & 7) == 0) {
            part_add(field, part_number(0, varint(&c)));
        } else if ((tag & 7) == 1 || (tag & 7) == 5) {
            part_add(field, take_number(&c, (tag & 7) == 1 ? 8 : 4));
        } else if ((tag & 7) == 2) {
            const uint64_t size = varint(&c);
            const uint8_t *content = size <= left(&c) ? take(&c, (size_t)size) : take(&c, SIZE_MAX);
            part *inner = content && depth < 12 ? message(content, (size_t)size, depth + 1) : NULL;
            inner = inner ? inner : part_bytes(content, content ? (size_t)size : 0);
            part_add(field, part_saying(0, SAYS_LENGTH, inner));
            part_add(field, inner);
        } else
            c.bad = true;
    }
    return c.bad ? NULL : fields;
}

part *parse_protobuf(blob file)
{
    part *root = message(file.at, file.n, 0);
    return root ? root : whole(file);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void skip_blanks(cursor *c)
{
    while (left(c) && strchr(" \t\r\n", *c->at))
        c->at++;
}

static part *json_scalar(cursor *c)
{
    const uint8_t *from = c->at;
    if (left(c) && *from == '"') {
        for (c->at++; left(c) && *c->at != '"'; c->at++)
            c->at += *c->at == '\\' && left(c) > 1;
        take(c, 1);
    } else
        while (left(c) && !strchr(",:]} \t\r\n", *c->at))
            c->at++;
    c->bad = c->bad || c->at == from;
    return part_bytes(from, (size_t)(c->at - from));
}

static part *json_value(cursor *c, int depth)
{
    skip_blanks(c);
    c->bad = c->bad || !left(c) || depth > 60;
    if (c->bad || (*c->at != '{' && *c->at != '['))
        return c->bad ? part_group() : json_scalar(c);
    const bool object = *c->at == '{';
    part *group = part_group();
    group->open = object ? "{" : "[";
    group->close = object ? "}" : "]";
    group->between = ",";
    for (c->at++; !c->bad;) {
        skip_blanks(c);
        if (left(c) && *c->at == (object ? '}' : ']')) {
            c->at++;
            break;
        }
        if (object) {
            part *entry = part_add(group, part_group());
            part_add(entry, json_scalar(c));
            skip_blanks(c);
            part_add(entry, take_bytes(c, 1));
            part_add(entry, json_value(c, depth + 1));
        } else
            part_add(group, json_value(c, depth + 1));
        skip_blanks(c);
        if (left(c) && *c->at == ',')
            c->at++;
        c->bad = c->bad || !left(c);
    }
    return group;
}

part *parse_json(blob file)
{
    cursor c = {file.at, file.at + file.n, false};
    part *root = json_value(&c, 0);
    return c.bad ? whole(file) : root;
}

/* Lines of words. */
part *parse_lines(blob file)
{
    part *root = part_group();
    root->between = "\n";
    for (size_t at = 0; at < file.n;) {
        part *line = part_add(root, part_group());
        line->between = " ";
        for (bool ends = false; !ends;) {
            size_t n = 0;
            while (at + n < file.n && file.at[at + n] != ' ' && file.at[at + n] != '\n')
                n++;
            part_add(line, part_bytes(file.at + at, n));
            ends = at + n >= file.n || file.at[at + n] == '\n';
            at += n + 1;
        }
    }
    return root;
}

/* ---- compressed files, of blocks that are stored --------------------------------------------- */

static void add_gzip_member(part *root, const uint8_t *at, size_t n)
{
    part *member = part_add(root, part_group()), *content = part_bytes(at, n);
    static const uint8_t head[] = {8, 0, 0, 0, 0, 0, 0, 3, 1};
    part_add(member, part_text("\x1f\x8b"));
    for (size_t i = 0; i < sizeof head; i++)
        part_add(member, part_number(1, head[i]));
    part_add(member, part_saying(2, SAYS_LENGTH, content));
    part_add(member, part_saying(2, SAYS_COMPLEMENT, content));
    part_add(member, content);
    part_add(member, part_saying(4, SAYS_CRC, content));
    part_add(member, part_saying(4, SAYS_LENGTH, content));
}

part *parse_gzip(blob content)
{
    part *root = part_group();
    add_gzip_member(root, content.at, content.n / 2);
    add_gzip_member(root, content.at + content.n / 2, content.n - content.n / 2);
    return root;
}

static void add_zstd_frame(part *root, const uint8_t *at, size_t n)
{
    part *frame = part_add(root, part_group()), *content = part_bytes(at, n);
    part_add(frame, part_number(4, 0xfd2fb528));
    part_add(frame, part_number(1, 0xa0)); /* one segment, whose size has four bytes */
    part_add(frame, part_saying(4, SAYS_LENGTH, content));
    part_add(frame, part_saying(3, SAYS_BLOCK, content));
    part_add(frame, content);
}

part *parse_zstd(blob content)
{
    part *root = part_group();
    add_zstd_frame(root, content.at, content.n / 2);
    part *skipped = part_add(root, part_group()), *what = part_text("skipped");
    part_add(skipped, part_number(4, 0x184d2a50));
    part_add(skipped, part_saying(4, SAYS_LENGTH, what));
    part_add(skipped, what);
    add_zstd_frame(root, content.at + content.n / 2, content.n - content.n / 2);
    return root;
}

/* ---- images ---------------------------------------------------------------------------------- */

static part *parse_webp(blob file)
{
    cursor c = {file.at, file.at + file.n, false};
    part *root = part_group(), *chunks = part_group();
    part_add(root, take_bytes(&c, 4));
    take(&c, 4);
    part_add(root, part_saying(4, SAYS_LENGTH, chunks));
    part_add(root, chunks);
    part_add(chunks, take_bytes(&c, 4));
    while (!c.bad && left(&c) >= 8) {
        part *chunk = part_add(chunks, part_group());
        chunk->align = 2;
        part_add(chunk, take_bytes(&c, 4));
        const uint64_t n = number(&c, 4);
        part *head = part_group();
        for (uint64_t i = 0; i < n && i < 10; i++)
            part_add(head, take_number(&c, 1));
        part_add(head, take_bytes(&c, n < 10 ? 0 : n - 10));
        part_add(chunk, part_saying(4, SAYS_LENGTH, head));
        part_add(chunk, head);
        if (n % 2 && left(&c))
            take(&c, 1);
    }
    return c.bad ? whole(file) : root;
}

/* Of a bitmap every number of its headers, and its rows. */
part *parse_image(blob file)
{
    static const int widths[] = {4, 2, 2, 4, 4, 4, 4, 2, 2, 4, 4, 4, 4, 4, 4};
    cursor c = {file.at, file.at + file.n, false};
    if (file.n > 12 && !memcmp(file.at, "RIFF", 4))
        return parse_webp(file);
    part *root = part_group();
    part_add(root, take_bytes(&c, 2));
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        part_add(root, take_number(&c, widths[i]));
    if (c.bad)
        return whole(file);
    while (left(&c)) /* the palette and the pixels, a piece a part */
        part_add(root, take_bytes(&c, left(&c) < 64 ? left(&c) : 64));
    return root;
}
