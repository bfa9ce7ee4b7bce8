"""Talking to the model on the chat page: streaming, stopping, editing, answering again, settings, keys, errors."""

import base64
import json

from chat_page import CODE_ANSWER, PYTHON, RICH, answer, ask, bodies, finished, send
from harness.script import says, script
from harness.wait import wait_until


def test_first_view(replay, open_page):
    page = open_page(replay(RICH))
    assert page.eval("document.title") == "omnibus"
    assert page.eval("document.activeElement.id") == "input"
    page.until("document.getElementById('model').value === 'replay'")
    assert page.count("#welcome [data-prompt]") == 4
    page.click("#welcome [data-prompt]")
    assert "refrigerator" in page.eval("document.getElementById('input').value")
    assert page.eval("document.activeElement.id") == "input"


def test_answer_in_pieces_becomes_markdown(replay, open_page):
    page = open_page(replay(RICH))
    page.allow_clipboard()
    ask(page, "palindrome?")
    assert page.text(".turn.user .question") == "palindrome?"
    assert page.text(".answer p strong") == "middle" and page.text(".answer p em") == "grow outwards"
    assert page.text(".answer .code-language") == "python"
    assert page.eval("document.querySelector('.answer pre code').textContent") == PYTHON.rstrip("\n")
    assert page.eval("[...document.querySelectorAll('.answer ol > li > ul > li')].map(n => n.innerText)") == [
        "fewer for most texts,", "all of them for aaaa."]
    assert page.eval("[...document.querySelectorAll('.answer table tr')].map(r => [...r.cells].map(c => c.innerText))") == [
        ["text", "longest", "steps"], ["abacus", "aba", "11"], ["noon", "noon", "7"]]
    assert page.text(".answer blockquote") == "It needs no memory beyond the answer."
    assert page.eval("(a => [a.href, a.rel, a.target])(document.querySelector('.answer a'))") == [
        "https://example.org/palindromes", "noopener noreferrer", "_blank"]
    page.click(".copy-code")
    page.until("document.querySelector('.copy-label').textContent === 'Copied'")
    assert page.eval("navigator.clipboard.readText()", gesture=True) == PYTHON.rstrip("\n")
    page.click("[aria-label='Copy answer']")
    wait_until(lambda: page.eval("navigator.clipboard.readText()", gesture=True) == CODE_ANSWER, 5, "copied answer")


def test_copying_without_the_clipboard_api(replay, open_page):
    page = open_page(replay(RICH))
    page.allow_clipboard()
    ask(page, "hello")
    # As over plain HTTP from another machine.
    page.eval("{ const read = navigator.clipboard.readText.bind(navigator.clipboard); window.readBack = read;"
              "Object.defineProperty(navigator, 'clipboard', {value: undefined}); }")
    page.click("[aria-label='Copy answer']")
    page.until("document.getElementById('announcement').textContent === 'Copied'")
    assert page.eval("readBack()", gesture=True) == "Hello world!"


def test_counts_and_context(replay, open_page):
    server = replay(RICH)
    page = open_page(server)
    ask(page, "hello")
    usage = server.chat("hello").json()["usage"]
    assert page.text(".stats").startswith(f"{usage['completion_tokens']} tokens")
    assert "first after" in page.text(".stats")
    used = usage["completion_tokens"] + usage["prompt_tokens"]
    assert page.text("#context-text") == f"{used} / 4,096"


def test_stop_ends_the_request(own_replay, open_page):
    server = own_replay(RICH)
    page = open_page(server)
    send(page, "endless")
    page.until("/word9 /.test(document.querySelector('.answer')?.innerText)")
    assert server.metric("vllm:num_requests_running") == 1
    assert page.eval("document.getElementById('send').hidden") is True
    page.until("document.querySelector('.stats').innerText.includes('tok/s')")
    page.key("Escape")
    finished(page)
    wait_until(server.idle, 10, "the server let go of the request")
    assert page.text(".stats").endswith("stopped")
    # The part that came is kept, goes on counting as the model's, and the next message gets its answer.
    part = answer(page)
    assert part.startswith("word0 word1 ")
    assert ask(page, "hello") == "Hello world!"
    messages = bodies(page)[-1]["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user"] and messages[1]["content"].startswith(part)
    # The button does what the key does.
    page.click("#new-chat")
    send(page, "endless")
    page.until("/word9 /.test(document.querySelector('.answer')?.innerText)")
    page.click("#stop")
    finished(page)
    wait_until(server.idle, 10, "the server let go of the request")


def test_enter_sends_shift_enter_does_not(replay, open_page):
    page = open_page(replay(RICH))
    page.type("one")
    page.key("Enter", shift=True)
    page.type("two")
    page.key("Enter")
    finished(page)
    assert bodies(page)[0]["messages"] == [{"role": "user", "content": "one\ntwo"}]
    page.key("Enter")
    assert len(bodies(page)) == 1


def test_edit_keeps_the_old_branch(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "first")
    ask(page, "second")
    page.eval("document.querySelector('[aria-label=\"Edit message\"]').click()")
    assert page.eval("document.activeElement.value") == "first"
    page.key("Escape")
    assert page.count(".editor") == 0
    page.eval("document.querySelector('[aria-label=\"Edit message\"]').click()")
    page.eval("document.activeElement.select()")
    page.type("hello again")
    page.key("Enter")
    finished(page)
    assert bodies(page)[-1]["messages"] == [{"role": "user", "content": "hello again"}]
    assert page.count(".turn") == 2 and answer(page) == "Hello world!"
    assert page.text(".branches span") == "2/2"
    page.click("[aria-label='Earlier version']")
    assert page.count(".turn") == 4 and page.text(".question") == "first"


def test_answer_again(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "first")
    page.click("[aria-label='Answer again']")
    finished(page)
    assert len(bodies(page)) == 2 and bodies(page)[0] == bodies(page)[1]
    assert page.text(".turn.assistant .branches span") == "2/2" and page.count(".turn") == 2


def test_an_answer_that_was_cut_off_goes_on(replay, open_page):
    page = open_page(replay(RICH))
    assert ask(page, "hello") == "Hello world!" and page.eval("document.querySelector('[aria-label=\"Continue the answer\"]').hidden")
    page.click("#new-chat")
    page.eval("Settings.setNumber('max_tokens', 2)")
    assert ask(page, "hello") == "Hello" and page.text(".stats").endswith("cut off at the token limit")
    page.eval("Settings.setNumber('max_tokens', null)")
    page.click("[aria-label='Continue the answer']")
    finished(page)
    body = bodies(page)[-1]
    assert body["messages"] == [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello"}]
    assert body["continue_final_message"] is True and body["add_generation_prompt"] is False
    # The model of the script begins anew; it is one answer all the same.
    assert answer(page) == "HelloHello world!" and page.count(".turn") == 2 and page.count(".branches") == 0
    assert page.text(".stats").startswith("9 tokens")
    page.reload()
    page.click(".open-chat")
    assert answer(page) == "HelloHello world!"


def test_only_what_is_set_is_sent(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "hello")
    assert set(bodies(page)[0]) == {"messages", "model", "stream", "stream_options"}
    page.click("#open-settings")
    given = {"temperature": 0.25, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "max_tokens": 64, "seed": 7,
             "repetition_penalty": 1.1, "presence_penalty": -0.5, "frequency_penalty": 0.5}
    for name, value in given.items():
        page.eval(f"document.getElementById('set-{name}').focus()")
        page.type(str(value))
    page.eval("document.getElementById('set-stop').focus()")
    page.type("END\n###")
    page.eval("document.getElementById('set-system').focus()")
    page.type("Be brief.")
    page.key("Escape")
    ask(page, "hello")
    body = bodies(page)[-1]
    assert {name: body[name] for name in given} == given and body["stop"] == ["END", "###"]
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    # They outlive the page, until they are reset.
    page.reload()
    ask(page, "hello")
    assert {name: bodies(page)[-1][name] for name in given} == given
    page.click("#open-settings")
    page.click("#reset-sampling")
    page.key("Escape")
    ask(page, "hello")
    assert not (set(given) | {"stop"}) & set(bodies(page)[-1])


def test_wrong_numbers_are_named_and_not_sent(replay, open_page):
    page = open_page(replay(RICH))
    page.click("#open-settings")
    for name, value in (("temperature", "3"), ("top_k", "1.5"), ("seed", "1e300"), ("max_tokens", "0")):
        page.eval(f"document.getElementById('set-{name}').focus()")
        page.type(value)
        assert page.text(f"#set-{name}-error").startswith("A "), name
        assert page.eval(f"document.getElementById('set-{name}').getAttribute('aria-invalid')") == "true"
    page.key("Escape")
    ask(page, "hello")
    assert set(bodies(page)[0]) == {"messages", "model", "stream", "stream_options"}


def test_a_system_prompt_of_one_chat(replay, open_page):
    page = open_page(replay(RICH))
    ask(page, "hello")
    page.click("#open-settings")
    page.click("#set-system-here")
    page.eval("document.getElementById('set-system').focus()")
    page.type("Only here.")
    page.key("Escape")
    ask(page, "hello")
    assert bodies(page)[-1]["messages"][0] == {"role": "system", "content": "Only here."}
    page.click("#new-chat")
    ask(page, "hello")
    assert bodies(page)[-1]["messages"] == [{"role": "user", "content": "hello"}]


def allowed_complaints(page, *parts):
    """Drops the browser's own lines about failed requests, and only those."""
    page.complaints[:] = [c for c in page.complaints if not any(part in c for part in parts)]


def test_key(replay, open_page):
    page = open_page(replay(RICH, "--api-key", "sesame"))
    page.until("document.getElementById('settings').open && document.activeElement.id === 'set-key'")
    assert "API key" in page.text("#key-wanted")
    page.type("wrong")
    page.key("Enter")
    page.until("document.getElementById('settings').open")
    page.key("Escape")
    send(page, "hello")
    page.until("document.getElementById('settings').open && document.activeElement.id === 'set-key'")
    page.eval("document.activeElement.select()")
    page.type("sesame")
    page.key("Enter")
    page.until("!document.getElementById('settings').open && document.getElementById('model').value === 'replay'")
    page.click(".retry")
    finished(page)
    assert answer(page) == "Hello world!" and page.count(".turn .alert:not([hidden])") == 0
    assert page.requests[-1]["headers"]["Authorization"] == "Bearer sesame"
    # Not kept unless that is asked for.
    assert "sesame" not in page.eval("JSON.stringify(localStorage)")
    page.click("#open-settings")
    page.click("#set-key-keep")
    page.reload()
    page.until("document.getElementById('model').value === 'replay'")
    page.click("#open-settings")
    page.click("#set-key-keep")
    assert "sesame" not in page.eval("JSON.stringify(localStorage)")
    allowed_complaints(page, "401 (Unauthorized)")


def test_errors_are_shown_and_tried_again(replay, open_page):
    page = open_page(replay(RICH))
    page.eval("Settings.setNumber('temperature', 99)")
    ask(page, "hello")
    assert "temperature" in page.text(".alert p")
    page.eval("Settings.setNumber('temperature', null)")
    page.click(".retry")
    finished(page)
    assert answer(page) == "Hello world!" and page.count(".turn") == 2
    allowed_complaints(page, "400 (Bad Request)")


def test_a_server_that_goes_away(own_replay, open_page):
    server = own_replay(RICH)
    page = open_page(server)
    send(page, "endless")
    page.until("/word9 /.test(document.querySelector('.answer')?.innerText)")
    server.process.kill()
    server.process.wait()
    page.until("document.querySelector('.turn .alert:not([hidden])')")
    finished(page)
    assert answer(page).startswith("word0 ") and page.count(".retry") == 1
    ask(page, "hello")
    assert "cannot be reached" in page.eval("[...document.querySelectorAll('.turn .alert p')].pop().innerText")
    allowed_complaints(page, "ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE")


def event(**delta):
    return "data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) + "\n\n"


def answer_by_hand(page, text, status=200, kind="text/event-stream"):
    """The next message gets this in place of the server's answer."""
    page.call("Fetch.enable", patterns=[{"urlPattern": "*/v1/chat/completions"}])
    send(page, "by hand")
    wait_until(lambda: page.paused or page.browser.pump(0.01), 10, "the request")
    page.call("Fetch.fulfillRequest", requestId=page.paused.pop()["requestId"], responseCode=status,
              responseHeaders=[{"name": "Content-Type", "value": kind}], body=base64.b64encode(text.encode()).decode())
    page.call("Fetch.disable")
    finished(page)


def test_reasoning_is_folded_away(replay, open_page):
    page = open_page(replay(RICH))
    for name in ("reasoning_content", "reasoning"):
        answer_by_hand(page, event(**{name: "First "}) + event(**{name: "this."}) + event(content="Then that.") + "data: [DONE]\n\n")
        assert answer(page) == "Then that."
        thinking = "[...document.querySelectorAll('.thinking')].pop()"
        assert page.eval(f"[{thinking}.hidden, {thinking}.open, {thinking}.querySelector('.prose').textContent]") == [
            False, False, "First this."]
    # It is not part of what is said next.
    ask(page, "hello")
    assert "this" not in json.dumps(bodies(page)[-1])


def test_answers_that_are_not_right(replay, open_page):
    page = open_page(replay(RICH))
    for text, status, kind, shown in (
        (event(content="Half"), 200, "text/event-stream", "ended before the answer did"),
        ("data: {\"error\": {\"message\": \"out of luck\"}}\n\ndata: [DONE]\n\n", 200, "text/event-stream", "out of luck"),
        ("data: {\n\n", 200, "text/event-stream", "no answer"),
        ("data: 7\n\n", 200, "text/event-stream", "no answer"),
        ("<html>Bad gateway</html>", 502, "text/html", "502"),
        ("data: {\"choices\": 5}\n\ndata: [DONE]\n\n", 200, "text/event-stream", None),
    ):
        answer_by_hand(page, text, status, kind)
        alerts = page.eval("[...document.querySelectorAll('.turn:last-child .alert:not([hidden]) p')].map(n => n.innerText)")
        assert alerts == [] if shown is None else shown in alerts[0], (text, alerts)
    allowed_complaints(page, "502")


def test_reading_above_while_it_answers(own_replay, open_page):
    page = open_page(own_replay(RICH), height=500)
    bottom = "(log => log.scrollHeight - log.scrollTop - log.clientHeight)(document.getElementById('log'))"
    page.eval("Composer.set('Line\\n'.repeat(30) + 'endless')")
    send(page, "")
    page.until(f"/word49 /.test(document.querySelector('.answer')?.innerText) && {bottom} < 2")
    assert page.eval("document.getElementById('to-end').hidden") is True
    page.call("Input.dispatchMouseEvent", type="mouseWheel", x=600, y=200, deltaX=0, deltaY=-300)
    page.until("!document.getElementById('to-end').hidden")
    place = page.eval("document.getElementById('log').scrollTop")
    page.until(f"{bottom} > 400")
    assert page.eval("document.getElementById('log').scrollTop") == place
    page.click("#to-end")
    page.until(f"{bottom} < 2")
    page.key("Escape")
    finished(page)


def test_another_chat_meanwhile(own_replay, open_page):
    page = open_page(own_replay(script(
        says(*["tick "] * 300, when="slow", delay_ms=10), says("ok"))))
    send(page, "slow")
    page.until("document.querySelector('.answer')?.innerText.includes('tick')")
    page.key("k", control=True)
    assert ask(page, "quick") == "ok"
    page.until("document.querySelector('#chat-list .busy')")
    page.eval("[...document.querySelectorAll('.open-chat')].find(b => b.textContent === 'slow').click()")
    finished(page)
    assert answer(page).count("tick") == 300
