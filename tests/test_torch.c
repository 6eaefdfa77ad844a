/* test_torch.c -- files of torch.save: what is read of them, and what is refused. Pickles are written by
 * hand; files of PyTorch's own are read by tests/interop. */
#include "support.h"
#include "folder.h"
#include "pickles.h"

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
            if (!dict && test_no_library())
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
        if (!dict && test_no_library())
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
    {P(""), "ends too early"},
    {P("\x80\6."), "above 5"},
    {P(BEGIN "."), "stack is empty"},
    {P(BEGIN "("), "ends too early"},
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
    {P(BEGIN ")\x81."), "stack is empty"},
    {P(BEGIN "\x82\1."), "opcode 0x82"},
    {P(BEGIN "\x83\1\0."), "opcode 0x83"},
    {P(BEGIN "\x84\1\0\0\0."), "opcode 0x84"},
    {P(BEGIN "\x97."), "opcode 0x97"},
    {P(BEGIN "N\x98."), "opcode 0x98"},
    {P(BEGIN "\x95\xff\xff\xff\xff\xff\xff\xff\x7f."), "ends too early"},
    {P(BEGIN "\x95\4\0\0\0\0\0\0\0N."), "ends too early"},
    {P(BEGIN "\x8d\xff\xff\xff\xff\xff\xff\xff\xffz."), "too long"},
    {P(BEGIN "K\1K\1\x93."), "no text"},
    {P(BEGIN "\x94."), "nothing to be kept"},
    {P(BEGIN "Ix\n."), "no number"},
    {P(BEGIN "Sx\n."), "without quotes"},
    {P(BEGIN "(o."), "no class"},
    {P(BEGIN "1."), "no mark"},
    {P(BEGIN "0."), "stack is empty"},
    {P(BEGIN "2."), "stack is empty"},
    {P(BEGIN "(K\1d."), "no value"},
    {P(BEGIN "t."), "no mark"},
    {P(BEGIN "K\1s."), "stack is empty"},
    {P(BEGIN "K\1K\1K\1s."), "another type"},
    {P(BEGIN "](K\1K\1u."), "another type"},
    {P(BEGIN "}(K\1u."), "no value"},
    {P(BEGIN "}K\1a."), "another type"},
    {P(BEGIN "K\1Q."), "no storage"},
    {P(BEGIN ")Q."), "no storage"},
    {P(BEGIN "(K\1K\1K\1K\1K\1tQ."), "no storage"},
    {P(BEGIN "K\1K\1R."), "without a tuple"},
    {P(BEGIN "K\1)R."), "no function"},
    {P(BEGIN "ccollections\nOrderedDict\nK\1\x85R."), "other arguments"},
    {P(BEGIN "ctorch._utils\n_rebuild_tensor_v2\n)R."), "other arguments"},
    {P(BEGIN "ctorch._utils\n_rebuild_parameter\n)R."), "other arguments"},
    {P(BEGIN "K\1K\1b."), "no object"},
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
    {P(BEGIN TEN("]]]]]]]") TEN("aaaaaaa") "N."), "stack"},
    {P(BEGIN TEN(TEN("]]]")) TEN(TEN("aa")) TEN("aaaaaaaaa") "aaaaaaaaa."), "too deep"},
};

static void every_pickle_has_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        TERN_SCOPE {
            tern_state_dict *dict = load(refused[i].p, (options){0});
            if (!dict && test_no_library())
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
        P("0"),         P("1"),      P("2"),
        P("d"),         P("l"),      P("o"),
        P("\x90"),      P("\x91"),   P("\x8f"),
        P("\x92"),      P("\x93"),   P("\x94"),
        P("\x81"),      P("p0\n"),   P("ia\nb\n"),
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
            if (!dict && test_no_library())
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
    if (!test_no_library())
        assert_error(TERN_ERR_IO, "more than the pickle");
}

/* A list of a hundred pairs of which every seven bytes make a dict. */
static void dicts_of_shared_pairs_are_bounded(void **state)
{
    (void)state;
#define PAIRS_OF(DICTS)                                                                            \
    P(BEGIN "](" TEN(TEN("K\1K\2\x86")) "eq\0ccollections\nOrderedDict\nq\1" DICTS "}.")
    static const pickle few = PAIRS_OF("h\1h\0\x85R0h\1h\0\x85R0h\1h\0\x85R0"),
                        many = PAIRS_OF(TEN(TEN("h\1h\0\x85R0")));
    tern_state_dict *dict = load(few, (options){0});
    if (!dict && test_no_library())
        return;
    if (!dict)
        fail_msg("%s", tern_last_error());
    tern_state_dict_free(dict);
    assert_null(load(many, (options){0}));
    assert_error(TERN_ERR_IO, "more pairs than it has bytes");
}

static void other_archives_are_refused_by_name(void **state)
{
    (void)state;
    static const pickle p = P(DICT_OF("x", MATRIX));
    static const struct {
        options o;
        const char *says;
    } rows[] = {{{.order = "big"}, "byte order is \"big\""},
                {{.more = "any/version"}, "archive"},
                {{.bytes = 20}, "not as long"},
                {{.no_storage = true}, "not in the archive"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(load(p, rows[i].o));
        if (test_no_library())
            return;
        if (i != 1) /* libzip or we */
            assert_error(TERN_ERR_IO, rows[i].says);
        tern_clear_error();
    }
}

/* ---- other containers ------------------------------------------------------------------------- */

static void a_zip_without_tensors_is_refused_by_its_kind(void **state)
{
    (void)state;
    static const struct {
        const char *member, *says;
    } rows[] = {{"readme.txt", "a zip without"},
                {"x-1.0.dist-info/WHEEL", "a wheel"},
                {"model.weights.h5", "Keras"},
                {"serialized_exported_program.json", "PyTorch 2.1"},
                {"a/archive_format", "a .pt2"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        archive a = {0};
        archive_add(&a, (archive_member){.name = rows[i].member, .data = "pt2", .size = 3});
        archive_end(&a, 0);
        write_file(in_folder("x.zip"), a.bytes, a.size);
        free(a.bytes);
        assert_null(tern_load(in_folder("x.zip"), NULL));
        if (test_no_library())
            return;
        assert_error(TERN_ERR_IO, rows[i].says);
    }
}

static void damaged_streams_and_tars_are_refused(void **state)
{
    (void)state;
    char bytes[600] = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    write_file(in_folder("old.pt"), bytes, sizeof bytes);
    assert_null(tern_load(in_folder("old.pt"), NULL));
    assert_error(TERN_ERR_IO, "at byte 15");
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, "sys_info", 8);
    memcpy(bytes + 257, "ustar", 5);
    write_file(in_folder("old.pt"), bytes, sizeof bytes);
    assert_null(tern_load(in_folder("old.pt"), NULL));
    assert_error(TERN_ERR_IO, "none of PyTorch's");
}

/* ---- tars from before 0.1.10 ------------------------------------------------------------------ */

static size_t add_member(char *to, const char *name, pickle p)
{
    memcpy(to, name, strlen(name));
    snprintf(to + 124, 12, "%011o", (unsigned)p.n);
    memcpy(to + 257, "ustar", 5);
    memcpy(to + 512, p.bytes, p.n);
    return 512 + (p.n + 511) / 512 * 512;
}

/* A tar of storages, tensors and the id of one of the latter; what a load of it says, "" for none of an error. */
static const char *load_tar(pickle storages, pickle tensors, pickle object)
{
    static char bytes[8192], said[1024];
    static const pickle system = P(BEGIN "}" TEXT("\x0d", "little_endian") "\x88s.");
    memset(bytes, 0, sizeof bytes);
    size_t n = add_member(bytes, "sys_info", system);
    n += add_member(bytes + n, "storages", storages);
    n += add_member(bytes + n, "tensors", tensors);
    n += add_member(bytes + n, "pickle", object);
    write_file(in_folder("tar.pt"), bytes, n + 1024);
    tern_state_dict *dict = tern_load(in_folder("tar.pt"), NULL);
    snprintf(said, sizeof said, "%s", dict ? "" : tern_last_error());
    tern_state_dict_free(dict);
    tern_clear_error();
    return said;
}

#define COUNT(N)  BEGIN "K" N "."
#define STORED(K) BEGIN "K" K TEXT("\3", "cpu") FLOATS "\x87.\1\0\0\0\0\0\0\0\0\0\x80?"
#define NO_VIEWS  BEGIN "]."
#define SHAPED(K)                                                                                  \
    BEGIN "K" K                                                                                    \
          "K\1ctorch\nFloatTensor\n\x87.\1\0\0\0\2\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0"  \
          "\0\0\0\0"
#define NAMED(KEY) BEGIN "}" TEXT("\1", "x") KEY "Qs."

static void tars_that_lie_have_named_errors(void **state)
{
    (void)state;
    static const struct {
        pickle storages, tensors, object;
        const char *says;
    } rows[] = {
        {P(COUNT("\1") STORED("\1") NO_VIEWS), P(COUNT("\1") SHAPED("\5")),
         P(NAMED(TEXT("\1", "5"))), ""},
        {P(COUNT("\2") STORED("\1") STORED("\1") NO_VIEWS), P(COUNT("\1") SHAPED("\5")),
         P(NAMED(TEXT("\1", "5"))), "storages: the key 1 is there twice"},
        {P(COUNT("\1") STORED("\1") NO_VIEWS),
         P(COUNT("\3") SHAPED("\5") SHAPED("\4") SHAPED("\5")), P(NAMED(TEXT("\1", "5"))),
         "tensors: the key 5 is there twice"},
        {P(COUNT("\1") STORED("\1") NO_VIEWS), P(COUNT("\1") SHAPED("\0")),
         P(NAMED(TEXT("\1", "a"))), "no tensor"},
        {P(COUNT("\1") STORED("\1") NO_VIEWS), P(COUNT("\1") SHAPED("\5")),
         P(NAMED(TEXT("\2", "5x"))), "no tensor"},
        {P(COUNT("\1") STORED("\1") NO_VIEWS), P(BEGIN "\x8a\5\1\0\0\0\1." SHAPED("\5")),
         P(NAMED(TEXT("\1", "5"))), "no number of records"},
        {P(COUNT("\1") STORED("\1") NO_VIEWS), P(COUNT("\3") SHAPED("\5")),
         P(NAMED(TEXT("\1", "5"))), "no number of records"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TERN_SCOPE {
            const char *said = load_tar(rows[i].storages, rows[i].tensors, rows[i].object);
            if (*rows[i].says ? !strstr(said, rows[i].says) : *said)
                fail_msg("number %zu: \"%s\", and \"%s\" is expected", i, said, rows[i].says);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_state_dict_is_read),
        TEST(names_are_joined_and_numbers_are_metadata),
        TEST(every_pickle_has_its_verdict),
        TEST(all_short_pickles_are_read_or_refused),
        TEST(shared_values_are_not_a_tree),
        TEST(dicts_of_shared_pairs_are_bounded),
        TEST(other_archives_are_refused_by_name),
        TEST(a_zip_without_tensors_is_refused_by_its_kind),
        TEST(damaged_streams_and_tars_are_refused),
        TEST(tars_that_lie_have_named_errors),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
