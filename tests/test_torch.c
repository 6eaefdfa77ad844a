/* test_torch.c -- files of torch.save: what is read of them, and what is refused. Pickles are written by
 * hand; files of PyTorch's own are read by tests/interop. */
#include "support.h"
#include "folder.h"
#include "archive.h"

/* A pickle's bytes may be zeros. */
typedef struct pickle {
    const char *bytes;
    size_t n;
} pickle;
#define P(TEXT)                                                                                    \
    {                                                                                              \
        TEXT, sizeof(TEXT) - 1                                                                     \
    }

/* ---- pieces of pickles ----------------------------------------------------------------------- */

#define BEGIN      "\x80\2"
#define TEXT(N, T) "X" N "\0\0\0" T
#define NUMBER(N)  "K" N
#define FLOATS     "ctorch\nFloatStorage\n"
#define REBUILD    "ctorch._utils\n_rebuild_tensor_v2\n"
#define ORDERED    "ccollections\nOrderedDict\n)R"
/* A storage of N floats under a key, and a tensor of it. */
#define STORAGE(KEY, N)                                                                            \
    "(" TEXT("\7", "storage") FLOATS TEXT("\1", KEY) TEXT("\3", "cpu") NUMBER(N) "tQ"
#define TENSOR_OF(S, OFFSET, SIZE, STRIDE)                                                         \
    REBUILD "(" S NUMBER(OFFSET)                                                                   \
    SIZE STRIDE "\x89" ORDERED "tR"
#define MATRIX               TENSOR_OF(STORAGE("0", "\6"), "\0", "K\2K\3\x86", "K\3K\1\x86")
#define DICT_OF(NAME, VALUE) BEGIN "}" TEXT("\1", NAME) VALUE "s."

#define TEN(T) T T T T T T T T T T

/* ---- files ----------------------------------------------------------------------------------- */

static const float numbers[6] = {1, 2, 3, 4, 5, 6};

typedef struct options {
    const char *order; /* NULL: little */
    const char *more;  /* the name of another member */
    size_t bytes;      /* of the storage; 0: all */
    bool no_crc, no_storage;
} options;

static void write_archive(const char *path, pickle p, options o)
{
    archive a = {0};
    archive_add(&a, (archive_member){
                        .name = "any/data.pkl", .data = p.bytes, .size = p.n, .no_crc = o.no_crc});
    archive_add(&a, (archive_member){.name = "any/byteorder",
                                     .data = o.order ? o.order : "little",
                                     .size = strlen(o.order ? o.order : "little")});
    if (!o.no_storage)
        archive_add(&a, (archive_member){.name = "any/data/0",
                                         .data = numbers,
                                         .size = o.bytes ? o.bytes : sizeof numbers,
                                         .no_crc = o.no_crc});
    if (o.more)
        archive_add(&a, (archive_member){.name = o.more, .data = "x", .size = 1});
    archive_add(&a, (archive_member){.name = "any/version", .data = "3\n", .size = 2});
    archive_end(&a, 0);
    write_file(path, a.bytes, a.size);
    free(a.bytes);
}

static bool no_libzip(void)
{
    if (tern_last_status() != TERN_ERR_UNSUPPORTED)
        return false;
    print_message("SKIP: %s\n", tern_last_error());
    tern_clear_error();
    return true;
}

/* The dict of a pickle; NULL also where there is no libzip, which is said. */
static tern_state_dict *load(pickle p, options o)
{
    write_archive(in_folder("x.pt"), p, o);
    return tern_load(in_folder("x.pt"), NULL);
}

/* ---- what is read ---------------------------------------------------------------------------- */

static void a_state_dict_is_read(void **state)
{
    (void)state;
    static const pickle p =
        P(BEGIN ORDERED "q\0(" TEXT("\1", "w") MATRIX "q\1" TEXT("\1", "t")
              TENSOR_OF(STORAGE("0", "\6"), "\1", "K\2K\2\x86", "K\1K\3\x86") TEXT("\1", "s")
                  TENSOR_OF(STORAGE("0", "\6"), "\5", ")", ")")
                      TEXT("\1", "p") "ctorch._utils\n_rebuild_parameter\n(h\1\x88" ORDERED "tR"
                                      "u}" TEXT("\x9", "_metadata") ORDERED "sb.");
    for (int no_crc = 0; no_crc < 2; no_crc++)
        TERN_SCOPE {
            tern_state_dict *dict = load(p, (options){.no_crc = no_crc});
            if (!dict && no_libzip())
                return;
            assert_non_null(dict);
            assert_int_equal(tern_state_dict_count(dict), 4);
            assert_shape(tern_state_dict_get(dict, "w"), 2, 3);
            assert_values(tern_state_dict_get(dict, "w"), 1, 2, 3, 4, 5, 6);
            assert_values(tern_state_dict_get(dict, "t"), 2, 5, 3, 6);
            assert_int_equal(tern_dim(tern_state_dict_get(dict, "s")), 0);
            assert_values(tern_state_dict_get(dict, "s"), 6);
            assert_values(tern_state_dict_get(dict, "p"), 1, 2, 3, 4, 5, 6);
            tern_state_dict_free(dict);
        }
}

static void names_are_joined_and_numbers_are_metadata(void **state)
{
    (void)state;
    static const pickle p = P(BEGIN "}(" TEXT("\1", "a") "}(" TEXT("\1", "b") MATRIX "K\7K\3u" TEXT(
        "\1", "l") "](" MATRIX
                   "G\x3f\xd0\0\0\0\0\0\0" TEXT("\2", "hi") "e" TEXT("\1", "n") "N" TEXT(
                       "\1", "y") "\x88" TEXT("\1",
                                              "m") "J\xfe\xff\xff\xff" TEXT("\1",
                                                                            "q") "\x8a\2\xff\xfe"
                                                                                 "u.");
    TERN_SCOPE {
        tern_state_dict *dict = load(p, (options){0});
        if (!dict && no_libzip())
            return;
        assert_non_null(dict);
        assert_int_equal(tern_state_dict_count(dict), 2);
        assert_non_null(tern_state_dict_get(dict, "a.b"));
        assert_non_null(tern_state_dict_get(dict, "l.0"));
        assert_string_equal(tern_state_dict_metadata(dict, "a.7"), "3");
        assert_string_equal(tern_state_dict_metadata(dict, "l.1"), "0.25");
        assert_string_equal(tern_state_dict_metadata(dict, "l.2"), "hi");
        assert_string_equal(tern_state_dict_metadata(dict, "y"), "True");
        assert_string_equal(tern_state_dict_metadata(dict, "m"), "-2");
        assert_string_equal(tern_state_dict_metadata(dict, "q"), "-257");
        assert_null(tern_state_dict_metadata(dict, "n"));
        tern_state_dict_free(dict);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static const struct {
    pickle p;
    const char *says;
} refused[] = {
    {P(""), "no pickle"},
    {P("\x80\4."), "only protocol 2"},
    {P(BEGIN "."), "stack is empty"},
    {P(BEGIN "("), "does not stop"},
    {P(BEGIN "(."), "nothing on the stack"},
    {P(BEGIN "X\xff\xff\xff\xffz"), "ends too early"},
    {P(BEGIN "\x8a\xff"), "ends too early"},
    {P(BEGIN "G\0"), "ends too early"},
    {P(BEGIN "c"
             "torch"),
     "ends too early"},
    {P(BEGIN "c"
             "torch\nFloat"),
     "ends too early"},
    {P(BEGIN "cos\nsystem\nX\4\0\0\0true\x85R."), "wants os.system"},
    {P(BEGIN "cbuiltins\neval\nX\1\0\0\0x\x85R."), "wants builtins.eval"},
    {P(BEGIN "c__main__\nNet\n)\x81."), "wants __main__.Net"},
    {P(BEGIN ")\x81."), "opcode 0x81"},
    {P(BEGIN "I1\n."), "opcode 0x49"},
    {P(BEGIN "t."), "no mark"},
    {P(BEGIN "K\1s."), "stack is empty"},
    {P(BEGIN "K\1K\1K\1s."), "another type"},
    {P(BEGIN "](K\1K\1u."), "another type"},
    {P(BEGIN "}(K\1u."), "no value"},
    {P(BEGIN "}K\1a."), "another type"},
    {P(BEGIN "K\1Q."), "another type"},
    {P(BEGIN ")Q."), "no storage"},
    {P(BEGIN "(K\1K\1K\1K\1K\1tQ."), "no storage"},
    {P(BEGIN "K\1K\1R."), "no function"},
    {P(BEGIN "K\1)R."), "no function"},
    {P(BEGIN "ccollections\nOrderedDict\nK\1\x85R."), "other arguments"},
    {P(BEGIN "ctorch._utils\n_rebuild_tensor_v2\n)R."), "other arguments"},
    {P(BEGIN "ctorch._utils\n_rebuild_parameter\n)R."), "other arguments"},
    {P(BEGIN "ctorch\nFloatStorage\n)R."), "other arguments"},
    {P(BEGIN "}}b."), "no OrderedDict"},
    {P(BEGIN "K\1K\1b."), "another type"},
    {P(BEGIN "q\0."), "nothing to be kept"},
    {P(BEGIN "}r\xff\xff\xff\x7f."), "beyond the pickle's length"},
    {P(BEGIN "h\0."), "nothing was kept"},
    {P(BEGIN "}q\5h\4."), "nothing was kept"},
    {P(BEGIN "}" TEXT("\0", "") MATRIX "s."), "no name"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("1", "\6"), "\0", "K\6\x85", "K\1\x85"))),
     "not in the archive"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("/", "\6"), "\0", "K\6\x85", "K\1\x85"))), "no plain name"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\7"), "\0", "K\6\x85", "K\1\x85"))), "not as long"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\0", "K\7\x85", "K\1\x85"))), "do not fit"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\1", "K\6\x85", "K\1\x85"))), "do not fit"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\6", "K\1\x85", "K\1\x85"))), "do not fit"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\0", "K\4\x85", "K\2\x85"))), "do not fit"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\0", "J\xff\xff\xff\x7f\x85", "K\0\x85"))),
     "do not fit"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\0", "K\2\x85",
                              "\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f\x85"))),
     "do not fit"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\0", "J\xff\xff\xff\xff\x85", "K\1\x85"))),
     "negative"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\0", "K\2\x85", "J\xff\xff\xff\xff\x85"))),
     "negative"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\0", "N\x85", "K\1\x85"))), "no whole number"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\0", "K\6\x85", ")"))), "as many strides"},
    {P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1t",
                              ")"))),
     "12 dims"},
    {P(BEGIN "}(" TEXT("\3", "a.b") MATRIX TEXT("\1", "a") "}" TEXT("\1", "b") MATRIX "su."),
     "twice"},
    {P(BEGIN "}N" MATRIX "s."), "neither text nor whole number"},
    {P(BEGIN "]q\0h\0a."), "more than the pickle"}, /* a list in itself */
    {P(BEGIN TEN("]]]]]]]") TEN("aaaaaaa") "N."), "stack"},
    {P(BEGIN TEN("]]]]]]]") TEN("aaaaaa") "aaaaaaaaa."), "too deep"},
    {P(BEGIN "]q\0(h\0h\0h\0e."), "more than the pickle"},
};

static void every_pickle_has_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        TERN_SCOPE {
            tern_state_dict *dict = load(refused[i].p, (options){0});
            if (!dict && no_libzip())
                return;
            if (dict || !strstr(tern_last_error(), refused[i].says))
                fail_msg("number %zu, %s: %s", i, refused[i].says,
                         dict ? "loaded" : tern_last_error());
            assert_error(TERN_ERR_IO, "x.pt");
        }
    assert_int_equal(tern_live_tensors(), 0);
}

/* Every opcode first, and after every other: what has no stack, marks or memo yet reads none. */
static void all_short_pickles_are_read_or_refused(void **state)
{
    (void)state;
    static const pickle steps[] = {
        P(""),          P("\x80\2"), P("("),
        P("}"),         P("]"),      P(")"),
        P("t"),         P("\x85"),   P("\x86"),
        P("\x87"),      P("s"),      P("u"),
        P("a"),         P("e"),      P("q\0"),
        P("r\0\0\0\0"), P("h\0"),    P("j\0\0\0\0"),
        P("X\0\0\0\0"), P("U\0"),    P("K\1"),
        P("\x8a\0"),    P("N"),      P("Q"),
        P("R"),         P("b"),      P("ctorch\nSize\n"),
    };
    enum { N = sizeof steps / sizeof *steps };
    for (int i = 0; i < N * N; i++)
        TERN_SCOPE {
            char bytes[64] = BEGIN;
            size_t n = 2;
            for (int k = 0, rest = i; k < 2; k++, rest /= N) {
                memcpy(bytes + n, steps[rest % N].bytes, steps[rest % N].n);
                n += steps[rest % N].n;
            }
            bytes[n++] = '.';
            tern_state_dict *dict = load((pickle){bytes, n}, (options){0});
            if (!dict && no_libzip())
                return;
            if (!dict == (tern_last_status() == TERN_OK))
                fail_msg("number %d: %s and \"%s\"", i, dict ? "loaded" : "not loaded",
                         tern_last_error());
            tern_state_dict_free(dict);
            tern_clear_error();
        }
    assert_int_equal(tern_live_tensors(), 0);
}

/* 2^40 values of a few bytes: lists of the same two lists, over and over. */
static void shared_values_are_not_a_tree(void **state)
{
    (void)state;
    char bytes[600] = BEGIN "](K\1K\1e";
    size_t n = 9;
    for (int i = 0; i < 40; i++) { /* keep it; a list of it and it */
        const char step[] = {'q', (char)i, ']', '(', 'h', (char)i, 'h', (char)i, 'e'};
        memcpy(bytes + n, step, sizeof step);
        n += sizeof step;
    }
    bytes[n++] = '.';
    assert_null(load((pickle){bytes, n}, (options){0}));
    if (!no_libzip())
        assert_error(TERN_ERR_IO, "more than the pickle");
}

static void other_archives_are_refused_by_name(void **state)
{
    (void)state;
    static const pickle p = P(DICT_OF("x", MATRIX));
    static const struct {
        options o;
        const char *says;
    } rows[] = {{{.order = "big"}, "byte order is \"big\""},
                {{.more = "any/constants.pkl"}, "TorchScript"},
                {{.more = "any/version"}, "archive"},
                {{.bytes = 20}, "not as long"},
                {{.no_storage = true}, "not in the archive"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(load(p, rows[i].o));
        if (no_libzip())
            return;
        if (i != 2) /* libzip or we */
            assert_error(TERN_ERR_IO, rows[i].says);
        tern_clear_error();
    }
}

static void old_forms_are_refused_by_name(void **state)
{
    (void)state;
    char bytes[600] = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    write_file(in_folder("old.pt"), bytes, sizeof bytes);
    assert_null(tern_load(in_folder("old.pt"), NULL));
    assert_error(TERN_ERR_IO, "torch.save(model.state_dict(), ...)");
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, "sys_info", 8);
    memcpy(bytes + 257, "ustar", 5);
    write_file(in_folder("old.pt"), bytes, sizeof bytes);
    assert_null(tern_load(in_folder("old.pt"), NULL));
    assert_error(TERN_ERR_IO, "a tar");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_state_dict_is_read),          TEST(names_are_joined_and_numbers_are_metadata),
        TEST(every_pickle_has_its_verdict),  TEST(all_short_pickles_are_read_or_refused),
        TEST(shared_values_are_not_a_tree),  TEST(other_archives_are_refused_by_name),
        TEST(old_forms_are_refused_by_name),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
