/* fuzz_structure.c -- readers of files given files whose structure was changed (structure.h): lengths, counts, offsets, types, nesting.
 *
 *   fuzz_structure [--seed S] [--first R] [--runs N | --seconds T] [--catch FOLDER]
 *   fuzz_structure FORM FILE...
 *
 * TERN_FUZZ_READER=gguf|torch|pieces|tokenizer|lists|onnx|gzip|zstd|image tries one form alone. Runs without end are shared out among
 * the forms. Beside results, errors and tensors it looks after each input at the memory that a file took which was refused, which
 * what the file holds bounds, and at every path that was opened, which is in the file's folder (watch.h). */
#define _GNU_SOURCE
#include "structure.h"
#include "watch.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <tern/models.h>
#include <tern/tern.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT = 20, MOST_SEEDS = 600, MOST_FILE = 1 << 16 };
static char folder[256], path[300];
static const char *form_name;

static void stop(const char *what)
{
    fprintf(stderr, "fuzz_structure: %s: %s\n", form_name ? form_name : "", what);
    abort();
}

/* ---- readers --------------------------------------------------------------------------------- */

static bool refused; /* by the reader that was watched last */
static size_t taken; /* the memory that this took */

/* What a reader gave: a result, or an error and not both. The memory of what was refused is remembered. */
static void *given(void *result)
{
    const size_t most = watch_most();
    if (!result && (tern_last_status() == TERN_OK || !*tern_last_error()))
        stop("neither a result nor an error");
    if (result && tern_last_status() != TERN_OK)
        stop(tern_last_error());
    if (!result && most > taken)
        taken = most;
    refused = refused || !result;
    if (getenv("TERN_FUZZ_VERBOSE") && !result)
        fprintf(stderr, "%s: %zu bytes: %s\n", form_name, most, tern_last_error());
    tern_clear_error();
    watch_memory();
    return result;
}

static void read_tensors(void)
{
    watch_memory();
    tern_state_dict_free(given(tern_load(path, NULL)));
    tern_file *file = given(tern_safe_open(path));
    for (int i = 0; file && i < tern_file_count(file) && i < 64; i++) {
        const char *name = tern_file_name_at(file, i);
        tern_shape shape = tern_file_shape(file, name);
        if (!tern_file_has(file, name) || !tern_file_dtype_name(file, name))
            stop("a name that is not there");
        if (shape.ndim && shape.dims[0])
            tern_file_get_slice(file, name, shape.dims[0] / 2, shape.dims[0], "cpu");
        tern_clear_error();
    }
    tern_file_free(file);
}

static void use_tokenizer(tern_tokenizer *t)
{
    static const char *const texts[] = {"the king  was\n12 caf\xc3\xa9",
                                        "\xe4\xb8\x96 [MASK]<s>'ll"};
    for (int i = 0; t && i < 2; i++)
        TERN_SCOPE {
            tern_encoding e;
            const tern_encode_options o = {.max_length = 8 * i, .device = "cpu"};
            if (tern_tokenizer_call(t, &texts[i], NULL, 1, &o, &e) == TERN_OK)
                tern_free_text(tern_tokenizer_decode(t, e.input_ids, i > 0));
            tern_clear_error();
        }
    tern_tokenizer_free(t);
}

static void read_gguf(void)
{
    read_tensors();
    watch_memory();
    tern_nn_free(
        given(tern_models_from_pretrained(path, &(tern_pretrained_options){.device = "cpu"})));
    use_tokenizer(given(tern_tokenizer_from_file(path)));
}

static void read_tokenizer(void)
{
    watch_memory();
    use_tokenizer(given(tern_tokenizer_from_file(path)));
}

static void read_list(void)
{
    const tern_tiktoken_options o = {.pattern = "\\p{L}+|\\s|[^\\p{L}\\s]+"};
    read_tokenizer();
    watch_memory();
    use_tokenizer(given(tern_tokenizer_from_tiktoken(path, &o)));
}

static void read_onnx(void)
{
    watch_memory();
    tern_module *m = given(tern_onnx_load(path));
    for (int n = 1; m && n <= 3; n++)
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *in[3], *out[1] = {NULL};
                for (int i = 0; i < n; i++)
                    in[i] = tern_full(TERN_SHAPE(3, 4, 5), TERN_SCALAR(0.5), TERN_F32, "cpu");
                const tern_status status = tern_nn_call(tern_nn_eval(m), in, n, out, 1);
                if ((status == TERN_OK) != (tern_last_status() == TERN_OK))
                    stop("a call's status is not the error's");
                tern_clear_error();
            }
    tern_nn_free(m);
}

static void use_items(tern_dataset *d)
{
    for (int64_t i = 0; d && i < tern_dataset_length(d) && i < 4; i++)
        TERN_SCOPE {
            tern_tensor *item[TERN_MAX_ITEM];
            tern_dataset_item(d, i, item);
            tern_clear_error();
        }
    tern_dataset_free(d);
}

static void read_packed(void)
{
    static const char *const fields[] = {"png;jpg;txt", "cls"};
    const char *const archive = path;
    watch_memory();
    use_items(given(tern_datasets_csv(path, &(tern_csv_options){.empty_is_nan = true})));
    use_items(given(
        tern_datasets_tar(&archive, 1, fields, 2, &(tern_image_options){.max_pixels = 1 << 16})));
    use_items(given(tern_datasets_idx(path, NULL)));
}

static void read_image(void)
{
    watch_memory();
    given(tern_image_read(
        path, &(tern_image_options){.max_pixels = 1 << 16, .min_edge = 4, .keep_16_bits = true}));
}

/* ---- forms ----------------------------------------------------------------------------------- */

static const char *const places[] = {"",           "..",       "../x", "/etc/passwd", "a/b",
                                     "model.gguf", "\xff\xfe", "a\nb", NULL};
static const char *const opcodes[] = {"(",
                                      "s",
                                      "u",
                                      "e",
                                      "a",
                                      "t",
                                      "\x85",
                                      "\x86",
                                      "\x87",
                                      "h",
                                      "R",
                                      "b",
                                      "\x81",
                                      "\x94",
                                      "Q",
                                      "0",
                                      "2",
                                      ".",
                                      "}",
                                      "]",
                                      ")",
                                      "N",
                                      "cos\nsystem\n",
                                      "\x93",
                                      "\x92",
                                      "/etc/passwd",
                                      NULL};
static const char *const json[] = {"0",
                                   "-1",
                                   "4294967296",
                                   "1e300",
                                   "null",
                                   "{}",
                                   "[]",
                                   "\"\"",
                                   "\"a\"",
                                   "true",
                                   "\"\\u0000\"",
                                   "\"\\ud83d\\ude00\"",
                                   "\"(a|b)*\"",
                                   "\"\\\\p{Han}+\"",
                                   "\"[^\"",
                                   "\"NFKC\"",
                                   "\"Metaspace\"",
                                   "\"ByteLevel\"",
                                   "\"Sequence\"",
                                   "\"Replace\"",
                                   "\"Split\"",
                                   "\"WordPiece\"",
                                   "\"Unigram\"",
                                   "\"BPE\"",
                                   "\"type\"",
                                   "\"/etc/passwd\"",
                                   NULL};
static const char *const ranks[] = {
    "0", "-1", "18446744073709551616", "IQ==", "====", "\t", "##a", "\xe2\x96\x81", NULL};
static const char *const nodes[] = {
    "",       "..",     "../x",          "/etc/passwd", "x",       "y",           "Loop",
    "If",     "Scan",   "Constant",      "Concat",      "Reshape", "then_branch", "location",
    "offset", "length", "com.microsoft", "axis",        "input",   NULL};

static part *parse_words(blob file)
{
    return parse_lines(file);
}

static const struct form {
    const char *name, *seeds[3], *ending;
    part *(*parse)(blob file);
    void (*read)(void);
    const char *const *words;
} forms[] = {
    {"gguf", {"golden/gguf"}, ".gguf", parse_gguf, read_gguf, places},
    {"torch", {"golden/torch"}, ".pt", parse_torch, read_tensors, opcodes},
    {"pieces", {"golden/tokenizers/files"}, ".model", parse_protobuf, read_tokenizer, places},
    {"tokenizer",
     {"golden/tokenizers", "golden/tokenizers/files"},
     ".json",
     parse_json,
     read_tokenizer,
     json},
    {"lists", {"golden/tokenizers/files"}, "", parse_words, read_list, ranks},
    {"onnx", {"golden/onnx"}, ".onnx", parse_protobuf, read_onnx, nodes},
    {"gzip", {"fuzz/corpus/data"}, "", parse_gzip, read_packed, ranks},
    {"zstd", {"fuzz/corpus/data"}, "", parse_zstd, read_packed, ranks},
    {"image", {"images"}, "", parse_image, read_image, places},
};
enum { FORMS = sizeof forms / sizeof *forms };

/* ---- seeds ----------------------------------------------------------------------------------- */

static struct {
    int form;
    blob file;
} seeds[MOST_SEEDS];
static int n_seeds;

static blob load(const char *at)
{
    FILE *file = fopen(at, "rb");
    blob b = {malloc(MOST_FILE), 0};
    if (!file || !b.at)
        stop(at);
    b.n = fread(b.at, 1, MOST_FILE, file);
    fclose(file);
    return b;
}

static bool is_seed(const struct form *f, const char *name)
{
    const char *end = strrchr(name, '.');
    if (name[0] == '.' || strstr(name, "safetensors") || strstr(name, "bomb_size"))
        return false;
    if (!strcmp(f->name, "lists"))
        return strstr(name, ".tiktoken") || strstr(name, ".txt");
    if (!strcmp(f->name, "image"))
        return strstr(name, ".bmp") || strstr(name, ".webp");
    if (!*f->ending)
        return !strstr(name, "image") && !strstr(name, "gzip");
    return end && !strcmp(end, f->ending);
}

static int add_seeds(int form)
{
    const struct form *f = &forms[form];
    const int first = n_seeds;
    for (int i = 0; i < 2 && f->seeds[i]; i++) {
        char at[600];
        snprintf(at, sizeof at, "%s/%s", TEST_FOLDER, f->seeds[i]);
        DIR *dir = opendir(at);
        if (!dir)
            stop(at);
        for (struct dirent *e; (e = readdir(dir)) && n_seeds < MOST_SEEDS;) {
            struct stat is;
            snprintf(at, sizeof at, "%s/%s/%s", TEST_FOLDER, f->seeds[i], e->d_name);
            if (!is_seed(f, e->d_name) || stat(at, &is) || !S_ISREG(is.st_mode) ||
                is.st_size >= MOST_FILE)
                continue;
            seeds[n_seeds].form = form;
            seeds[n_seeds++].file = load(at);
        }
        closedir(dir);
    }
    return n_seeds - first;
}

/* ---- an input -------------------------------------------------------------------------------- */

static void write_input(const char *at, blob b)
{
    FILE *file = fopen(at, "wb");
    if (!file || fwrite(b.at, 1, b.n, file) != b.n)
        stop(at);
    fclose(file);
}

/* The memory that a file of so many bytes may take before it is refused. The window that the head of a zstd frame asks for comes
 * before what is in it, up to the library's limit. */
static size_t bound(const struct form *f, size_t n)
{
    return ((size_t)(f->parse == parse_zstd ? 130 : 2) << 20) + 64 * n;
}

static void limit_time(int seconds)
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

static void try_input(const struct form *f, blob b)
{
    const int64_t tensors = tern_live_tensors();
    form_name = f->name;
    refused = false;
    taken = 0;
    limit_time(LIMIT);
    TERN_SCOPE
        f->read();
    limit_time(0);
    if (tern_last_status() != TERN_OK)
        stop(tern_last_error());
    if (tern_live_tensors() != tensors)
        stop("a tensor is left");
    if (taken > bound(f, b.n)) {
        fprintf(stderr, "fuzz_structure: %s: %zu bytes of memory for a refused file of %zu\n",
                f->name, taken, b.n);
        abort();
    }
}

/* Seeds are what they are when they are written again, which shows that the grammar is the file's. */
static void try_seeds(void)
{
    for (int i = 0; i < n_seeds; i++) {
        const struct form *f = &forms[seeds[i].form];
        part *root = f->parse(seeds[i].file);
        const blob again = structure_make(root);
        form_name = f->name;
        if (root->kind != PART_GROUP)
            fprintf(stderr, "fuzz_structure: %s: a seed of %zu bytes is not parsed\n", f->name,
                    seeds[i].file.n);
        if ((f->parse == parse_gguf || f->parse == parse_protobuf || f->parse == parse_image) &&
            (again.n != seeds[i].file.n || memcmp(again.at, seeds[i].file.at, again.n)))
            fprintf(stderr, "fuzz_structure: %s: a seed of %zu bytes is another of %zu\n", f->name,
                    seeds[i].file.n, again.n);
        write_input(path, again);
        f->read();
        tern_scope_clear();
        structure_clear();
    }
}

static int n_of[FORMS], first_of[FORMS];

static void run(uint64_t seed, uint64_t number, const char *catch)
{
    uint64_t random = seed * 0x2545f4914f6cdd1du + number;
    int form = (int)(number % FORMS);
    while (!n_of[form])
        form = (form + 1) % FORMS;
    const struct form *f = &forms[form];
    part *root = f->parse(
        seeds[first_of[form] + (int)(structure_random(&random) % (uint64_t)n_of[form])].file);
    for (uint64_t k = structure_random(&random) % 3 + 1; k > 0; k--)
        structure_change(root, f->words, &random);
    const blob b = structure_make(root);
    write_input(path, b);
    if (catch) {
        char last[600];
        watch_folder(NULL);
        snprintf(last, sizeof last, "%s/last.%s", catch, f->name);
        write_input(last, b);
        watch_folder(folder);
    }
    try_input(f, b);
    structure_clear();
}

static int run_files(int argc, char **argv)
{
    for (int form = 0; form < FORMS; form++)
        for (int i = 2; i < argc && !strcmp(argv[1], forms[form].name); i++) {
            const blob b = load(argv[i]);
            write_input(path, b);
            try_input(&forms[form], b);
        }
    return 0;
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, first = 0, runs = 3000;
    double seconds = 0;
    const char *catch = NULL, *wanted = getenv("TERN_FUZZ_READER");
    setenv("TERN_ONNX_LOOP_LIMIT", "100", 0); /* which is read once */
    snprintf(folder, sizeof folder, "%s/tern-fuzz-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder))
        stop(folder);
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    atexit(remove_folder);
    if (argc > 2 && argv[1][0] != '-')
        return run_files(argc, argv);
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (!strcmp(argv[i], "--seed"))
            seed = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "--first"))
            first = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "--runs"))
            runs = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "--seconds"))
            seconds = atof(value);
        else if (!strcmp(argv[i], "--catch"))
            mkdir(catch = value, 0777);
        else
            stop(argv[i]);
    }
    for (int form = 0; form < FORMS; form++) {
        first_of[form] = n_seeds;
        n_of[form] = !wanted || !strcmp(wanted, forms[form].name) ? add_seeds(form) : 0;
    }
    if (n_seeds == 0)
        stop("no such form");
    try_seeds();
    watch_folder(folder);
    uint64_t number = first;
    for (time_t end = time(NULL) + (time_t)seconds;
         seconds > 0 ? time(NULL) < end : number < first + runs; number++)
        run(seed, number, catch);
    printf("%llu files from %d seeds, programs of seed %llu\n",
           (unsigned long long)(number - first), n_seeds, (unsigned long long)seed);
    watch_folder(NULL);
    for (int i = 0; i < n_seeds; i++)
        free(seeds[i].file.at);
    return 0;
}
