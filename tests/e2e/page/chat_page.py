"""What a person does on the chat page, and what the model says to it."""

import json

from harness.script import says, script

PYTHON = '''def longest(text):
    """The longest palindrome in text."""
    best = ""
    for middle in range(len(text)):
        for left, right in ((middle, middle), (middle, middle + 1)):
            while left >= 0 and right < len(text) and text[left] == text[right]:
                left, right = left - 1, right + 1
            best = max(best, text[left + 1:right], key=len)
    return best
'''

CODE_ANSWER = f"""Every palindrome has a **middle**: a letter, or the gap between two. So try each of them and *grow outwards*:

```python
{PYTHON}```

How it behaves:

1. There are `2n - 1` middles.
2. Growing from one takes at most `n` steps:
   - fewer for most texts,
   - all of them for `aaaa`.

| text | longest | steps |
|:-----|:-------:|------:|
| `abacus` | aba | 11 |
| `noon` | noon | 7 |

> It needs no memory beyond the answer.

See [the article](https://example.org/palindromes) for one in linear time.
"""

RICH = script(
    # The first whose word stands anywhere in the chat.
    says("Hel", "lo", " ", "wor", "ld", "!", when="hello"),
    says(*[CODE_ANSWER[i : i + 5] for i in range(0, len(CODE_ANSWER), 5)], when="palindrome"),
    says(*[f"word{i} " for i in range(50)], when="endless", eos=False, delay_ms=3),
    says("```\n", "x" * 400, "\n```\n\n| a | b |\n|---|---|\n| ", "y" * 80, " | ", "z" * 80, " |\n", when="wide"),
    says("ok"),
)


def send(page, text):
    page.eval("Composer.focus()")
    page.type(text)
    page.key("Enter")


def finished(page):
    """Waits until nothing is being answered."""
    page.until("document.getElementById('stop').hidden && !document.querySelector('.turn.running')")


def ask(page, text):
    """Sends a message and waits for all of the answer; its text."""
    before = page.count(".turn.assistant")
    send(page, text)
    page.until(f"document.querySelectorAll('.turn.assistant').length > {before}")
    finished(page)
    return answer(page)


def answer(page):
    return page.eval("[...document.querySelectorAll('.turn.assistant .answer')].pop().innerText")


def bodies(page):
    """What was posted to the chat route, in order."""
    return [json.loads(r["postData"]) for r in page.requests if r["url"].endswith("/v1/chat/completions")]


def titles(page):
    return page.eval("[...document.querySelectorAll('#chat-list .title')].map(node => node.textContent)")


def chat_menu(page, entry, row=0):
    """Picks an entry of the menu beside a chat's name."""
    page.eval(f"document.querySelectorAll('#chat-list .more')[{row}].click()")
    page.eval(f"[...document.querySelectorAll('#menu button')].find(b => b.textContent === {json.dumps(entry)}).click()")
