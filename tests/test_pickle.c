/* test_pickle.c -- values of pickles: objects of names that are not known, opcodes of all protocols, tensors of a kind of their
 * own. */
#include "support.h"
#include "folder.h"
#include "pickles.h"

/* ---- what is not understood ------------------------------------------------------------------ */

/* Nothing is called: each is an object of that name beside the tensor. */
static void unknown_names_are_objects(void **state)
{
    (void)state;
#define BESIDE(VALUE) P(BEGIN "}(" TEXT("\1", "o") VALUE TEXT("\1", "w") MATRIX "u.")
    static const struct {
        pickle p;
        const char *told, *key, *value;
    } rows[] = {
        {BESIDE("cos\nsystem\nX\4\0\0\0true\x85R"), "os.system", "o.0", "true"},
        {BESIDE("cbuiltins\neval\nX\1\0\0\0x\x85R"), "builtins.eval", "o.0", "x"},
        {BESIDE("cos\nsystem\n"), "os.system", NULL, NULL},
        {BESIDE("c__main__\nNet\n)\x81}X\2\0\0\0lrK\5sb"), "__main__.Net", "o.lr", "5"},
        {BESIDE("c__main__\nNet\n)}X\2\0\0\0lrK\5s\x92"), "__main__.Net", "o.lr", "5"},
        {BESIDE("c__main__\nNet\n)\x81N}X\2\0\0\0lrK\5s\x86"
                "b"),
         "__main__.Net", "o.lr", "5"},
        {BESIDE("c__main__\nD\n)\x81X\1\0\0\0kK\7s"), "__main__.D", "o.k", "7"},
        {BESIDE("c__main__\nL\n)\x81(K\7K\6e"), "__main__.L", "o.1", "6"},
        {BESIDE("(K\3i__main__\nOld\n"), "__main__.Old", "o.0", "3"},
        {BESIDE("(c__main__\nOld\nK\3o"), "__main__.Old", "o.0", "3"},
        {BESIDE("ccopy_reg\n_reconstructor\n(c__main__\nC\nc__builtin__\nobject\nNtR}X\1\0\0\0"
                "aK\2sb"),
         "__main__.C", "o.a", "2"},
        {BESIDE("cos\npopen\n)R)R"), "os.popen", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TERN_SCOPE {
            tern_state_dict *dict = load(rows[i].p, (options){0});
            if (!dict && test_no_library())
                return;
            if (!dict)
                fail_msg("number %zu: %s", i, tern_last_error());
            const char *told = tern_state_dict_metadata(dict, "__opaque__");
            if (!told || strcmp(told, rows[i].told) != 0)
                fail_msg("number %zu: %s", i, told ? told : "nothing is told");
            if (rows[i].key)
                assert_string_equal(tern_state_dict_metadata(dict, rows[i].key), rows[i].value);
            assert_int_equal(tern_state_dict_count(dict), 1);
            assert_values(tern_state_dict_get(dict, "w"), 1, 2, 3, 4, 5, 6);
            tern_state_dict_free(dict);
        }
}

/* Values of all protocols, as metadata. */
static void every_protocol_has_its_opcodes(void **state)
{
    (void)state;
#define VALUE(BYTES) P(BEGIN "}" TEXT("\1", "v") BYTES "s.")
    static const struct {
        pickle p;
        const char *key, *value;
    } rows[] = {
        {VALUE("I12\n"), "v", "12"},
        {VALUE("I01\n"), "v", "True"},
        {VALUE("L-7L\n"), "v", "-7"},
        {VALUE("F0.5\n"), "v", "0.5"},
        {VALUE("S'abc'\n"), "v", "abc"},
        {VALUE("Vabc\n"), "v", "abc"},
        {VALUE("T\3\0\0\0abc"), "v", "abc"},
        {VALUE("\x8c\3abc"), "v", "abc"},
        {VALUE("\x8d\3\0\0\0\0\0\0\0abc"), "v", "abc"},
        {VALUE("\x95\5\0\0\0\0\0\0\0\x8c\3abc"), "v", "abc"},
        {VALUE("(K\1K\2l"), "v.1", "2"},
        {VALUE("(\x8c\1kK\2d"), "v.k", "2"},
        {VALUE("\x8f(K\1K\2\x90"), "v.1", "2"},
        {VALUE("(K\1K\2\x91"), "v.1", "2"},
        {VALUE("K\1K\2"
               "0"),
         "v", "1"},
        {VALUE("K\1(K\2K\3"
               "1"),
         "v", "1"},
        {VALUE("K\1"
               "2\x86"),
         "v.1", "1"},
        {VALUE("K\4p0\n0g0\n"), "v", "4"},
        {VALUE("K\4\x94"
               "0h\0"),
         "v", "4"},
        {VALUE("\x8b\2\0\0\0\xff\xfe"), "v", "-257"},
        {VALUE("}K\3K\4s"), "v.3", "4"},
        {VALUE("}NK\4s"), "v.None", "4"},
        {VALUE("}\x88K\4s"), "v.True", "4"},
        {VALUE("}G\x3f\xe0\0\0\0\0\0\0K\4s"), "v.0.5", "4"},
        {VALUE("})K\4s"), "v.0", "4"},
        {VALUE("\x8c\x0b"
               "collections\x8c\x0bOrderedDict\x93)R\x8c\1kK\4s"),
         "v.k", "4"},
        {VALUE("ccollections\nOrderedDict\n](\x8c\1kK\4\x86"
               "e\x85R"),
         "v.k", "4"},
        {VALUE("ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R\x8c\1kK\4s"), "v.k", "4"},
        {VALUE("ccollections\nCounter\n}K\3K\4s\x85R"), "v.3", "4"},
        {VALUE("c__builtin__\nset\n](K\3K\4e\x85R"), "v.1", "4"},
        {VALUE("ctorch\ndevice\n\x8c\4"
               "cuda\x85R"),
         "v", "cuda"},
        {VALUE("cnumpy._core.multiarray\nscalar\ncnumpy\ndtype\n\x8c\2i2\x89\x88\x87R(K\3\x8c\1<"
               "tb"
               "C\2\xfe\xff\x86R"),
         "v", "-2"},
        {VALUE("cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\n\x8c\2f4\x89\x88\x87R(K\3\x8c\1<"
               "tb"
               "c_codecs\nencode\n\x8c\5\0\0\xc2\x80?\x8c\6latin1\x86R\x86R"),
         "v", "1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_state_dict *dict = load(rows[i].p, (options){0});
        if (!dict && test_no_library())
            return;
        const char *value = dict ? tern_state_dict_metadata(dict, rows[i].key) : NULL;
        if (!value || strcmp(value, rows[i].value) != 0)
            fail_msg("number %zu, %s: %s", i, rows[i].key, dict ? value : tern_last_error());
        tern_state_dict_free(dict);
    }
}

/* As torch.save(..., pickle_protocol=0) writes it: PyTorch itself can't read it again. */
static void protocol_0_has_tensors(void **state)
{
    (void)state;
    static const pickle p =
        P("(dp0\nVx\np1\nctorch._utils\n_rebuild_tensor_v2\np2\n"
          "(P('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 6)\nI0\n(I2\nI3\ntp3\n"
          "(I3\nI1\ntp4\nI00\nccollections\nOrderedDict\n(tRp5\ntp6\nRp7\ns.");
    static const pickle broken[] = {
        P("P('storage', <class 'torch.FloatStorage'>, '0', 'cpu')\n."),
        P("P('storage', <class 'os.system'>, '0', 'cpu', 6)\n."),
        P("P('storage', <class 'torch.FloatStorage'>, '0', 'cpu', -6)\n."), P("P\n.")};
    TERN_SCOPE {
        tern_state_dict *dict = load(p, (options){0});
        if (!dict && test_no_library())
            return;
        assert_non_null(dict);
        assert_shape(tern_state_dict_get(dict, "x"), 2, 3);
        assert_values(tern_state_dict_get(dict, "x"), 1, 2, 3, 4, 5, 6);
        tern_state_dict_free(dict);
    }
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_null(load(broken[i], (options){0}));
        assert_error(TERN_ERR_IO, "storage");
    }
}

/* ---- tensors of a kind of their own ------------------------------------------------------------ */

#define WITH_METADATA(KEY)                                                                         \
    DICT_OF("x", REBUILD "(" STORAGE("0", "\6") "K\0K\2K\3\x86K\3K\1\x86\x89" ORDERED "}" KEY "st" \
                                                "R")

static void the_negative_bit_negates(void **state)
{
    (void)state;
    static const pickle negated = P(WITH_METADATA(TEXT("\3", "neg") "\x88")),
                        as_it_is = P(WITH_METADATA(TEXT("\3", "neg") "\x89")),
                        conjugated = P(WITH_METADATA(TEXT("\4", "conj") "\x88")),
                        other = P(WITH_METADATA(TEXT("\3", "odd") "\x88"));
    TERN_SCOPE {
        tern_state_dict *dict = load(negated, (options){0});
        if (!dict && test_no_library())
            return;
        assert_non_null(dict);
        assert_values(tern_state_dict_get(dict, "x"), -1, -2, -3, -4, -5, -6);
        tern_state_dict_free(dict);
        tern_file *file = tern_safe_open(in_folder("x.pt"));
        assert_values(tern_file_get_slice(file, "x", 1, 2, "cpu"), -4, -5, -6);
        tern_file_free(file);
        dict = load(as_it_is, (options){0});
        assert_values(tern_state_dict_get(dict, "x"), 1, 2, 3, 4, 5, 6);
        tern_state_dict_free(dict);
    }
    assert_null(load(conjugated, (options){0}));
    assert_error(TERN_ERR_DTYPE, "`x` is lazily conjugated");
    assert_null(load(other, (options){0}));
    assert_error(TERN_ERR_DTYPE, "`x` is said to have properties");
}

static void expanded_tensors_are_read_within_bounds(void **state)
{
    (void)state;
    static const pickle small = P(DICT_OF(
                            "x", TENSOR_OF(STORAGE("0", "\6"), "\4", "K\3K\2\x86", "K\0K\1\x86"))),
                        large = P(DICT_OF("x", TENSOR_OF(STORAGE("0", "\6"), "\0",
                                                         "J\xff\xff\xff\x7f\x85", "K\0\x85")));
    TERN_SCOPE {
        tern_state_dict *dict = load(small, (options){0});
        if (!dict && test_no_library())
            return;
        assert_non_null(dict);
        assert_shape(tern_state_dict_get(dict, "x"), 3, 2);
        assert_values(tern_state_dict_get(dict, "x"), 5, 6, 5, 6, 5, 6);
        tern_state_dict_free(dict);
    }
    assert_null(load(large, (options){0}));
    assert_error(TERN_ERR_DTYPE, "`x` is expanded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unknown_names_are_objects),
        TEST(every_protocol_has_its_opcodes),
        TEST(protocol_0_has_tensors),
        TEST(the_negative_bit_negates),
        TEST(expanded_tensors_are_read_within_bounds),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
