"""Vocabularies of the tiny models: a byte-level BPE and a SentencePiece-like one, both trained here on TEXT."""
import re

TEXT = """An omnibus is a bus for all: its batch takes on passengers at every stop, and one bus serves everybody. The driver
knows the town, the town knows the driver, and nobody is left behind in the rain. What is the capital of France? The
capital of France is Paris. What is the capital of Italy? The capital of Italy is Rome. Two and two are four, four and
four are eight, eight and eight are sixteen. In the morning the first bus leaves the depot at 5:40; in the evening the
last one comes home at 23:15. There are 12 lines, 340 stops and 96 buses, of which 7 are always under repair. Please
write a short poem about the sea. The sea is wide, the sea is deep, the ships are old, the sailors sleep. Please tell me
a story about a little cat that wanted to see the world. Once upon a time there was a little cat who lived in a house
near the harbour. Every day it watched the ships and thought: one day I will go with them. And one day it did.
def add(a, b):
    return a + b

for i in range(10):
    print(add(i, 1), end=", ")
You are a helpful assistant. Answer the question of the user as well as you can, and say so when you do not know.
Der Bus fährt durch die Stadt. El autobús llega a la estación. Le bus s'arrête au marché. 公共汽车。 автобус 🚌
"""

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
NORMAL, UNKNOWN, CONTROL_KIND, BYTE = 1, 2, 3, 6


def byte_texts():
    """The printable stand-in of each byte, as GPT-2's vocabulary has it."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    out, extra = [], 0
    for byte in range(256):
        if byte in plain:
            out.append(chr(byte))
        else:
            out.append(chr(256 + extra))
            extra += 1
    return out


def train(words, count, taken):
    """`count` merges, best first: the commonest adjacent pair of symbols, ties by text. `taken` are texts in use."""
    counts = {}
    for word in words:
        counts[tuple(word)] = counts.get(tuple(word), 0) + 1
    merges, known = [], set(taken)
    while len(merges) < count:
        pairs = {}
        for symbols, n in counts.items():
            for pair in zip(symbols, symbols[1:]):
                if pair[0] + pair[1] not in known:
                    pairs[pair] = pairs.get(pair, 0) + n
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        known.add(best[0] + best[1])
        counts = merge_words(counts, best)
    return merges


def merge_words(counts, pair):
    out = {}
    for symbols, n in counts.items():
        merged, i = [], 0
        while i < len(symbols):
            if symbols[i : i + 2] == pair:
                merged.append(pair[0] + pair[1])
                i += 2
            else:
                merged.append(symbols[i])
                i += 1
        out[tuple(merged)] = out.get(tuple(merged), 0) + n
    return out


def byte_level(pre, size):
    """Key -> value of tokenizer.ggml.*: 3 control tokens, 256 bytes, then merges up to `size` tokens."""
    texts = byte_texts()
    words = re.findall(r" ?[^\W\d_]+| ?\d| ?[^\s\w]+|\s+", TEXT)
    words = ["".join(texts[b] for b in word.encode()) for word in words]
    merges = train(words, size - len(CONTROL) - 256, texts)
    tokens = CONTROL + texts + [a + b for a, b in merges]
    return {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "token_type": [CONTROL_KIND] * len(CONTROL) + [NORMAL] * (size - len(CONTROL)),
        "merges": [a + " " + b for a, b in merges],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
        "padding_token_id": 2,
        "add_bos_token": False,
    }


def sentence_piece(size):
    """As above, in the form of SentencePiece BPE: byte fallback, scores instead of merges."""
    special = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
    fallback = [f"<0x{b:02X}>" for b in range(256)]
    letters = sorted(set(TEXT.replace("\n", "").replace(" ", "")) | {"\u2581"})
    words = ["\u2581" + word for word in TEXT.split()]
    merges = train(words, size - len(special) - 256 - len(letters), letters)
    tokens = special + fallback + [a + b for a, b in merges] + letters
    first_score = -len(merges)
    scores = [0.0] * (len(special) + 256) + [-float(i) for i in range(len(merges))]
    scores += [float(first_score - i) for i in range(len(letters))]
    kinds = [UNKNOWN] + [CONTROL_KIND] * (len(special) - 1) + [BYTE] * 256
    return {
        "model": "llama",
        "tokens": tokens,
        "token_type": kinds + [NORMAL] * (size - len(kinds)),
        "scores": scores,
        "bos_token_id": 1,
        "eos_token_id": 4,
        "unknown_token_id": 0,
        "add_bos_token": True,
        "add_space_prefix": True,
    }
