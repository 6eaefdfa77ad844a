/* driver.c -- runs programs without libFuzzer: of a seed, or of files.
 *
 *   fuzz_ops [--seed S] [--first R] [--runs N | --seconds T] [--verbose]
 *   fuzz_ops [--verbose] FILE|FOLDER...
 *
 * Program R of seed S is always the same. With --device each operation runs there too, on copies of
 * what it is given, and results and gradients are compared. Without --catch the first fault ends the process. With
 * --catch FOLDER programs run in children; each new kind of fault leaves its program there, as text
 * with the report behind it, and the last lines count the kinds. */
#include "fuzz.h"
#include "catch.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { MOST_BYTES = 600 };

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void fuzz_run_seeded(uint64_t seed, uint64_t run)
{
    uint8_t bytes[MOST_BYTES];
    uint64_t state = seed * 0x2545f4914f6cdd1du + run;
    size_t size = 40 + next_random(&state) % (MOST_BYTES - 40);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(next_random(&state) >> 56);
    LLVMFuzzerTestOneInput(bytes, size);
}

/* ---- files -------------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = file ? calloc(1, 1 << 20) : NULL;
    if (text && fread(text, 1, (1 << 20) - 1, file) == 0)
        text[0] = '\0';
    if (file)
        fclose(file);
    return text;
}

static int run_file(const char *path)
{
    char *text = read_file(path);
    if (!text) {
        fprintf(stderr, "%s can't be read\n", path);
        return 1;
    }
    if (!fuzz_log)
        fprintf(stderr, "%s\n", path);
    fuzz_begin();
    int line = fuzz_run_text(text);
    fuzz_end();
    free(text);
    if (line)
        fprintf(stderr, "%s:%d: is no step\n", path, line);
    return line != 0;
}

static int run_path(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return run_file(path);
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort), failed = 0;
    for (int i = 0; i < count; i++) {
        char name[1024];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            failed |= run_file(name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return failed;
}

/* ---- the command line --------------------------------------------------------------------- */

void fuzz_print_counts(const fuzz_plan *plan, uint64_t runs, uint64_t calls, uint64_t good_calls)
{
    printf("%llu programs of seed %llu from %llu on, %llu calls, %llu of them not refused\n",
           (unsigned long long)runs, (unsigned long long)plan->seed,
           (unsigned long long)plan->first, (unsigned long long)calls,
           (unsigned long long)good_calls);
}

static uint64_t run_all(const fuzz_plan *plan)
{
    time_t start = time(NULL);
    uint64_t run = plan->first;
    for (; run < plan->first + plan->runs; run++) {
        if (plan->seconds && time(NULL) - start >= (time_t)plan->seconds)
            break;
        fuzz_run_seeded(plan->seed, run);
    }
    return run - plan->first;
}

static int usage(const char *name)
{
    fprintf(stderr,
            "usage: %s [--seed S] [--first R] [--runs N] [--seconds T] [--verbose] "
            "[--device DEVICE] [--catch FOLDER] [FILE...]\n",
            name);
    return 2;
}

int main(int argc, char **argv)
{
    fuzz_plan plan = {.seed = 1};
    int i = 1, failed = 0;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        uint64_t *number = strcmp(word, "--seed") == 0      ? &plan.seed
                           : strcmp(word, "--first") == 0   ? &plan.first
                           : strcmp(word, "--runs") == 0    ? &plan.runs
                           : strcmp(word, "--seconds") == 0 ? &plan.seconds
                                                            : NULL;
        if (strcmp(word, "--verbose") == 0)
            fuzz_log = stderr;
        else if (number)
            *number = strtoull(value, NULL, 10), i++;
        else if (strcmp(word, "--device") == 0)
            fuzz_other_device = value, i++;
        else if (strcmp(word, "--catch") == 0)
            plan.folder = value, i++;
        else
            return usage(argv[0]);
    }
    if (fuzz_other_device)
        fuzz_most_bytes = 1 << 30; /* its compiler takes more */
    if (fuzz_other_device && !plan.folder && !tern_device_is_available(fuzz_other_device)) {
        fprintf(stderr, "there is no %s: %s\n", fuzz_other_device, tern_last_error());
        return 77; /* a child asks itself: drivers do not live through fork */
    }
    if (i < argc) {
        for (; i < argc; i++)
            failed |= run_path(argv[i]);
        return failed;
    }
    if (plan.runs == 0)
        plan.runs = plan.seconds ? UINT64_MAX / 2 : 10000;
    if (plan.folder)
        return fuzz_catch(&plan);
    uint64_t runs = run_all(&plan);
    fuzz_print_counts(&plan, runs, fuzz_calls, fuzz_good_calls);
    return 0;
}
