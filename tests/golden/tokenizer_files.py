#!/usr/bin/env python3
"""Writes tokenizers/files/: small tokenizers of every kind of file but tokenizer.json, and what the packages make of texts.

    tokenizer_files.py [OUT]

Needs sentencepiece, protobuf, tiktoken, tokenizers, mistral-common. NAME.ids: for each text a line of JSON, [text, ids, text of the ids]."""
import base64, io, json, os, random, sys, tempfile
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
import sentencepiece, tiktoken
from sentencepiece import sentencepiece_model_pb2 as pb

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "tokenizers", "files")
WORDS = ("it was the best of times it was the worst of times, the age of wisdom and the age of foolishness; don't we'll they've "
         "caf\u00e9 na\u00efve \u00fcber \u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 \u4f60\u597d \u4e16\u754c \u3053\u3093\u306b\u3061\u306f 1999 12345678 3.14 <|x|> "
         "x_y (a+b)*c != \"quoted\" [b] e\u0301 \ufb01ne \u2460 \uff21\uff22 \U0001f600").split()
FIXED = ["", " ", "  ", "a", "Hello, world!", " leading", "trailing ", "two  spaces", "it was the best of times", "don't WE'LL they've 1999 12345678",
         "a\nb\n\n  c\t\td\r\n", "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "e\u0301 \ufb01 \u2460 \uff21\u3000x", "<s> </s> <unk>", "<|endoftext|>text", "<0x41>", "\u2581under \u2581",
         "[MASK] [CLS]", "the <tag> of<tag> times <two words>it", "aaaaaaaaaaaaaaaaaaaaaaaa", "\U0001f600\U0001f468\u200d\U0001f469", "a\u00a0b\u2003c", "\ufeffx\u200b", "#include <x.h>"]


def texts():
    r = random.Random(7)
    out = list(FIXED)
    for _ in range(40):
        out.append("".join(r.choice(WORDS) + r.choice([" ", " ", "  ", "", "\n"]) for _ in range(r.randrange(1, 9))))
    for _ in range(16):
        out.append("".join(chr(r.choice([r.randrange(32, 127), r.randrange(0xa0, 0x250), r.randrange(0x250, 0xd800), r.randrange(0x1f600, 0x1f650)]))
                           for _ in range(r.randrange(1, 12))))
    return out


def corpus():
    r = random.Random(3)
    return [" ".join(r.choice(WORDS) for _ in range(r.randrange(3, 12))) for _ in range(400)]


def write(name, encode, decode, list_=None):
    with open(os.path.join(OUT, name + ".ids"), "w") as f:
        for t in list_ or texts():
            ids = encode(t)
            f.write(json.dumps([t, ids, decode(ids)]) + "\n")


def sentence(name, change=None, **options):
    to = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_writer=to, num_threads=1, minloglevel=2, hard_vocab_limit=False, **options)
    m = pb.ModelProto.FromString(to.getvalue())
    m.normalizer_spec.normalization_rule_tsv = ""
    if change: change(m)
    path = os.path.join(OUT, name + ".model")
    open(path, "wb").write(m.SerializeToString())
    t = sentencepiece.SentencePieceProcessor(model_file=path)
    write(name, t.encode, t.decode)


def rules():
    """A small table of replacements: of a character, of several (the longest counts), by nothing, by several, by a space."""
    path = os.path.join(tempfile.mkdtemp(), "rules.tsv")
    with open(path, "w") as f:
        for a, b in [("\uff21", "A"), ("\ufb01", "fi"), ("e\u0301", "\u00e9"), ("\u200b", ""), ("\u00a0", " "), ("\u3000", "  "), ("WE", "we"), ("WE'L", "we'l"), ("\t", " "), ("\n", " "),
                     ("\ufeff", ""), ("\u2460", "1")]:
            f.write(" ".join("%X" % ord(c) for c in a) + "\t" + " ".join("%X" % ord(c) for c in b) + "\n")
    return path


def unused(m):
    """Pieces that merges make, but texts do not have."""
    long = [p for p in m.pieces if p.type == 1 and len(p.piece) > 3]
    for p in long[::2]: p.type = 5


def tik():
    from tiktoken import _educational
    pattern = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ranks = _educational.bpe_train("\n".join(corpus()[:120]), 420, pattern, visualise=None)
    with open(os.path.join(OUT, "small.tiktoken"), "wb") as f:
        for token, rank in sorted(ranks.items(), key=lambda p: p[1]): f.write(base64.b64encode(token) + b" %d\n" % rank)
    t = tiktoken.Encoding("small", pat_str=pattern, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 430, "<tag>": 425})
    open(os.path.join(OUT, "small.pattern"), "w").write(pattern)
    write("small", lambda s: t.encode(s, allowed_special="all"), t.decode)
    return ranks


def tekken(ranks):
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    pattern = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
               r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    special = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<pad>"]
    vocab = [{"rank": r, "token_bytes": base64.b64encode(t).decode(), "token_str": t.decode(errors="ignore") or None} for t, r in sorted(ranks.items(), key=lambda p: p[1])]
    made = {"config": {"pattern": pattern, "num_vocab_tokens": len(vocab), "default_vocab_size": 400 + 20, "default_num_special_tokens": 20, "version": "v7"}, "vocab": vocab,
            "special_tokens": [{"rank": i, "token_str": s, "is_control": True} for i, s in enumerate(special)]}
    path = os.path.join(OUT, "tekken.json")
    json.dump(made, open(path, "w"), separators=(",", ":"))
    t = Tekkenizer.from_file(path)
    write("tekken", lambda s: t.encode(s, bos=True, eos=False), lambda ids: "<s>" + t.decode(ids[1:]), [s for s in texts() if not any(c in s for c in special)])


def lists():
    """vocab.json and merges.txt, vocab.txt."""
    from tokenizers import Tokenizer, ByteLevelBPETokenizer, BertWordPieceTokenizer, processors
    t = ByteLevelBPETokenizer()
    t.train_from_iterator(corpus(), vocab_size=460, min_frequency=2, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False)
    t.save_model(OUT, "roberta")
    t = ByteLevelBPETokenizer(os.path.join(OUT, "roberta-vocab.json"), os.path.join(OUT, "roberta-merges.txt"))
    t.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    t._tokenizer.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")), add_prefix_space=False)
    write("roberta", lambda s: t.encode(s).ids, lambda ids: t.decode(ids, skip_special_tokens=False))
    b = BertWordPieceTokenizer()
    b.train_from_iterator(corpus(), vocab_size=400, show_progress=False)
    b.save_model(OUT)
    b = BertWordPieceTokenizer(os.path.join(OUT, "vocab.txt"))
    write("vocab", lambda s: b.encode(s).ids, lambda ids: b.decode(ids, skip_special_tokens=False))


def main():
    os.makedirs(OUT, exist_ok=True)
    sentence("bpe_bytes", model_type="bpe", vocab_size=460, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True,
             character_coverage=0.98)
    sentence("bpe_user", unused, model_type="bpe", vocab_size=300, normalization_rule_tsv=rules(), character_coverage=0.98, treat_whitespace_as_suffix=True,
             user_defined_symbols=["<tag>", "\u2581two\u2581words", "ti"], control_symbols=["<ctl>"])
    sentence("unigram", model_type="unigram", vocab_size=300, normalization_rule_tsv=rules(), character_coverage=0.98, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
             user_defined_symbols=["<tag>", "wor", "<x"])
    sentence("unigram_bytes", unused, model_type="unigram", vocab_size=520, byte_fallback=True, normalization_rule_name="identity", add_dummy_prefix=False,
             remove_extra_whitespaces=False, character_coverage=0.98)
    tekken(tik())
    lists()


if __name__ == "__main__":
    main()
