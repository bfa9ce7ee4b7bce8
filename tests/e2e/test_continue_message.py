"""continue_final_message, echo on chat, --prefill-assistant: answers that go on with a message of the client's."""

import pytest

from harness.script import HELLO, IM_END, IM_START, script, says
from harness.sse import joined, parse_events, stream_chat

USER = {"role": "user", "content": "hello"}
OPEN = [USER, {"role": "assistant", "content": "Once upon"}]
TRIMMING = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}[/]{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
ONLY_USERS = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"


def text_of(ids):
    names = {IM_START: b"<|im_start|>", IM_END: b"<|im_end|>"}
    return b"".join(names.get(i) or bytes([i]) for i in ids).decode()


def prompt(server, messages, **fields):
    answer = server.post("/tokenize", {"messages": messages, **fields})
    assert answer.status_code == 200, answer.text
    return text_of(answer.json()["tokens"])


@pytest.fixture(scope="module")
def server(pool):
    return pool(HELLO)


@pytest.mark.parametrize("content", ["Once upon", "", "two\nlines", " spaces ", "<|im_end|>", "é漢😀"])
def test_the_prompt_ends_with_the_message(server, content):
    messages = [USER, {"role": "assistant", "content": content}]
    got = prompt(server, messages, continue_final_message=True)
    assert got.endswith("<|im_start|>assistant\n" + content)
    closed = prompt(server, messages, add_generation_prompt=False)
    assert closed == got + "<|im_end|>\n"
    assert prompt(server, messages, continue_final_message=True, add_generation_prompt=False) == got


def test_control_tokens_of_the_message_stay_text(server):
    ids = lambda content: server.post(
        "/tokenize", {"messages": [USER, {"role": "assistant", "content": content}], "continue_final_message": True}
    ).json()["tokens"]
    assert ids("<|im_end|>").count(IM_END) == ids("x").count(IM_END)


def test_parts_are_continued(server):
    parts = [{"type": "text", "text": "Once"}, {"type": "text", "text": " upon"}]
    assert prompt(server, [USER, {"role": "assistant", "content": parts}], continue_final_message=True) == prompt(
        server, OPEN, continue_final_message=True
    )


def test_the_mark_of_the_server_in_a_message_is_text(server):
    mark = "CONTINUE_FINAL_MESSAGE_TAG "
    messages = [{"role": "user", "content": mark}, {"role": "assistant", "content": mark + "x" + mark}]
    assert prompt(server, messages, continue_final_message=True).endswith(mark + "x" + mark)


def test_a_template_that_trims(replay):
    server = replay(script(says("ok"), template=TRIMMING))
    for content in ("Once upon", "Once upon  \n", "  Once upon "):
        messages = [USER, {"role": "assistant", "content": content}]
        assert prompt(server, messages, continue_final_message=True).endswith("[assistant]Once upon")


def test_a_template_that_leaves_the_message_out(replay):
    server = replay(script(says("ok"), template=ONLY_USERS))
    answer = server.post("/tokenize", {"messages": OPEN, "continue_final_message": True})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "continue_final_message"


@pytest.mark.parametrize("path", ["/tokenize", "/v1/chat/completions", "/v1/chat/completions/render"])
@pytest.mark.parametrize(
    "messages,fields",
    [
        (OPEN, {"add_generation_prompt": True}),
        ([USER], {}),
        ([*OPEN, {"role": "system", "content": "x"}], {}),
    ],
)
def test_refused(server, path, messages, fields):
    answer = server.post(path, {"messages": messages, "continue_final_message": True, **fields})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "continue_final_message"


def test_without_it_a_new_turn_begins(server):
    assert prompt(server, OPEN).endswith("Once upon<|im_end|>\n<|im_start|>assistant\n")


def chat(server, messages, **fields):
    answer = server.post("/v1/chat/completions", {"messages": messages, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("fields", [{"continue_final_message": True}, {}, {"add_generation_prompt": False}])
def test_echo(server, fields):
    whole = chat(server, OPEN, echo=True, n=2, **fields)
    assert [c["message"]["content"] for c in whole["choices"]] == ["Once uponHello world!"] * 2
    assert chat(server, OPEN, echo=False, **fields)["choices"][0]["message"]["content"] == "Hello world!"
    raw = server.post("/v1/chat/completions", {"messages": OPEN, "echo": True, "stream": True, "n": 2, **fields})
    events = parse_events(raw.content.decode())
    for index in range(2):
        assert joined(events, index) == "Once uponHello world!"


def test_echo_of_what_is_not_the_answers_role(server):
    assert chat(server, [USER], echo=True)["choices"][0]["message"]["content"] == "Hello world!"
    assert joined(stream_chat(server, "hello", echo=True)) == "Hello world!"


def test_prefill_assistant(replay, server):
    prefilling = replay(HELLO, "--prefill-assistant")
    open_end = prompt(server, OPEN, continue_final_message=True)
    assert prompt(prefilling, OPEN) == open_end
    assert prompt(prefilling, [USER]) == prompt(server, [USER])
    # What the client says goes first.
    assert prompt(prefilling, OPEN, add_generation_prompt=True) == prompt(server, OPEN)
    assert prompt(prefilling, OPEN, continue_final_message=False) == prompt(server, OPEN)
    assert chat(prefilling, OPEN)["choices"][0]["message"]["content"] == "Hello world!"
    two = prefilling.post("/v1/chat/completions", {"messages": [*OPEN, OPEN[1]]})
    assert two.status_code == 400 and two.json()["error"]["param"] == "messages"
    assert server.post("/v1/chat/completions", {"messages": [*OPEN, OPEN[1]]}).status_code == 200
