/* byte_level.c -- writes the tokenizer.json of byte-level BPE, as GPT-2's, whose words are split by
 * a pattern. */
#include "models/tokenizer/maker.h"

tern_status tk_make_byte_level(tk_maker *m, const char *pattern, bool digits, bool nfc, bool whole)
{
    static const char byte_level[] =
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
        "\"use_regex\":false}";
    tk_make_added(m, true);
    tk_out_text(&m->o, nfc ? ",\"normalizer\":{\"type\":\"NFC\"}" : ",\"normalizer\":null");
    tk_out_text(&m->o, ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    if (digits) /* numbers are split off first */
        tk_out_split(&m->o, "\\p{N}");
    tk_out_split(&m->o, pattern);
    tk_out_text(&m->o, byte_level);
    tk_out_text(&m->o, "]}");
    tk_make_post(m, m->add_bos ? m->bos : -1, m->add_eos ? m->eos : -1, false);
    tk_out_text(&m->o, ",\"decoder\":");
    tk_out_text(&m->o, byte_level);
    tk_out_text(&m->o, ",\"model\":{\"type\":\"BPE\",\"dropout\":null");
    tk_make_unknown(m);
    tk_out_text(&m->o, ",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"
                       "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":");
    tk_out_text(&m->o, whole ? "true" : "false");
    tk_make_vocab(m);
    return m->o.status;
}
