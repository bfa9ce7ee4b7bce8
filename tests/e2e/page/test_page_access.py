"""The page for everybody: names and roles, the keyboard alone, contrast, small screens."""

import pytest

from chat_page import RICH, ask, finished, send, titles

INTERACTIVE = {"button", "textbox", "searchbox", "combobox", "checkbox", "radio", "link", "spinbutton", "menuitem", "option",
               "switch", "slider", "MenuListPopup", "DisclosureTriangle"}


def with_everything(page):
    """A chat with all that an answer may hold, one more in the list, and an edited question."""
    ask(page, "palindrome")
    page.eval("document.querySelector('[aria-label=\"Edit message\"]').click()")
    page.key("Enter")
    finished(page)
    page.key("k", control=True)
    ask(page, "wide")
    page.click("#chat-list ul li:nth-child(2) .open-chat")
    # An answer with thoughts and an error, as they are shown.
    page.eval("""{
      const node = {...Chat.create(), role: "assistant", content: "x", reasoning: "Some *thoughts*.", error: "An error.", end: "error", stats: null};
      const view = new TurnView.View(node, {index: 0, siblings: [node]}, {});
      document.getElementById("turns").append(view.element);
      view.element.querySelector("details").open = true;
    }""")


VIEWS = {
    "chat": "0",
    "settings": "document.getElementById('open-settings').click()",
    "key": "SettingsDialog.openForKey()",
    "error": "SettingsDialog.open(); document.getElementById('set-top_k').value = '9.5';"
             "document.getElementById('set-top_k').dispatchEvent(new Event('input'))",
    "help": "document.getElementById('open-help').click()",
    "menu": "document.querySelector('#chat-list .more').click()",
    "rename": "document.querySelector('#chat-list .more').click(); document.querySelector('#menu button').click()",
    "editor": "document.querySelector('[aria-label=\"Edit message\"]').click()",
    "notice": "Notices.show('Something was done.', {label: 'Undo', run() {}})",
    "nothing found": "document.getElementById('filter').value = 'qqq'; document.getElementById('filter').dispatchEvent(new Event('input'))",
    "first": "document.getElementById('new-chat').click()",
}


def each_view(page):
    """Shows one view after another; yields their names."""
    for name, script in VIEWS.items():
        page.eval(script)
        yield name
        page.eval("document.querySelectorAll('dialog[open]').forEach(d => d.close()); document.querySelector('.notice .icon-button')?.click();"
                  "if (document.querySelector('#menu:popover-open')) document.getElementById('menu').hidePopover();"
                  "document.activeElement.blur(); document.getElementById('filter').value = '';"
                  "document.getElementById('filter').dispatchEvent(new Event('input'))")


def test_every_control_has_a_name(replay, open_page):
    page = open_page(replay(RICH))
    with_everything(page)
    seen = set()
    for view in each_view(page):
        for node in page.call("Accessibility.getFullAXTree")["nodes"]:
            if node.get("ignored"):
                continue
            role = node["role"]["value"]
            focusable = any(p["name"] == "focusable" and p["value"]["value"] for p in node.get("properties", []))
            if role in INTERACTIVE or (focusable and role != "RootWebArea"):
                name = node.get("name", {}).get("value", "")
                if role != "MenuListPopup":
                    assert name.strip(), f"{view}: {role} without a name: {node}"
                assert role not in ("generic", "none"), f"{view}: {name} has no role"
                seen.add(role)
    assert {"button", "textbox", "searchbox", "combobox", "checkbox", "radio", "link", "spinbutton", "menuitem"} <= seen


def test_landmarks_and_one_main_heading(replay, open_page):
    page = open_page(replay(RICH))
    roles = [n["role"]["value"] for n in page.call("Accessibility.getFullAXTree")["nodes"] if not n.get("ignored")]
    for role in ("main", "navigation", "complementary", "log"):
        assert roles.count(role) == 1, role
    assert page.count("h1") == 1 and page.eval("document.documentElement.lang") == "en"


REACHABLE = """(() => {
  const root = document.querySelector("dialog[open]") || document.body;
  const seen = (node) => node.checkVisibility({visibilityProperty: true}) && !node.closest("[inert]");
  const nodes = [...root.querySelectorAll("button, input, textarea, select, a[href], summary, [tabindex='0']")];
  // Of radio buttons that belong together one is a stop.
  return nodes.filter(n => seen(n) && !n.disabled && !(n.type === "radio" && !n.checked))
    .map(n => (n.dataset.stop = n.dataset.stop || String(Math.random()), n.dataset.stop));
})()"""


@pytest.mark.parametrize("width", [1280, 360])
def test_tab_reaches_every_control(replay, open_page, width):
    page = open_page(replay(RICH), width=width, height=800)
    if width > 800:
        with_everything(page)
    for prepare in ("0", "SettingsDialog.open()", "document.getElementById('help').showModal()"):
        page.eval("document.querySelectorAll('dialog[open]').forEach(d => d.close())")
        page.eval(prepare)
        wanted = set(page.eval(REACHABLE))
        assert len(wanted) > 1 or "help" in prepare
        reached = set()
        for _ in range(2 * len(wanted) + 4):
            page.key("Tab")
            stop = page.eval("""(() => {
              const node = document.activeElement, style = getComputedStyle(node);
              if (node === document.body || node === document.documentElement) return "";
              const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
              return ring || node.id === "input" ? node.dataset.stop || "?" : "no ring: " + node.outerHTML.slice(0, 200);
            })()""")
            assert not stop.startswith("no ring"), stop
            reached.add(stop)
            if wanted <= reached:
                break
        missing = wanted - reached
        missing &= set(page.eval(REACHABLE))  # the button that jumps to the end goes when the end is there
        assert not missing, [page.eval(f"document.querySelector('[data-stop=\"{m}\"]').outerHTML.slice(0, 200)") for m in missing]


CONTRAST = """(() => {
  const parse = (color) => {
    const canvas = parse.canvas ??= new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    if (!node) return [255, 255, 255, 1];
    const own = parse(getComputedStyle(node).backgroundColor);
    return own[3] === 1 ? own : over(own, ground(node.parentElement));
  };
  const opacity = (node) => !node ? 1 : parseFloat(getComputedStyle(node).opacity) * opacity(node.parentElement);
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const root = document.querySelector("dialog[open]") || document.body;
  const bad = [];
  let count = 0;
  const check = (node, color, text) => {
    const below = ground(node), shown = parse(color);
    shown[3] *= opacity(node);
    if (shown[3] === 0 || node.disabled) return;
    ++count;
    const r = ratio(over(shown, below), below);
    if (r < 4.5) bad.push([text.trim().slice(0, 40), node.className, r.toFixed(2)]);
  };
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode());) {
    const node = n.parentElement;
    if (n.data.trim() === "" || !node.checkVisibility({visibilityProperty: true}) || node.closest(".off-screen, svg, option")) continue;
    check(node, getComputedStyle(node).color, n.data);
  }
  for (const field of root.querySelectorAll("input, textarea, select")) {
    if (!field.checkVisibility()) continue;
    check(field, getComputedStyle(field).color, field.id);
    check(field, getComputedStyle(field, "::placeholder").color, field.id + " placeholder");
  }
  return {bad, count};
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast(replay, open_page, dark):
    page = open_page(replay(RICH), dark=dark)
    with_everything(page)
    for view in each_view(page):
        result = page.eval(CONTRAST)
        assert result["count"] >= 5 and result["bad"] == [], f"{view}: {result['bad']}"
    # The measure itself: it must see what is bad.
    page.eval("document.querySelector('#title').className = 'turn'; document.getElementById('title').style.color = '#8888'")
    assert len(page.eval(CONTRAST)["bad"]) == 1


WIDE = """(() => {
  const out = [];
  const limit = document.documentElement.clientWidth;
  if (document.scrollingElement.scrollWidth > limit) out.push("page");
  for (const node of document.querySelectorAll("body *")) {
    if (!node.checkVisibility({visibilityProperty: true}) || node.closest(".off-screen, svg, [inert], pre > *, .table > *")) continue;
    const style = getComputedStyle(node);
    const scrolls = node.scrollWidth > node.clientWidth + 1 && ["auto", "scroll"].includes(style.overflowX) && !node.matches("pre, .table, input, textarea");
    const box = node.getBoundingClientRect();
    if (scrolls || (box.width > 0 && (box.right > limit + 1 || box.left < -1))) out.push(node.outerHTML.slice(0, 120));
  }
  return out;
})()"""


def test_no_horizontal_scroll_on_a_phone(replay, open_page):
    page = open_page(replay(RICH), width=360, height=640)
    ask(page, "palindrome " + "long" * 60)
    page.click("#new-chat-top")
    ask(page, "wide")
    for view, script in {**VIEWS, "drawer": "document.getElementById('open-drawer').click()"}.items():
        page.eval(script)
        found = page.eval(WIDE)
        assert found == [], f"{view}: {found}"
        if view == "chat":
            for part in (".prose pre", ".prose .table"):  # these scroll in themselves
                assert page.eval(f"(n => (n.scrollLeft = 50, [n.scrollLeft, getComputedStyle(n).overflowX]))"
                                 f"(document.querySelector('{part}'))") == [50, "auto"]
        page.eval("document.querySelectorAll('dialog[open]').forEach(d => d.close())")
    # It would see it.
    page.eval("document.getElementById('title').style.minWidth = '500px'")
    assert page.eval(WIDE) != []


def test_drawer_on_a_phone(replay, open_page):
    page = open_page(replay(RICH), width=360, height=640)
    assert page.eval("document.getElementById('drawer').checkVisibility()") is False
    ask(page, "hello")
    page.click("#open-drawer")
    assert page.eval("document.activeElement.id") == "close-drawer" and page.eval("document.getElementById('main').inert")
    page.key("Escape")
    assert page.eval("document.activeElement.id") == "open-drawer"
    page.click("#open-drawer")
    page.click("#new-chat")
    assert page.eval("document.getElementById('drawer').checkVisibility()") is False
    assert page.eval("document.activeElement.id") == "input"


def test_keys(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "hello")
    page.key("/", control=True)
    assert page.eval("document.getElementById('help').open")
    page.key("Escape")
    page.key(",", control=True)
    assert page.eval("document.getElementById('settings').open")
    page.key("k", control=True)
    assert page.count(".turn") == 2, "keys of the page do nothing under a dialog"
    page.key("Escape")
    page.key("b", control=True)
    assert page.eval("document.getElementById('drawer').checkVisibility()") is False
    page.key("b", control=True)
    assert page.eval("document.getElementById('drawer').checkVisibility()")
    page.eval("document.getElementById('log').focus()")
    page.key("?")
    assert page.eval("document.getElementById('help').open")
    page.key("Escape")
    page.key("/")
    assert page.eval("[document.activeElement.id, document.activeElement.value]") == ["input", ""]
    page.key("/")
    assert page.eval("document.activeElement.value") == "/"
    page.key("k", control=True)
    assert page.count(".turn") == 0


def test_menu_by_keyboard(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "hello")
    page.eval("document.querySelector('#chat-list .more').focus()")
    page.key("Enter")
    focused = "document.activeElement.textContent"
    assert page.eval(focused) == "Rename"
    page.key("ArrowUp")
    assert page.eval(focused) == "Delete"
    page.key("ArrowDown")
    page.key("ArrowDown")
    assert page.eval(focused) == "Export as Markdown"
    page.key("Escape")
    assert page.eval("document.activeElement.matches('.more')")
    page.key("Enter")
    page.key("End")
    page.key("Enter")
    assert titles(page) == []
    assert page.eval("document.activeElement.id") == "new-chat"


def test_theme(replay, open_page):
    page = open_page(replay(RICH), dark=True)
    theme = "document.documentElement.dataset.theme"
    assert page.eval(theme) == "dark"
    page.media(dark=False)
    page.until(f"{theme} === 'light'")
    page.click("#toggle-theme")
    assert page.eval(theme) == "dark"
    page.reload()
    assert page.eval(theme) == "dark"
    page.click("#open-settings")
    page.click("#set-theme-system")
    assert page.eval(theme) == "light"


def test_screen_readers_hear_the_answer_once(replay, open_page):
    page = open_page(replay(RICH))
    page.eval("""{
      window.heard = [];
      new MutationObserver(() => heard.push(document.getElementById("announcement").textContent))
        .observe(document.getElementById("announcement"), {childList: true, characterData: true, subtree: true});
    }""")
    ask(page, "hello")
    assert page.eval("heard") == ["Answering", "Answer: Hello world!"]
    assert page.eval("document.getElementById('log').getAttribute('aria-live')") == "off"


def test_focus_stays_where_it_was(own_replay, open_page):
    """An answer that comes to its end takes nobody's place away."""
    page = open_page(own_replay(RICH))
    ask(page, "hello")
    page.key("k", control=True)
    send(page, "endless")
    page.until("/word9 /.test(document.querySelector('.answer')?.innerText)")
    page.eval("document.querySelector('#chat-list ul li:nth-child(2) .open-chat').focus()")
    page.eval("Answers.stop(Chats.list()[0])")
    finished(page)
    page.until("!document.querySelector('.busy')")
    assert page.eval("document.activeElement.textContent") == "hello"
    # The button that stops an answer hands the focus on when it goes.
    send(page, "endless")
    page.until("!document.getElementById('stop').hidden")
    page.eval("document.getElementById('stop').focus()")
    page.key("Enter")
    finished(page)
    assert page.eval("document.activeElement.id") == "input"
