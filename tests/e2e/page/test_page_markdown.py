"""The page's Markdown and event parser, in the browser: laws over random texts, an independent implementation, limits.

Random texts are made from a seed, here or in the browser; every failure names the text.
"""

import json
import random
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from chat_page import RICH

SEED = 20261130


TOOLS = """
      window.whole = (text) => { const root = document.createElement("div"); new Markdown.View(root).append(text); return root; };
      window.random = (seed) => () => {  // mulberry32
        seed = (seed + 0x6d2b79f5) | 0;
        let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
      };
      window.kParts = ["*", "**", "***", "_", "__", "~~", "`", "``", "```", "~~~", "[", "]", "(", ")", "![", "](", "](https://a.example/", "<", ">", "> ",
        "#", "## ", "- ", "* ", "+ ", "1. ", "2) ", "---", "***", "___", "|", " | ", "|---|", "|:-:|", ":--", "\\n", "\\n\\n", "\\n  ", "\\n    ", "\\n\\n   ",
        "\\t", " ", "  ", "\\\\", "\\r\\n", "\\r", "a", "word", "two words", "https://a.example/b_c", "http://", "mailto:a@b.c", "<https://a.example>", "<br>", "[x] ", "[ ] ", "&amp;",
        "\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\\u0000", "\\u2028", "\\u200b", "!", ".", "1", "10", "x)", "\\"t\\""];
      // Few parts that meet often: what begins lines, cut off in the middle.
      window.kStarts = ["a", "b", "|", "|", "-", "-", "\\n", "\\n", "\\n\\n", "- ", "1", ". ", ">", "```", " ", "#", "  ", "\\r", ":"];
      window.randomText = (next, parts, from = kParts) => { let s = ""; for (let i = 0; i < parts; ++i) s += from[Math.floor(next() * from.length)]; return s; };
"""


@pytest.fixture(scope="module")
def workbench(browser, pool):
    """A page whose modules are called directly."""
    page = browser.new_page(pool(RICH).url + "/")
    page.eval(TOOLS)
    yield page
    assert page.complaints == []
    page.close()


def test_law1_in_pieces_as_at_once(workbench):
    """At every cut of every text: what has come so far looks as if it had come at once."""
    bad = workbench.eval("""(() => {
      const next = random(%d);
      let checks = 0;
      for (let round = 0; round < 400; ++round) {
        const text = randomText(next, 4 + Math.floor(next() * 24), round %% 2 ? kParts : kStarts);
        const root = document.createElement("div"), view = new Markdown.View(root);
        const most = [1, 3, 12][round %% 3];
        for (let at = 0; at < text.length;) {
          const size = Math.min(text.length - at, 1 + Math.floor(next() * most));
          view.append(text.slice(at, at + size));
          at += size;
          ++checks;
          const expected = whole(text.slice(0, at));
          if (!root.isEqualNode(expected)) return [text, at, root.innerHTML, expected.innerHTML];
        }
      }
      return checks;
    })()""" % SEED)
    assert isinstance(bad, int) and bad > 5000, bad


def test_every_split_of_a_whole_answer(workbench):
    from chat_page import CODE_ANSWER

    assert workbench.eval("""(text => {
      const expected = whole(text);
      for (let cut = 0; cut <= text.length; ++cut) {
        const root = document.createElement("div"), view = new Markdown.View(root);
        view.append(text.slice(0, cut));
        view.append(text.slice(cut));
        if (!root.isEqualNode(expected)) return [cut, root.innerHTML];
      }
      return true;
    })(%s)""" % json.dumps(CODE_ANSWER)) is True


def test_what_is_finished_stays_untouched(workbench):
    """No flicker: nodes that look the same afterwards are the same nodes, down to the text of an open code block."""
    assert workbench.eval("""(() => {
      const root = document.createElement("div"), view = new Markdown.View(root);
      const touched = [];
      view.append("# Head\\n\\nSome *text* here.\\n\\n```js\\nlet a");
      const nodes = [...root.querySelectorAll("h3, p, em, pre, code, button")];
      const observer = new MutationObserver((list) => touched.push(...list));
      observer.observe(root, {childList: true, subtree: true, characterData: true, attributes: true});
      view.append(" = 1;");
      view.append("\\nlet b = 2;");
      touched.push(...observer.takeRecords());
      const same = nodes.every((node) => root.contains(node));
      return same && touched.length > 0 && touched.every((r) => (r.target.closest ? r.target : r.target.parentNode).closest("pre code"));
    })()""") is True


# An independent implementation: markdown-it, on documents of the grammar that both know.

def inline(rng, depth=0):
    word = lambda: rng.choice(["plain", "some words", "x y", "end.", "(so)", "2 < 3 & 4"])  # noqa: E731
    kinds = [word, lambda: f"`{rng.choice(['a b', 'x*y', '<b>', '[a](b)'])}`"]
    if depth == 0:  # the two disagree on strokes within strokes
        kinds += [lambda: f"~~{word()} {inline(rng, 2)}~~"]
    if depth < 2:
        inner = lambda: inline(rng, depth + 1)  # noqa: E731
        kinds += [lambda: f"**{inner()}**", lambda: f"*{inner()}*", lambda: f"[{word()}](https://a.example/{rng.randrange(9)})", lambda: "<https://b.example/>", lambda: r"\*no\*"]
    return " ".join(rng.choice(kinds)() for _ in range(rng.randrange(1, 4)))


def block(rng, depth=0):
    indent = lambda text, by: text.replace("\n", "\n" + " " * by)  # noqa: E731
    kinds = [lambda: inline(rng), lambda: "\n".join(inline(rng) for _ in range(2)), lambda: "#" * rng.randrange(1, 7) + " " + inline(rng),
             lambda: "___", lambda: f"```{rng.choice(['', 'py', 'c++'])}\ndef f():\n    *x*\n\n- y\n```",
             lambda: f"| a | {inline(rng)} |\n|:--|--:|\n| {inline(rng)} | b |\n| `c` | |"]
    if depth < 2:
        items = lambda: [blocks(rng, depth + 1, rng.randrange(1, 3)) for _ in range(rng.randrange(1, 4))]  # noqa: E731
        kinds += [lambda: "\n".join("- " + indent(item, 2) for item in items()),
                  lambda: "\n".join(f"{i + 1}. " + indent(item, 3) for i, item in enumerate(items())),
                  lambda: "> " + indent(blocks(rng, depth + 1, 2), 0).replace("\n", "\n> ")]
    return rng.choice(kinds)()


def blocks(rng, depth, count):
    return "\n\n".join(block(rng, depth) for _ in range(count))


class Tree(HTMLParser):
    """HTML as nested lists, with what the two are free to differ in taken out."""

    HEADS = {f"h{i}" for i in range(1, 7)}

    def __init__(self, html):
        super().__init__()
        self.out = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        keep = {k: v for k, v in attributes if k in ("href", "start")}
        if tag == "br":
            self.out.append("\n")
        elif tag not in ("p", "div"):
            self.out.append(("h" if tag in self.HEADS else tag, tuple(sorted(keep.items()))))

    def handle_endtag(self, tag):
        if tag not in ("p", "div", "br", "hr"):
            self.out.append(("/", "h" if tag in self.HEADS else tag))

    def handle_data(self, data):
        text = " ".join(data.split())
        if text:
            self.out.append(text)

    def joined(self):
        """Neighbouring texts are one."""
        out = []
        for item in self.out:
            if isinstance(item, str) and out and isinstance(out[-1], str):
                out[-1] = (out[-1] + " " + item).replace(" \n ", "\n").strip()
            else:
                out.append(item)
        return [" ".join(item.split()) if isinstance(item, str) else item for item in out if item not in ("", "\n")]


def test_agrees_with_markdown_it(workbench):
    rng = random.Random(SEED)
    other = MarkdownIt("commonmark", {"breaks": True, "html": False}).enable(["table", "strikethrough"])
    texts = [blocks(rng, 0, rng.randrange(1, 6)) for _ in range(300)]
    ours = workbench.eval("""%s.map((text) => {
      const root = whole(text);
      root.querySelectorAll(".code-head").forEach((n) => n.remove());
      root.querySelectorAll("pre code").forEach((n) => { n.textContent = n.textContent; });
      return root.innerHTML;
    })""" % json.dumps(texts))
    for text, html in zip(texts, ours):
        expected = Tree(other.render(text)).joined()
        assert Tree(html).joined() == expected, f"seed {SEED}\n{text}\n{html}"


# Texts made to be slow. Steps are counted by the engine (block coverage), not timed.

SLOW = {
    "stars": "'*a '.repeat(n)", "nested stars": "'*a _b '.repeat(n)", "closers": "'a* '.repeat(n)", "run": "'*'.repeat(4 * n)", "both": "'*'.repeat(n) + 'a' + '*'.repeat(n)",
    "brackets": "'['.repeat(n)", "closing brackets": "'[]('.repeat(n)", "links": "'[a](b '.repeat(n)", "images": "'![a]('.repeat(n)",
    "backticks": "Array.from({length: Math.ceil(Math.sqrt(2 * n))}, (_, i) => '`'.repeat(i + 1)).join(' a ')",
    "angles": "'<a '.repeat(n)", "breaks": "'<br'.repeat(n)", "addresses": "'http://'.repeat(n)", "closing": "'https://a.example/' + ')'.repeat(n)",
    "quotes": "'>'.repeat(n)", "quote lines": "'> > a\\n'.repeat(n)", "items": "'- a\\n'.repeat(n)", "one line of items": "'- '.repeat(n)",
    "deeper and deeper": "Array.from({length: Math.ceil(Math.sqrt(n))}, (_, i) => ' '.repeat(i) + '- a').join('\\n')",
    "blank in list": "'- a' + '\\n'.repeat(n) + 'b'", "fences": "'```\\n'.repeat(n)", "tables": "'a|b\\n-|-\\n'.repeat(n)", "rows": "'|a|b|\\n|-|-|\\n' + '|\\n'.repeat(n)",
    "wide row": "'|a'.repeat(n) + '\\n' + '|-'.repeat(n)", "pipes": "'|\\n'.repeat(n)", "spaces": "' '.repeat(n) + 'a'", "heading": "'# ' + '#'.repeat(n) + 'a'", "heading spaces": "'# a' + ' '.repeat(n) + 'b'",
    "code": "'```js\\n' + 'if (a) { \"b\" /* c */ 1 } // d\\n'.repeat(n / 20)", "open comment": "'```js\\n' + '/* '.repeat(n)",
    "quotes in code": "'```js\\n' + '\"'.repeat(n)", "ticks in code": "'```js\\n' + '`a'.repeat(n)", "dots": "'```js\\n' + '1.'.repeat(n)",
    "escapes": "'\\\\\\\\'.repeat(n) + '*'", "tildes": "'~~a '.repeat(n)", "mixed": "'*_~~[`'.repeat(n)", "paragraphs": "'a\\n\\n'.repeat(n)",
}


def steps(page, expression):
    page.call("Profiler.takePreciseCoverage")  # sets the counters to zero
    page.eval(expression)
    scripts = page.call("Profiler.takePreciseCoverage")["result"]
    return sum(r["count"] for script in scripts for function in script["functions"] for r in function["ranges"])


def test_law7_twice_the_text_twice_the_steps(browser, pool):
    page = browser.new_page(None)
    page.call("Profiler.enable")
    page.call("Profiler.startPreciseCoverage", callCount=True, detailed=True)  # before anything is compiled
    page.go(pool(RICH).url + "/")
    page.eval(TOOLS)
    for name, text in SLOW.items():
        few, many = (steps(page, f"(n => {{ whole({text}); }})({n})") for n in (1000, 2000))
        assert many <= 2.6 * few + 200, f"{name}: {few} steps, then {many}"
    page.close()


def test_huge_and_deep_texts(workbench):
    """Nothing overflows; the depth of what is built is bounded."""
    deepest = workbench.eval("""(() => {
      const depth = (node) => { let most = 0; for (const child of node.children) most = Math.max(most, 1 + depth(child)); return most; };
      let deepest = 0;
      for (const make of [%s]) deepest = Math.max(deepest, depth(whole(make(5000))));
      return deepest;
    })()""" % ", ".join(f"(n) => {text}" for text in SLOW.values()))
    assert 10 < deepest < 120


EXAMPLES = [
    ("a_b_c and __init__", "<p>a_b_c and <strong>init</strong></p>"),
    ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
    ("***both***", "<p><em><strong>both</strong></em></p>"),
    ("line one\nline two", "<p>line one<br>line two</p>"),
    ("in\n1984. It was", "<p>in<br>1984. It was</p>"),
    ("1. a\n  - b\n2. c", "<ol><li><p>a</p><ul><li><p>b</p></li></ul></li><li><p>c</p></li></ol>"),
    ("3. c\n4. d", '<ol start="3"><li><p>c</p></li><li><p>d</p></li></ol>'),
    ("- [ ] a\n- [x] b", '<ul><li class="task"><p>\u2610 a</p></li><li class="task"><p>\u2611 b</p></li></ul>'),
    ("&lt;b&gt; <b>", "<p>&amp;lt;b&amp;gt; &lt;b&gt;</p>"),
    ("a<br>b", "<p>a<br>b</p>"),
    ("See https://a.example/x_(y). Now.", '<p>See <a href="https://a.example/x_(y)" target="_blank" rel="noopener noreferrer">https://a.example/x_(y)</a>. Now.</p>'),
    ("ahttps://x.example", "<p>ahttps://x.example</p>"),
    ("![logo](https://a.example/l.png)", '<p><a href="https://a.example/l.png" target="_blank" rel="noopener noreferrer">logo</a></p>'),
    ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
    ("[x](relative)", "<p>[x](relative)</p>"),
    ("```\nopen", None),
    ("~~gone~~ ~kept~", "<p><s>gone</s> ~kept~</p>"),
    ("# One #\n## Two", '<h3 class="level-1">One</h3><h4 class="level-2">Two</h4>'),
    ("[a *b](https://c.example/) c*", '<p><a href="https://c.example/" target="_blank" rel="noopener noreferrer">a *b</a> c*</p>'),
]


@pytest.mark.parametrize("text, html", EXAMPLES)
def test_examples(workbench, text, html):
    shown = workbench.eval(f"whole({json.dumps(text)}).innerHTML")
    assert shown == html if html else "<pre" in shown


# Colours in code.

def test_colours_change_no_letter(workbench):
    bad = workbench.eval("""(() => {
      const next = random(%d);
      const parts = [...kParts, '"', "'", "`", '\"\"\"', "//", "/*", "*/", "#", "--", "<!--", "-->", "<div", "/>", "0x1f", "1.5e3", "if", "return", "\\\\"];
      for (const language of ["c", "py", "sh", "lua", "sql", "json", "css", "html", "constructor", "unknown"]) {
        for (let round = 0; round < 200; ++round) {
          let text = "";
          for (let i = 0; i < 20; ++i) text += parts[Math.floor(next() * parts.length)];
          const code = document.createElement("code");
          code.append(...Highlight.nodes(text, language));
          if (code.textContent !== text) return [language, text];
        }
      }
      return true;
    })()""" % SEED)
    assert bad is True, bad


@pytest.mark.parametrize("language, text, spans", [
    ("python", "def f(x):  # why\n  return 'a#b' + 10", ["word:def", "comment:# why", "word:return", "string:'a#b'", "number:10"]),
    ("cpp", "int x = 0x1F; /* a\nb */ // c", ["word:int", "number:0x1F", "comment:/* a\nb */", "comment:// c"]),
    ("js", 'const a = `x\n${b}`; const s = "q\\"r";', ["word:const", "string:`x\n${b}`", "word:const", 'string:"q\\"r"']),
    ("sh", 'echo "$#" $# # count', ["word:echo", 'string:"$#"', "comment:# count"]),
    ("html", '<a href="x">y</a><!-- z -->', ["word:<a", 'string:"x"', "word:>", "word:</a", "word:>", "comment:<!-- z -->"]),
    ("text", "if 1 then 'x'", []),
])
def test_colours(workbench, language, text, spans):
    assert workbench.eval(f"""Highlight.nodes({json.dumps(text)}, {json.dumps(language)}).filter(n => n.nodeType)
      .map(n => n.className.slice(5) + ":" + n.textContent)""") == spans


# Server-sent events.

def test_events_cut_anywhere(workbench):
    """Every cut in three of a stream in all line ends and with all that is skipped; and its bytes, cut in letters."""
    bad = workbench.eval("""(() => {
      const expected = ['{"a":1}', "two\\nlines", "", "\\u00e9\\ud83d\\ude00", "[DONE]"];
      for (const end of ["\\n", "\\r\\n", "\\r"]) {
        const text = [": comment", 'data: {"a":1}', "", "event: x", "data:two", "data: lines", "id: 7", "", "", "data", "", "data: \\u00e9\\ud83d\\ude00", "",
          "retry: 3", "", "data: [DONE]", "", "data: no end"].join(end);
        const bytes = new TextEncoder().encode(text);
        for (let i = 0; i <= bytes.length; ++i) {
          for (let j = i; j <= bytes.length; j += 7) {
            const parser = new Sse.Parser(), decoder = new TextDecoder(), out = [];
            for (const piece of [bytes.slice(0, i), bytes.slice(i, j), bytes.slice(j)]) out.push(...parser.push(decoder.decode(piece, {stream: true})));
            if (JSON.stringify(out) !== JSON.stringify(expected)) return [end, i, j, out];
          }
        }
      }
      return true;
    })()""")
    assert bad is True, bad
