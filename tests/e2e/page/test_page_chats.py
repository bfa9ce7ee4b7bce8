"""Chats on the page: kept, found, renamed, deleted, exported, imported; stored nonsense does no harm."""

import json

from chat_page import RICH, answer, ask, chat_menu, titles
from harness.wait import wait_until


def downloads(page):
    """From now on, what the page saves lies in window.saved as [name, text] pairs."""
    page.eval("""{
      window.saved = [];
      const blobs = new Map(), create = URL.createObjectURL;
      URL.createObjectURL = (blob) => { const url = create(blob); blobs.set(url, blob); return url; };
      HTMLAnchorElement.prototype.click = function () {
        blobs.get(this.href).text().then((text) => saved.push([this.download, text]));
      };
    }""")


def saved(page):
    page.until("saved.length > 0")
    return page.eval("saved.shift()")


def load_file(page, tmp_path, text):
    path = tmp_path / "chats.json"
    path.write_text(text, encoding="utf-8")
    node = page.call("Runtime.evaluate", expression="document.getElementById('import-file')")["result"]["objectId"]
    page.call("DOM.setFileInputFiles", files=[str(path)], objectId=node)


def test_chats_survive_a_reload(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "hello there")
    page.key("k", control=True)
    assert page.count(".turn") == 0 and page.eval("document.activeElement.id") == "input"
    ask(page, "other things\nin two lines")
    assert titles(page) == ["other things", "hello there"]
    page.reload()
    assert titles(page) == ["other things", "hello there"]
    page.click("#chat-list ul li:nth-child(2) .open-chat")
    assert page.text(".question") == "hello there" and answer(page) == "Hello world!"
    assert page.text(".stats").startswith("7 tokens")
    assert ask(page, "more") == "Hello world!"
    assert titles(page) == ["hello there", "other things"]


def test_rename(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "hello")
    chat_menu(page, "Rename")
    assert page.eval("document.activeElement.value") == "hello"
    page.type("Greetings & more")
    page.key("Enter")
    assert titles(page) == ["Greetings & more"] and page.text("#title") == "Greetings & more"
    assert page.eval("document.activeElement.className") == "open-chat"
    chat_menu(page, "Rename")
    page.type("never mind")
    page.key("Escape")
    page.reload()
    assert titles(page) == ["Greetings & more"]


def test_delete_and_undo(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "hello")
    chat_menu(page, "Delete")
    assert titles(page) == [] and page.count(".turn") == 0
    page.click(".notice button")
    assert titles(page) == ["hello"] and page.count(".turn") == 2
    page.reload()
    assert titles(page) == ["hello"]
    chat_menu(page, "Delete")
    page.reload()
    assert titles(page) == []


def test_deleting_while_it_answers(own_replay, open_page):
    server = own_replay(RICH)
    page = open_page(server)
    page.eval("Composer.focus()")
    page.type("endless")
    page.key("Enter")
    page.until("/word9 /.test(document.querySelector('.answer')?.innerText)")
    chat_menu(page, "Delete")
    wait_until(server.idle, 10, "the server let go of the request")
    page.reload()
    assert titles(page) == []


def test_search(replay, open_page):
    page = open_page(replay(RICH))
    for text in ("hello apples", "pears"):
        page.key("k", control=True)
        ask(page, text)
    page.eval("document.getElementById('filter').focus()")
    page.type("WORLD app")
    assert titles(page) == ["hello apples"]
    page.type("zz")
    assert titles(page) == [] and "No chat" in page.text("#chat-list")


def test_export(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "hello")
    page.click("[aria-label='Answer again']")
    page.until("document.querySelector('.branches') && document.getElementById('stop').hidden")
    downloads(page)
    chat_menu(page, "Export as Markdown")
    assert saved(page) == ["hello.md", "# hello\n\n## You\n\nhello\n\n## replay\n\nHello world!\n"]
    chat_menu(page, "Export as JSON")
    name, text = saved(page)
    value = json.loads(text)
    assert name == "hello.json" and value["format"] == "omnibus-chats" and value["version"] == 1
    assert [(n["role"], n["content"]) for n in value["chats"][0]["nodes"]] == [
        ("user", "hello"), ("assistant", "Hello world!"), ("assistant", "Hello world!")]


def test_what_was_exported_is_imported(replay, open_page, tmp_path):
    page = open_page(replay(RICH))
    ask(page, "hello")
    page.click("[aria-label='Answer again']")
    page.until("document.querySelector('.branches') && document.getElementById('stop').hidden")
    page.key("k", control=True)
    ask(page, "other")
    downloads(page)
    page.click("#open-settings")
    page.click("#export-all")
    _, text = saved(page)
    page.click("#remove-all")
    assert titles(page) == []
    load_file(page, tmp_path, text)
    page.until("document.querySelectorAll('.open-chat').length === 2")
    downloads(page)
    page.click("#open-settings")
    page.click("#export-all")
    strip = lambda t: [{**chat, "id": ""} for chat in json.loads(t)["chats"]]  # noqa: E731
    assert strip(saved(page)[1]) == strip(text)


def test_plain_messages_are_imported(replay, open_page, tmp_path):
    page = open_page(replay(RICH))
    messages = [{"role": "system", "content": "Rhyme."}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    load_file(page, tmp_path, json.dumps(messages))
    page.until("document.querySelectorAll('.turn').length === 2")
    assert titles(page) == ["a"]
    ask(page, "hello")
    body = json.loads(page.requests[-1]["postData"])
    assert body["messages"] == [*messages, {"role": "user", "content": "hello"}]


def test_files_that_hold_no_chat(replay, open_page, tmp_path):
    page = open_page(replay(RICH))
    page.click("#open-settings")
    for text in ("", "{", "null", "7", "[]", "{}", '{"chats": [null, 7, {"nodes": 3}]}', '[{"messages": [{"role": "user"}]}]',
                 '{"version": 99, "messages": [{"role": "user", "content": "x"}]}'):
        page.eval("document.getElementById('import-error').textContent = ''")
        load_file(page, tmp_path, text)
        page.until("document.getElementById('import-error').textContent !== ''")
    assert titles(page) == []


NONSENSE = """[
  null, 7, "x", [], {}, {nodes: null}, {nodes: {}}, {nodes: [null]}, {version: 2, nodes: []},
  {nodes: [{id: "a", parent: "a", role: "user", content: "ring"}]},
  {nodes: [{id: "a", parent: "b", role: "user", content: "x"}, {id: "b", parent: "a", role: "user", content: "ring"}]},
  {nodes: [{id: "a", parent: null, role: "system", content: "x"}]},
  {nodes: [{id: 5, parent: null, role: "user", content: "odd", created: "then", stats: 9}], leaf: {}, title: 3, updated: -1},
  {nodes: [{id: "a", parent: null, role: "user", content: "ok"}, {id: "a", parent: "a", role: "assistant", content: "same id", error: {}, end: 4, stats: {tokens: "x"}}], title: " "},
]"""


def test_stored_nonsense(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "hello")
    page.eval(f"""new Promise((resolve, reject) => {{
      const request = indexedDB.open("omnibus");
      request.onsuccess = () => {{
        const store = request.result.transaction("chats", "readwrite").objectStore("chats");
        {NONSENSE}.forEach((value, i) => store.put({{...Object(value), id: "bad" + i}}));
        store.transaction.oncomplete = resolve;
        store.transaction.onerror = reject;
      }};
    }})""")
    for value in ("{", "null", "7", '{"version":1,"numbers":[],"stop":{},"system":4}', '{"version":9,"system":"x"}',
                  '{"version":1,"numbers":{"temperature":"hot","top_k":1.5,"seed":null},"stop":[1,""]}'):
        page.eval(f"localStorage.setItem('omnibus.settings', {json.dumps(value)});"
                  f"localStorage.setItem('omnibus.theme', {json.dumps(value)});"
                  f"localStorage.setItem('omnibus.key', {json.dumps(value)});"
                  f"localStorage.setItem('omnibus.drawer', {json.dumps(value)})")
        page.reload()
        assert sorted(titles(page)) == ["hello", "odd", "ok"]
        for row in range(3):
            page.eval(f"document.querySelectorAll('.open-chat')[{row}].click()")
            assert page.count(".turn") >= 1
    page.click("#new-chat")
    assert ask(page, "hello") == "Hello world!"
    assert not {"temperature", "top_k", "seed", "stop"} & set(json.loads(page.requests[-1]["postData"]))


def test_without_storage(replay, open_page):
    page = open_page(replay(RICH), url=False, fresh=True)
    page.call("Page.addScriptToEvaluateOnNewDocument", source="""
      Object.defineProperty(window, "indexedDB", {get() { throw new DOMException("no", "SecurityError"); }});
      Object.defineProperty(window, "localStorage", {get() { throw new DOMException("no", "SecurityError"); }});
    """)
    page.go(page.origin + "/")
    assert ask(page, "hello") == "Hello world!"
    assert titles(page) == ["hello"]
    page.click("#toggle-theme")
    page.key("k", control=True)
    ask(page, "other")
    page.click("#chat-list ul li:nth-child(2) .open-chat")
    assert answer(page) == "Hello world!"


def test_a_full_disk_is_told_once(replay, open_page):
    page = open_page(replay(RICH))
    page.eval("IDBObjectStore.prototype.put = () => { throw new DOMException('no space left', 'QuotaExceededError'); }")
    ask(page, "hello")
    assert "no space left" in page.text("#notice")
    page.click("[aria-label='Dismiss']")
    assert ask(page, "again") == "Hello world!"
    assert page.text("#notice") == ""


def test_at_most_500_chats(replay, open_page):
    page = open_page(replay(RICH))
    page.eval("""for (let i = 0; i < 500; ++i) {
      const chat = Chat.create();
      Chat.add(chat, null, "user", "number " + i);
      chat.updated = 1e12 + i;
      Chats.save(chat);
    }""")
    page.until("document.querySelectorAll('.open-chat').length === 60")
    ask(page, "hello")
    assert "number 0" in page.text("#notice")
    # The list shows some, and the others on request.
    page.click(".more-chats")
    assert page.count(".open-chat") == 120
    assert page.eval("[Chats.list().length, Chats.list().at(-1).title]") == [500, "number 1"]


def test_an_answer_that_a_reload_cut_off(own_replay, open_page):
    server = own_replay(RICH)
    page = open_page(server)
    page.eval("Composer.focus()")
    page.type("endless")
    page.key("Enter")
    page.until("/word9 /.test(document.querySelector('.answer')?.innerText)")
    page.reload()
    wait_until(server.idle, 10, "the server let go of the request")
    page.click(".open-chat")
    assert page.text(".question") == "endless" and page.text(".stats").endswith("stopped")
    assert page.eval("document.getElementById('stop').hidden") is True


def test_two_tabs(replay, open_page):
    """What one tab writes the other shows; neither overwrites the other."""
    server = replay(RICH)
    one = open_page(server)
    two = open_page(server, beside=one)
    ask(one, "hello")
    two.until("document.querySelectorAll('.open-chat').length === 1")
    two.eval("document.querySelector('.open-chat').click()")
    assert answer(two) == "Hello world!"
    ask(two, "and on")
    one.until("document.querySelectorAll('.turn').length === 4")
    ask(one, "and further")
    two.until("document.querySelectorAll('.turn').length === 6")
    chat_menu(two, "Rename")
    two.type("Renamed")
    two.key("Enter")
    one.until("document.querySelector('#chat-list .title').textContent === 'Renamed'")
    chat_menu(one, "Delete")
    two.until("document.querySelectorAll('.open-chat').length === 0")
    one.reload()
    assert titles(one) == []
