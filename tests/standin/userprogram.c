/* userprogram.c -- see userprogram.h. */
#include "userprogram.h"
#include "temporary.h"
#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_TEXT = 4 << 20 };

/* "extern __shared__" declares what `after` defines; other shared memory is a static variable. */
static void write_text(FILE *file, const char *text)
{
    static const char outer[] = "extern __shared__";
    const char *found = strstr(text, outer);
    if (!found) {
        fputs(text, file);
        return;
    }
    fwrite(text, 1, (size_t)(found - text), file);
    fputs("extern", file);
    fputs(found + sizeof outer - 1, file);
}

/* ---- inline assembly ------------------------------------------------------------------------ */

/* From `at` on: behind the next of these characters that no string and no parenthesis has. */
static const char *skip(const char *at, const char *ends)
{
    int depth = 0;
    bool quoted = false;
    for (; *at; at++) {
        if (*at == '"')
            quoted = !quoted;
        if (quoted)
            continue;
        if (depth == 0 && strchr(ends, *at))
            return at + 1;
        depth += (*at == '(') - (*at == ')');
    }
    return at;
}

/* The operands of a part of a statement, "constraint"(expression) each. */
static void write_operands(FILE *file, const char *at, const char *end)
{
    while (at < end) {
        const char *next = skip(at, ",:)"), *begin = memchr(at, '(', (size_t)(next - at));
        if (begin && begin < next - 1)
            fprintf(file, ", %.*s", (int)(next - 1 - begin), begin);
        at = next;
    }
}

/* With each statement of PTX, asm("text" : outputs : inputs : changed), as a call of
 * standin::ptx. */
static void write_instructions(FILE *file, const char *text)
{
    for (const char *at; (at = strstr(text, "asm")); text = at) {
        const bool is_word = (at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) &&
                             !(isalnum((unsigned char)at[3]) || at[3] == '_');
        if (!is_word) {
            fwrite(text, 1, (size_t)(at + 3 - text), file);
            at += 3;
            continue;
        }
        fwrite(text, 1, (size_t)(at - text), file);
        const char *begin = strchr(at, '(') + 1, *end = skip(begin, ")"), *part = skip(begin, ":)");
        fprintf(file, "standin::ptx(%.*s", (int)(part - 1 - begin), begin);
        for (int parts = 0; parts < 2 && part < end; parts++) {
            const char *next = skip(part, ":)");
            write_operands(file, part, next);
            part = next;
        }
        fputs(")", file);
        at = end;
    }
    fputs(text, file);
}

/* An image is this line with the bytes of the library in it, then the library. */
#define HEAD "standin-user %zu\n"

static char *read_image(const char *path, size_t *bytes)
{
    struct stat about;
    char head[48], *image = NULL;
    int handle = open(path, O_RDONLY | O_CLOEXEC);
    if (handle >= 0 && fstat(handle, &about) == 0 && about.st_size > 0) {
        size_t n = (size_t)about.st_size;
        size_t before_it = (size_t)snprintf(head, sizeof head, HEAD, n);
        *bytes = before_it + n;
        image = malloc(*bytes);
        if (image) {
            memcpy(image, head, before_it);
            if (read(handle, image + before_it, n) != (ssize_t)n) {
                free(image);
                image = NULL;
            }
        }
    }
    if (handle >= 0)
        close(handle);
    return image;
}

/* Runs it, with what it writes in log; false where it fails. */
static bool run(const char *command, char *log, size_t log_bytes)
{
    FILE *compiler = popen(command, "r");
    size_t n = compiler ? fread(log, 1, log_bytes - 1, compiler) : 0;
    log[n] = '\0';
    for (char scrap[256]; compiler && fread(scrap, 1, sizeof scrap, compiler) > 0;)
        ;
    return compiler && pclose(compiler) == 0;
}

/* A C++ file among those that are temporary, whose path `name` takes; `write` writes it. */
static bool make_file(char *name, void (*write)(FILE *file, const char *text, const char *kernel),
                      const char *text, const char *kernel)
{
    int handle = mkstemps(temporary(name, "tern-standin-XXXXXX.cpp"), 4);
    FILE *file = handle >= 0 ? fdopen(handle, "w") : NULL;
    if (!file)
        return false;
    write(file, text, kernel);
    return fclose(file) == 0;
}

static void write_program(FILE *file, const char *text, const char *kernel)
{
    const char *own = strstr(text, "#line 1");
    const bool is_users = strncmp(kernel, "tern_entry_", 11) == 0;
    fprintf(file, "#include \"" STANDIN_PROGRAMS "/device.hpp\"\n");
    if (is_users)
        write_text(file, text);
    else
        write_instructions(file, text);
    fprintf(file, "\n#define STANDIN_KERNEL %s\n#define STANDIN_MEETS %d\n", kernel,
            !is_users || (own && strstr(own, "barrier(")));
    fprintf(file, "#include \"" STANDIN_SOURCES "/grid.hpp\"\n");
}

char *user_program_compile(const char *text, const char *kernel, size_t *bytes, char *log,
                           size_t log_bytes)
{
    char source[TEMPORARY_BYTES], path[TEMPORARY_BYTES], command[4 * TEMPORARY_BYTES];
    char *image = NULL;
    if (!make_file(source, write_program, text, kernel))
        return NULL;
    snprintf(path, sizeof path, "%.*s.so", (int)strlen(source) - 4, source);
    snprintf(command, sizeof command, "c++ " STANDIN_FLAGS " -shared -o '%s' '%s' 2>&1", path,
             source);
    if (run(command, log, log_bytes) && !(image = read_image(path, bytes)))
        snprintf(log, log_bytes, "%s cannot be read", path);
    unlink(path);
    unlink(source);
    return image;
}

static void write_as_it_is(FILE *file, const char *text, const char *kernel)
{
    (void)kernel;
    fputs(text, file);
}

char *library_program_compile(const char *text, const char *kernel, int compute, size_t *bytes,
                              char *log, size_t log_bytes)
{
    char source[TEMPORARY_BYTES], command[2 * TEMPORARY_BYTES];
    if (!make_file(source, write_as_it_is, text, kernel))
        return NULL;
    char *plain = malloc(MOST_TEXT), *image = NULL;
    snprintf(command, sizeof command, "c++ -E -P -w -D__CUDA_ARCH__=%d0 '%s' 2>&1", compute,
             source);
    if (plain && run(command, plain, MOST_TEXT))
        image = user_program_compile(plain, kernel, bytes, log, log_bytes);
    else if (plain)
        snprintf(log, log_bytes, "%s", plain);
    free(plain);
    unlink(source);
    return image;
}

struct user_program {
    void *library;
    user_kernel kernel;
};

user_program *user_program_load(const char *image)
{
    size_t bytes;
    char path[TEMPORARY_BYTES];
    const unsigned *(*sizes)(void);
    void *symbol[2];
    if (sscanf(image, HEAD, &bytes) != 1)
        return NULL;
    user_program *p = calloc(1, sizeof *p);
    int handle = p ? mkstemp(temporary(path, "tern-standin-XXXXXX")) : -1;
    if (handle < 0) {
        free(p);
        return NULL;
    }
    if (write(handle, strchr(image, '\n') + 1, bytes) == (ssize_t)bytes)
        p->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    close(handle);
    unlink(path); /* the library stays */
    if (!p->library) {
        free(p);
        return NULL;
    }
    symbol[0] = dlsym(p->library, "standin_sizes");
    symbol[1] = dlsym(p->library, "standin_run");
    memcpy(&sizes, &symbol[0], sizeof sizes);
    memcpy(&p->kernel.run, &symbol[1], sizeof p->kernel.run);
    p->kernel.sizes = sizes();
    return p;
}

const user_kernel *user_program_find(user_program *program, const char *name)
{
    return dlsym(program->library, name) ? &program->kernel : NULL;
}

void user_program_unload(user_program *program)
{
    if (program)
        dlclose(program->library);
    free(program);
}
