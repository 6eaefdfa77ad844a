/* sources.c -- from embedded files to one text: #include is resolved here, as not every device's
 * compiler can. */
#include "device/sources.h"
#include <string.h>

static const tern_source *find(const char *name, size_t length, size_t *index)
{
    for (*index = 0; tern_sources[*index].name; (*index)++) {
        const tern_source *s = &tern_sources[*index];
        if (strlen(s->name) == length && memcmp(s->name, name, length) == 0)
            return s;
    }
    return NULL;
}

static bool see(tern_sources_seen *seen, size_t index)
{
    uint64_t bit = UINT64_C(1) << index % 64;
    bool first = !(seen->bits[index / 64 % 4] & bit);
    seen->bits[index / 64 % 4] |= bit;
    return first;
}

/* n bytes, those that stand for words as these. */
static void add_words(tern_text *text, const char *bytes, size_t n)
{
    size_t plain = 0;
    for (size_t i = 0; i < n; i++) {
        const char *word = (unsigned char)bytes[i] < 32 ? tern_source_words[(int)bytes[i]] : NULL;
        if (!word)
            continue;
        tern_text_add_bytes(text, bytes + plain, i - plain);
        tern_text_add_bytes(text, word, strlen(word));
        plain = i + 1;
    }
    tern_text_add_bytes(text, bytes + plain, n - plain);
}

static void add(tern_text *text, tern_sources_seen *seen, const char *name, size_t length)
{
    static const char include[] = "#include \"";
    size_t index;
    const tern_source *source = find(name, length, &index);
    if (!source) {
        tern_text_add(text, "#error no file %.*s in cl_kernels\n", (int)length, name);
        return;
    }
    if (!see(seen, index))
        return;
    tern_text whole = {0};
    add_words(&whole, source->text, source->bytes);
    text->failed = text->failed || whole.failed;
    tern_text_add(text, "#line 1 \"%s\"\n", source->name);
    int number = 1;
    for (const char *line = whole.data; line && *line; number++) {
        const char *end = strchr(line, '\n');
        end = end ? end + 1 : line + strlen(line);
        if (strncmp(line, include, sizeof include - 1) == 0) {
            const char *from = line + sizeof include - 1;
            add(text, seen, from, strcspn(from, "\""));
            tern_text_add(text, "#line %d \"%s\"\n", number + 1, source->name);
        } else {
            tern_text_add_bytes(text, line, (size_t)(end - line));
        }
        line = end;
    }
    tern_text_free(&whole);
}

void tern_source_add(tern_text *text, tern_sources_seen *seen, const char *name)
{
    add(text, seen, name, strlen(name));
}
