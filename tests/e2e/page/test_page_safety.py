"""S9: hostile text in the chat page. Nothing of it runs, becomes markup or leaves the browser, and the policy, which is
the second line of defence, is not even needed: no violation of it is reported."""

import json

import pytest

from chat_page import answer, ask, send, titles
from harness.script import says, script
from harness.wait import wait_until

HOSTILE = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    "<svg onload=window.hit=1>",
    "<iframe srcdoc='<script>parent.hit = 1</script>'></iframe>",
    "<a href='javascript:window.hit=1' id=bait>x</a>",
    "[x](javascript:window.hit=1)",
    "[x](JaVaScRiPt:window.hit=1)",
    "[x](java\tscript:window.hit=1)",
    "[x](\x01javascript:window.hit=1)",
    "[x](data:text/html,<script>opener.hit=1</script>)",
    "[x](vbscript:x) [x](file:///etc/passwd) [x](blob:x) [x](//evil.example/x) [x](/v1/models)",
    "![x](https://evil.example/pixel.png) ![x](data:image/svg+xml,<svg onload=hit=1>)",
    "<javascript:window.hit=1> <https://evil.example/\"onclick=hit=1>",
    "[x](https://a.example/\"onmouseover=\"window.hit=1)",
    "```html\n<script>window.hit = 1</script>\n```",
    "```\"><script>window.hit=1</script>\nx\n```",
    "| <img src=x onerror=window.hit=1> | b |\n|---|---|\n| <script>window.hit=1</script> | c |",
    "`<img src=x onerror=window.hit=1>` **<img src=x onerror=window.hit=1>**",
    "</div></article></main><script>window.hit=1</script>",
    "<style>*{display:none}</style><base href=https://evil.example/><meta http-equiv=refresh content=0;url=https://evil.example>",
    "<form action=https://evil.example><button>Send</button></form>",
    "<div id=input></div><div id=composer></div><input name=submit>",
    "&lt;img src=x onerror=window.hit=1&gt; &#x3C;script>",
    "constructor __proto__ toString",
]
ALLOWED_TAGS = {"ARTICLE", "DIV", "P", "BR", "A", "CODE", "PRE", "EM", "STRONG", "S", "SPAN", "BUTTON", "SVG", "USE", "TABLE",
                "THEAD", "TBODY", "TR", "TH", "TD", "DETAILS", "SUMMARY", "UL", "OL", "LI", "BLOCKQUOTE", "HR", "H3", "H4",
                "H5", "H6"}
ALL = "\n\n".join(HOSTILE)


def settle(page):
    """Until what the text could have started has had its turn: an image that stands behind it has failed to load, three
    frames and tasks have gone by, and a line of the console has come, behind every complaint from before it."""
    page.sentinels = getattr(page, "sentinels", 0) + 1
    word = f"sentinel {page.sentinels}"
    page.eval(f"""(async () => {{
      const image = new Image();
      await new Promise(done => {{ image.onerror = image.onload = done; image.src = "data:image/png,none"; }});
      for (let i = 0; i < 3; i++) await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
      console.info({json.dumps(word)});
    }})()""")
    wait_until(lambda: word in page.said or page.browser.pump(0.01), 20, "the sentinel behind the text")


def assert_harmless(page):
    settle(page)
    assert page.eval("window.hit === undefined")
    assert page.eval("location.href") == page.origin + "/"
    tags = set(page.eval("[...document.querySelectorAll('#turns *')].map(n => n.nodeName.toUpperCase())"))
    assert tags <= ALLOWED_TAGS, tags - ALLOWED_TAGS
    handlers = page.eval("[...document.querySelectorAll('body *')].filter(n => !n.matches('textarea, #menu'))"
                         ".flatMap(n => [...n.attributes]).map(a => a.name).filter(n => /^on|^style$|^src/i.test(n))")
    assert handlers == []
    for link in page.eval("[...document.querySelectorAll('#turns a')].map(a => [a.protocol, a.rel, a.target])"):
        assert link[0] in ("http:", "https:", "mailto:") and link[1:] == ["noopener noreferrer", "_blank"]
    assert page.eval("document.querySelectorAll('#input').length") == 1


def click_links(page):
    """Follows all links that are none of http's; they must not be there, so nothing happens."""
    page.eval("document.querySelectorAll('#turns a, #turns #bait').forEach(a => { if (!/^https?:/.test(a.href)) a.click(); })")


@pytest.fixture(scope="module")
def echo_server(pool):
    pieces = [ALL[i : i + 7] for i in range(0, len(ALL), 7)]
    return pool(script(says(*pieces, when="attack"), says("ok")))


def test_answer(echo_server, open_page):
    page = open_page(echo_server)
    ask(page, "attack")
    click_links(page)
    assert_harmless(page)
    assert "<script>window.hit = 1</script>" in answer(page)
    # After a reload it comes out of storage.
    page.reload()
    page.click(".open-chat")
    click_links(page)
    assert_harmless(page)


def test_message_title_and_editor(echo_server, open_page):
    page = open_page(echo_server)
    for text in HOSTILE:
        page.key("k", control=True)
        page.eval(f"Composer.set({json.dumps(text)})")
        send(page, "")
        page.until("document.querySelector('.turn.assistant') && document.getElementById('stop').hidden")
        assert page.eval("document.querySelector('.question').textContent") == text
    assert_harmless(page)
    assert HOSTILE[0] in titles(page)
    page.eval("document.querySelector('[aria-label=\"Edit message\"]').click()")
    assert page.eval("document.activeElement.value") == HOSTILE[-1]
    page.key("Escape")
    page.eval("document.getElementById('filter').focus()")
    page.type("<img src=x onerror=window.hit=1>")
    assert_harmless(page)


def test_imported_chats(echo_server, open_page):
    page = open_page(echo_server)
    node = {"id": "<img src=x onerror=window.hit=1>", "parent": None, "role": "user", "content": ALL, "__proto__": {"hit": 1}}
    reply = {"id": "b\"]", "parent": node["id"], "role": "assistant", "content": ALL, "reasoning": ALL, "error": ALL[:900],
             "end": "<b>", "model": "<script>window.hit=1</script>"}
    chats = [{"id": "\"><script>window.hit=1</script>", "title": text, "nodes": [node, reply], "version": 1} for text in HOSTILE]
    text = json.dumps({"format": "omnibus-chats", "version": 1, "chats": chats})
    page.eval(f"Transfer.load(new File([{json.dumps(text)}], 'x.json'))")
    for row in (0, 5, len(HOSTILE) - 1):
        page.eval(f"document.querySelectorAll('.open-chat')[{row}].click()")
        page.eval("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        click_links(page)
        assert_harmless(page)
    assert page.eval("({}).hit === undefined")
    page.eval("document.querySelectorAll('#chat-list .more')[0].click()")
    assert_harmless(page)


def test_the_policy_holds(echo_server, open_page):
    """What would stop an attacker who got past the page's own care."""
    page = open_page(echo_server)
    results = page.eval("""(async () => {
      const out = {};
      const attempt = async (name, f) => { try { await f(); out[name] = "done"; } catch (e) { out[name] = "refused"; } };
      const node = document.createElement("div");
      document.body.append(node);
      await attempt("markup", () => { node.innerHTML = "<b>x</b>"; });
      await attempt("eval", () => Function("return 1")());
      await attempt("abroad", () => fetch("http://localhost:9/"));
      await attempt("handler", () => node.setAttribute("onclick", "hit = 1"));
      await attempt("script", () => { const s = document.createElement("script"); s.textContent = "window.hit = 1"; node.append(s); });
      await attempt("image", () => new Promise((done, fail) => { const i = new Image(); i.onload = done; i.onerror = fail; i.src = "/x.png"; }));
      await attempt("frame", () => { const f = document.createElement("iframe"); f.srcdoc = "x"; });
      return out;
    })()""", unsafe=False)
    assert set(results.values()) == {"refused"} and len(results) == 7, results
    assert page.eval("window.hit === undefined")
    assert len(page.complaints) >= 4
    page.complaints.clear()
    page.requests.clear()
