"""S7: templates in requests are off, kwargs cannot carry one, hostile ones end in 400 within their budget."""

import time

import pytest

from harness.script import HELLO, script, says

@pytest.fixture(autouse=True, scope="module")
def serves_to_the_end(pool):
    yield
    pool(HELLO).assert_serves()


ROUTES = ["/v1/chat/completions", "/tokenize"]


def send(server, route, **fields):
    return server.post(route, {"messages": [{"role": "user", "content": "hi"}], **fields})


@pytest.mark.parametrize("route", ROUTES)
def test_s07_request_templates_are_off(hello, route):
    answer = send(hello, route, chat_template="{{ messages }}")
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "chat_template"


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "kwargs",
    [
        {"chat_template": "{{ 1 }}"}, {"messages": []}, {"tools": []}, {"tokenize": True}, {"bos_token": "x"},
        {"add_generation_prompt": False}, {"__class__": "x"}, {"a.b": 1}, {"": 1}, {"x": {"y": 1}}, {"x": [1]},
        {"raise_exception": "x"}, {"range": 1}, {"x": "y" * 5000}, {f"k{i}": i for i in range(65)},
    ],
)
def test_s07_kwargs_that_cannot_be_set(hello, route, kwargs):
    answer = send(hello, route, chat_template_kwargs=kwargs)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"].startswith("chat_template_kwargs")


HOSTILE = [
    "{% for i in range(1000000000) %}x{% endfor %}",
    "{% for i in range(25000) %}{% for j in range(25000) %}x{% endfor %}{% endfor %}",
    "{{ 'a' * 1000000000 }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.__init__.__globals__ }}",
    "{{ self }}{{ config }}{{ request.application }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{% set x = namespace(a='b') %}{% for i in range(100000) %}{% set x.a = x.a + x.a %}{% endfor %}{{ x.a }}",
    "{{" * 10000,
    "{% if " + "(" * 10000 + "1",
]


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_s07_hostile_templates(replay, source):
    server = replay(HELLO, "--trust-request-chat-template")
    started = time.monotonic()
    answer = send(server, "/tokenize", chat_template=source)
    print(f"{time.monotonic() - started:.2f} s")
    assert answer.status_code in (200, 400), answer.text
    assert "root:" not in answer.text and "/etc/passwd" not in answer.text.replace(source, "")
    server.assert_serves()


def test_s07_text_is_not_a_template(replay):
    server = replay(HELLO)
    for text in ("${TMPDIR:-${X}}", "{{ 7 * 7 }}", "{% raw %}", "{{ messages }}"):
        tokens = server.post("/tokenize", {"messages": [{"role": "user", "content": text}]}).json()["tokens"]
        assert text in bytes(t for t in tokens if t < 256).decode()


def test_s07_request_template_when_trusted(replay):
    server = replay(HELLO, "--trust-request-chat-template")
    tokens = send(server, "/tokenize", chat_template="{{ messages[0]['content'] }}!").json()["tokens"]
    assert bytes(tokens) == b"hi!"
