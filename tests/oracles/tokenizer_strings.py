"""Strings for the tokenizer goldens: a curated list of hard cases, then random compositions from a seed.

Code points are limited to those assigned in this Python's unicodedata, so that all Unicode tables in use know
them. About one string in twelve holds invalid UTF-8; that is why strings are bytes.
"""

import random
import unicodedata

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, doesn't it? I'm sure we'll see; they've said he'd go.",
    "In 1815, M. Charles-François-Bienvenu Myriel was Bishop of Digne. He was an old man of about 75 years.",
    "Select all rows WHERE id >= 1024 AND name LIKE '%test%'; then commit the transaction to the database.",
    "Der schnelle braune Fuchs springt über den faulen Hund; Übersetzung, Straße, größer, Äpfel und Öl.",
    "Le cœur a ses raisons que la raison ne connaît point. L'été dernier, où étiez-vous ? À bientôt !",
    "El veloz murciélago hindú comía feliz cardillo y kiwi. ¿Cómo estás? ¡Qué día tan bonito, señor!",
    "Быстрая коричневая лиса прыгает через ленивую собаку. Съешь ещё этих мягких французских булок.",
    "Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί. Καλημέρα κόσμε, τι κάνεις σήμερα;",
    "敏捷的棕色狐狸跳过了懒狗。今天天气很好，我们去公园散步吧！国際的な標準は２０２４年に決まった。",
    "素早い茶色の狐が怠け者の犬を飛び越える。こんにちは、世界。カタカナとひらがなを混ぜて書きます。",
    "빠른 갈색 여우가 게으른 개를 뛰어넘습니다. 안녕하세요, 세계! 오늘은 날씨가 좋네요.",
    "الثعلب البني السريع يقفز فوق الكلب الكسول. مرحبا بالعالم، كيف حالك اليوم؟ العدد ١٢٣٤٥.",
    "השועל החום המהיר קופץ מעל הכלב העצלן. שלום עולם, מה שלומך היום?",
    "तेज भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है। नमस्ते दुनिया, आप कैसे हैं? संख्या १२३४५।",
    "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ สวัสดีชาวโลก วันนี้อากาศดีมาก",
    "Con cáo nâu nhanh nhẹn nhảy qua con chó lười biếng. Xin chào thế giới, hôm nay trời đẹp quá.",
    "Hızlı kahverengi tilki tembel köpeğin üstünden atlar. İstanbul'da ışık, ağaç ve güneş var.",
    "def fibonacci(n: int) -> int:\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + fibonacci(n - 2)\n",
    "for (size_t i = 0; i < values.size(); ++i) {\n\tsum += values[i] * 3.14159;  // running total\n}\r\n",
    '{"name": "omnibus", "version": [1, 2, 3], "nested": {"ok": true, "none": null, "x": -1.5e-10}}',
    "<html>\n  <body class=\"main\">\n    <p>Hello &amp; welcome!</p>\n  </body>\n</html>\n",
    "SELECT COUNT(*) FROM users u JOIN orders o ON u.id = o.user_id WHERE o.total > 99.95 GROUP BY u.country;",
    "https://example.com/path/to/page?query=value&other=123#fragment mailto:someone@example.org",
    "Emoji: 😀 😂🤣 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 ❤️ ✨ 🚀 and text in between 🎉🎉🎉!",
    "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β = ¬(¬α ∨ β), ∑ᵢ₌₁ⁿ i² ≈ n³/3, 10⁻³ m², ½ + ¼ = ¾, №5, Ⅷ, ①②③",
]

SPECIAL_TEXTS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im", "<tool_call>", "</tool_call>",
                 "<tool", "<s>", "</s>", "<unk>", "<|im_end|", "<0x0A>", "🙂🙂"]

CURATED = [
    "", " ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", "\n\n\n", "\r\n\r\n", " \n", "\n ", " \r\n \r\n ",
    "a", " a", "a ", " a ", "  a", "a  b", "a   b    c", "\ta", "a\t", "a\tb", "a\n", "\na", "a \n b", "a\n  b",
    "   \n   \n   x", "x   \n\n   ", "\u00a0", "a\u00a0b", "a \u00a0 b", "\u0085", "a\u0085b", " \u0085 x",
    "\u180e", "a\u180eb", " \u180ea", "\u200b", "a\u200bb", "\u2028x", "a\u2029", "\u3000国", "\ufeffa",
    "\u1680x", "\u2003\u2003y", "\x0bx", "\x0cx", "\x1cx", "\x1fx", "\x00", "a\x00b", "\x7f",
    "don't", "DON'T", "I'LL", "i'Ll", "we'VE", "'s", "''s", " 's", "'S", "'ſ", "a'ſb", "it'st", "'re're", "'D",
    "’s", "don’t", "'m'll'd", "1's", "?'s", "\n's", "' s",
    "1", "12", "123", "1234", "12345", "123456", "1234567890" * 3, "3.14", "1,000,000", "1 2 3", " 123 456",
    "a1b2c3", "1a2b", "٣٤٥", "१२३४", "２０２４", "Ⅷ", "½¼", "²³", "①②", "x²+y²", "1²3", "000", "0001",
    "!", "!!", "...", "?!?!", "--", "->", "=>", "!=", "#$%&", " !", "! ", "a!", "!a", " !a", "!\n", "!\r\n\r\n",
    "()\n\n", "a.b.c", "$100", "€5", "+1", "~^|`", "<=>", "a<b", "a+b=c", "¿¡", "。，", "、。x",
    "é", "e\u0301", "É E\u0301", "a\u0300\u0301\u0302", "\u0301", " \u0301", "x\u0301y\u0323\u0307",
    "q\u0307\u0323", "q\u0323\u0307", "\u0344", "\u2126", "\u212b", "\uac00", "\u1100\u1161", "\u1100\u1161\u11a8",
    "ﬁ", "ſ", "ǆ", "Å", "A\u030a", "\u0958", "\u0fb3\u0f71\u0f80", "\u0b47\u0b3e", "1\u0301", "!\u0301a", "ả",
    "\u304b\u3099", "が", "\u1112\u1161\u11ab\u1100\u1173\u11af", "\U0001d15e", "\u0340\u0341\u0343", "\u037e", "\u2000",
    "नमस्ते", "क्षि", "สวัสดี", "คำ", "שָׁלוֹם", "العَرَبِيَّة", "แม่น้ำ",
    "😀", "😀😀", "a😀b", " 😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "❤️", "❤", "🙂🙂", "🙂🙂🙂", "🙂", "🧑🏿‍🚀x",
    "ABC", "abcABC", "camelCaseString", "snake_case_name", "SCREAMING_SNAKE", "kebab-case", "iPhone", "McDonald",
    "U.S.A.", "e.g.,", "I.", "Hello, world!", "HELLO", "hello" * 20, "a" * 300, "ab" * 200, " " * 300, "\n" * 70,
    "aaaa" + " " * 17 + "b", "=" * 100, "-" * 65, "0" * 50, "é" * 90, "国" * 120, "😀" * 40, "\t" * 33 + "x",
    "\u0301" * 60, "x" + "\u0323\u0307" * 40, "\n \n" * 20, " \n" * 30 + "x", "a\r\nb\r\nc\r\n", "a\n\r\nb",
    "<", "<|", "<|im_", "<|im_end|", "<|im_end|>", "<|im_end|><|im_start|>", "<|im_start|>user\nHi<|im_end|>\n",
    "a<|endoftext|>b", "<|endoftext|>", " <|endoftext|> ", "<|endoftext|><|endoftext|>", "<<|im_end|>>",
    "<tool_call>", "<tool_call", "<tool", "x<tool>y", "<tool_call>{\"a\": 1}</tool_call>", "</tool_call></tool_call>",
    "<s>", "</s>", "<s>a</s>", "<unk>", "</ s>", "<s >", "<|im<|im_end|>", "<tool<tool_call>", "<|IM_END|>",
    "<0x0A>", "<0x41>", "▁", "▁a", "a▁b", " ▁ ", "▁▁▁", "Ġ", "Ċ", "Ġhello", "âĢĻ",
    " international", "国際", " Übersetzung", " transaction commit", "international", "fibonacci",
]

CURATED_INVALID = [
    b"\xff", b"\x80", b"a\xffb", b" \xff ", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x82a", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80\xf0\x9f",
    b"\xed\xa0\x80", b"\xc0\xaf", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"abc \xe9t\xe9 def",
    b"\xff\xfe\xfd", b"x  \xff  y", b"\xe2\x82<|im_end|>", b"<|im_end\xff|>", b"12\xff34", b"'\xffs", b"\n\xff\n", b"e\xcc\x81\xffe\xcc\x81",
    b"\x80" * 300, b"\xf0\x9f" * 30, b"tool \xffcall <tool_call>\xff</tool_call>",
]

RANDOM_RANGES = [(0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x600), (0x600, 0x700), (0x900, 0xA00),
                 (0xE00, 0xE80), (0x1100, 0x1200), (0x1E00, 0x2000), (0x2000, 0x2100), (0x2100, 0x2400),
                 (0x3000, 0x3100), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xFF00, 0xFFF0), (0x1F300, 0x1F700)]
SPACES = [" ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n    ", "\u00a0", "\u3000", "\u2028", "     "]


def assigned(code):
    return unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")


def random_character(rng):
    low, high = rng.choice(RANDOM_RANGES)
    while True:
        code = rng.randrange(low, high)
        if assigned(code):
            return chr(code)


def random_piece(rng):
    kind = rng.randrange(12)
    if kind < 5:
        words = rng.choice(SENTENCES).split(" ")
        begin = rng.randrange(len(words))
        return " ".join(words[begin:begin + rng.randrange(1, 6)])
    if kind == 5:
        sentence = rng.choice(SENTENCES)
        begin = rng.randrange(len(sentence))
        return sentence[begin:begin + rng.randrange(1, 12)]
    if kind == 6:
        return "".join(rng.choice("0123456789") for _ in range(rng.randrange(1, 9)))
    if kind == 7:
        return "".join(rng.choice("!?.,;:-_()[]{}<>|/\\'\"`~@#$%^&*+=") for _ in range(rng.randrange(1, 6)))
    if kind == 8:
        return rng.choice(SPECIAL_TEXTS)
    if kind == 9:
        return rng.choice(["'s", "'T", "'re", "'VE", "'m", "'Ll", "'d", "'x", "’s", "e\u0301", "o\u0308\u0323"])
    return "".join(random_character(rng) for _ in range(rng.randrange(1, 6)))


def random_string(rng):
    out = ""
    for _ in range(rng.randrange(1, 7)):
        out += random_piece(rng)
        if rng.random() < 0.6:
            out += rng.choice(SPACES)
    data = out.encode()
    if rng.random() < 0.06:
        at = rng.randrange(len(data) + 1)
        bad = bytes(rng.randrange(0x80, 0x100) for _ in range(rng.randrange(1, 4)))
        data = data[:at] + bad + data[at:]
    return data


def make_strings(seed, count):
    """`count` different byte strings, the curated ones first."""
    rng = random.Random(seed)
    strings = [s.encode() for s in CURATED] + CURATED_INVALID + [s.encode() for s in SENTENCES]
    strings = list(dict.fromkeys(strings))
    seen = set(strings)
    while len(strings) < count:
        text = random_string(rng)
        if text not in seen and len(text) <= 160:
            seen.add(text)
            strings.append(text)
    return strings
