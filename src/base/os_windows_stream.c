/* os_windows_stream.c -- streams in memory, and lines of streams, on Windows. */
#ifdef _WIN32
#include "base/os.h"
#include "base/os_wide.h"
#include <stdlib.h>

ssize_t tern_os_getline(char **line, size_t *capacity, FILE *file)
{
    size_t n = 0;
    for (int c; (c = getc(file)) != EOF;) {
        if (n + 2 > *capacity) {
            const size_t wanted = *capacity ? 2 * *capacity : 128;
            char *grown = realloc(*line, wanted);
            if (!grown)
                return -1;
            *line = grown;
            *capacity = wanted;
        }
        (*line)[n++] = (char)c;
        if (c == '\n')
            break;
    }
    if (n == 0)
        return -1;
    (*line)[n] = '\0';
    return (ssize_t)n;
}

/* Windows has no memory streams: this uses a temporary file that is deleted when it is closed. */
FILE *tern_os_text_begin(tern_os_text *text)
{
    *text = (tern_os_text){0};
    const int file = tern_os_open_memory();
    if (file >= 0 && !(text->stream = tern_os_fdopen(file, "w+")))
        tern_os_close(file);
    return text->stream;
}

char *tern_os_text_end(tern_os_text *text)
{
    FILE *f = text->stream;
    const long size = f && fflush(f) == 0 && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (size >= 0 && (text->data = malloc((size_t)size + 1))) {
        rewind(f);
        text->bytes = fread(text->data, 1, (size_t)size, f);
        text->data[text->bytes] = '\0';
    }
    if (f)
        fclose(f);
    return text->data;
}

#else
typedef int tern_os_windows_stream_is_empty;
#endif
