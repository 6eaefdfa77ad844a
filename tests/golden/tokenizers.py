#!/usr/bin/env python3
"""Tokenizers of every kind, and what Hugging Face's tokenizers makes of 10,000 lines with them.

    tokenizers.py        writes tokenizers/*.json and tokenizers.txt beside itself

A line of tokenizers.txt: a file, a hash of all ids, one of all offsets (bytes), one of all texts decoded. The lines are
made by the same generator in tests/test_tokenizers.c. Needs tokenizers (0.23) and sentencepiece."""
import io, json, os, sys
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
import tokenizers as tk
from tokenizers import decoders as D, models as M, normalizers as N, pre_tokenizers as P, processors as R, trainers as T

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizers")
LINES = 10000
TEXT = """It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness,
it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of Darkness,
it was the spring of hope, it was the winter of despair, we had everything before us, we had nothing before us, we were
all going direct to Heaven, we were all going direct the other way - in short, the period was so far like the present
period, that some of its noisiest authorities insisted on its being received, for good or for evil, in the superlative
degree of comparison only. Don't we'll I'm they've 1234567 3.14159. There were a king with a large jaw and a queen with a
plain face, on the throne of England; there were a king with a large jaw and a queen with a fair face, on the throne of
France. In both countries it was clearer than crystal to the lords of the State preserves of loaves and fishes, that
things in general were settled for ever. \u00c9t\u00e9 na\u00efve caf\u00e9 \u041f\u0440\u0438\u0432\u0435\u0442 \u4f60\u597d \u4e16\u754c \u3053\u3093\u306b\u3061\u306f
"""
# Ranges all of whose characters have been there since Unicode 8, and words with something about them.
RANGES = [(32, 126), (32, 126), (32, 126), (32, 126), (0xa0, 0x17f), (0x391, 0x3a1), (0x3a3, 0x3c9), (0x410, 0x44f),
          (0x5d0, 0x5ea), (0x621, 0x63a), (0x905, 0x939), (0xe01, 0xe2e), (0xac00, 0xd7a3), (0x3041, 0x3096),
          (0x30a1, 0x30fa), (0x4e00, 0x9fa5), (0x1e00, 0x1eff), (0x2010, 0x2027), (0xff01, 0xff5e), (0x300, 0x345),
          (0x1f600, 0x1f64f), (0xfb00, 0xfb06), (0x2460, 0x24ea), (1, 31), (0x7f, 0x9f), (0x1d400, 0x1d454),
          (0x20000, 0x2a6d6), (0x1100, 0x1112), (0x1161, 0x1175), (0x2153, 0x217f)]
WORDS = ["the", "was", "it", "times", "wisdom,", "England;", "don't", "WE'LL", "they've", "<|endoftext|>", "[MASK]", "<s>", "</s>",
         "Tool", "Tools", "  ", "\n\n", "\t", "\r\n", "e\u0301", "\u1e9b\u0323", "\u0130stanbul", "a\u0328\u0301", "\u212b", "...", "!?",
         "<0x41>", "__x__", "\u180e", "\ufeff", "\u2581x", "1999", "12345678", "3.14", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
         "\u00a0", "\u2003", "\u200b", "caf\u00e9", "CAF\u00c9"]


class Random:
    def __init__(self): self.state = 1
    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


def line(r):
    out = ""
    for i in range(1 + r.below(8)):
        if i: out += ["", " ", " ", "  "][r.below(4)]
        if r.below(2): out += WORDS[r.below(len(WORDS))]
        else:
            low, high = RANGES[r.below(len(RANGES))]
            for _ in range(1 + r.below(6)): out += chr(low + r.below(high - low + 1))
    return out


def fnv(seed, data):
    for b in data: seed = (seed ^ b) * 0x100000001b3 % 2**64
    return seed


# ---- the tokenizers -----------------------------------------------------------------------------

def bpe(pre, special=("<|endoftext|>",), size=400, alphabet=True, trainer={}, **model):
    t = tk.Tokenizer(M.BPE(**model))
    t.pre_tokenizer = pre
    t.train_from_iterator([TEXT], T.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False,
                          initial_alphabet=P.ByteLevel.alphabet() if alphabet else [], **trainer))
    return t


def gpt2():
    t = bpe(P.ByteLevel(add_prefix_space=False))
    t.decoder, t.post_processor = D.ByteLevel(), R.ByteLevel(trim_offsets=False)
    return t


def roberta():
    t = bpe(P.ByteLevel(add_prefix_space=True), ("<s>", "</s>", "<mask>"))
    t.add_special_tokens([tk.AddedToken("[MASK]", lstrip=True)])
    t.add_tokens([tk.AddedToken("Tool", single_word=True), tk.AddedToken("king", rstrip=True, normalized=False)])
    t.decoder, t.post_processor = D.ByteLevel(), R.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return t


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")

def llama3():
    t = bpe(P.Sequence([P.Split(tk.Regex(LLAMA3), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)]),
            ignore_merges=True)
    t.decoder = D.ByteLevel()
    t.post_processor = R.Sequence([R.ByteLevel(trim_offsets=True), R.TemplateProcessing(
        "<|endoftext|> $A", "<|endoftext|> $A <|endoftext|>:1 $B:1", special_tokens=[("<|endoftext|>", 0)])])
    return t


def qwen():
    t = bpe(P.Sequence([P.Digits(individual_digits=True), P.Split(tk.Regex(r"\w+|[^\w\s]+"), "merged_with_next"),
                        P.Punctuation("contiguous"), P.ByteLevel(add_prefix_space=False, use_regex=False)]))
    t.normalizer, t.decoder = N.NFC(), D.ByteLevel()
    return t


def clip():
    t = bpe(P.WhitespaceSplit(), ("<unk>",), 300, False, dict(end_of_word_suffix="</w>", continuing_subword_prefix="##"),
            unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="</w>")
    t.normalizer = N.Sequence([N.NFD(), N.StripAccents(), N.Lowercase(), N.Strip(), N.Replace(tk.Regex(r"\s+"), " ")])
    t.decoder = D.BPEDecoder()
    return t


def llama2():
    t = tk.Tokenizer(M.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])
    special = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    t.train_from_iterator(TEXT.split("\n"), T.BpeTrainer(vocab_size=440, special_tokens=special, show_progress=False,
                                                         max_token_length=8))
    spec = json.loads(t.to_str())        # the bytes are tokens of the model, not special words of the text
    spec["added_tokens"] = spec["added_tokens"][:3]
    spec["model"]["merges"] = [" ".join(m) for m in spec["model"]["merges"]]
    t = tk.Tokenizer.from_str(json.dumps(spec))
    t.decoder = D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    t.post_processor = R.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return t


def bert():
    t = tk.Tokenizer(M.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    t.normalizer, t.pre_tokenizer = N.BertNormalizer(lowercase=True), P.BertPreTokenizer()
    t.train_from_iterator([TEXT], T.WordPieceTrainer(vocab_size=300, show_progress=False,
                          special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.decoder, t.post_processor = D.WordPiece(), R.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def charsmap():
    """sentencepiece's table of a few rules of its own: a model's third field has it as its second."""
    import sentencepiece as spm, tempfile
    rules = {"\ufb01": "fi", "\u00c9": "E\u0301", "caf": "coff", "\u00a0": " ", "\u200b": "", "A": "a", "\u3041\u3042": "x", "ab": "\u4e16"}
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
        for a, b in rules.items():
            f.write("%s\t%s\n" % (" ".join("%X" % ord(c) for c in a), " ".join("%X" % ord(c) for c in b)))
        f.flush()
        model = io.BytesIO()
        spm.SentencePieceTrainer.train(sentence_iterator=iter(TEXT.split("\n")), model_writer=model, vocab_size=100,
                                       normalization_rule_tsv=f.name, minloglevel=2, hard_vocab_limit=False)
    def field(data, wanted):
        i = 0
        def number():
            nonlocal i
            n = s = 0
            while True:
                n, s, i = n | (data[i] & 127) << s, s + 7, i + 1
                if data[i - 1] < 128: return n
        while i < len(data):
            key = number()
            if key & 7 == 2:
                n = number(); i += n
                if key >> 3 == wanted: return data[i - n:i]
            elif key & 7 == 0: number()
            else: i += 4 if key & 7 == 5 else 8
    return field(field(model.getvalue(), 3), 2)


def unigram(normalizer, pre, decoder, fallback=False):
    t = tk.Tokenizer(M.Unigram())
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre, decoder
    special = ["<pad>", "</s>", "<unk>"] + (["<0x%02X>" % b for b in range(256)] if fallback else [])
    t.train_from_iterator([TEXT], T.UnigramTrainer(vocab_size=200 + len(special), show_progress=False, unk_token="<unk>",
                                                   special_tokens=special))
    if fallback:
        spec = json.loads(t.to_str())
        spec["added_tokens"] = spec["added_tokens"][:3]
        spec["model"]["byte_fallback"] = True
        t = tk.Tokenizer.from_str(json.dumps(spec))
    t.post_processor = R.TemplateProcessing("$A </s>", "$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return t


def t5():
    return unigram(N.Sequence([N.Precompiled(charsmap()), N.Replace(tk.Regex(" {2,}"), " ")]), P.Metaspace(), D.Metaspace())


def xlmr():
    return unigram(N.Sequence([N.NFKC(), N.Nmt()]), P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="first")]),
                   D.Sequence([D.ByteFallback(), D.Metaspace(prepend_scheme="first")]), True)


def words():
    t = tk.Tokenizer(M.WordLevel(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = N.Sequence([N.NFKD(), N.Lowercase()]), P.Whitespace()
    t.train_from_iterator([TEXT], T.WordLevelTrainer(vocab_size=120, show_progress=False, special_tokens=["[UNK]"]))
    return t


def main():
    r = Random()
    lines = [line(r) for _ in range(LINES)]
    os.makedirs(HERE, exist_ok=True)
    with open(os.path.join(HERE, "training.txt"), "w") as f: f.write(TEXT)
    with open(HERE + ".txt", "w") as f:
        f.write("# file, hashes of ids, offsets and texts of %d lines; written by tokenizers.py\n" % LINES)
        for make in gpt2, roberta, llama3, qwen, clip, llama2, bert, t5, xlmr, words:
            t = make()
            path = os.path.join(HERE, make.__name__ + ".json")
            t.save(path, pretty=False)
            t = tk.Tokenizer.from_file(path)
            ids = offsets = texts = 0xcbf29ce484222325
            for text in lines:
                e = t.encode(text)
                at = [0]
                for c in text: at.append(at[-1] + len(c.encode()))
                ids = fnv(ids, b"".join(i.to_bytes(4, "little") for i in e.ids) + b"\xff\xff\xff\xff")
                offsets = fnv(offsets, b"".join(at[i].to_bytes(4, "little") for pair in e.offsets for i in pair))
                texts = fnv(texts, t.decode(e.ids).encode() + b"\0")
            f.write("%s %016x %016x %016x\n" % (make.__name__, ids, offsets, texts))


main()
