"""Reasoning: what a model thinks before it answers goes into fields of its own (docs/dialects.md).

The oracle is plain search in the whole text; the server sees it cut into tokens and steps in many ways.
"""

import itertools
import json
import random
import re

import pytest

from harness.script import SPECIALS, script, says
from harness.server import replay_command
from harness.sse import finish_reasons, joined, stream_chat

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Prompts that end in an opened, or in an empty block.
INSIDE = CHATML.replace("assistant\n", "assistant\n<think>\n")
QWEN3 = CHATML.replace(
    "assistant\n",
    "assistant\n{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}",
)


def thought(message):
    """(reasoning, content); both names of the reasoning must agree."""
    assert message.get("reasoning_content") == message.get("reasoning"), message
    return message.get("reasoning") or "", message["content"]


def streamed(events):
    """(reasoning, content) of a stream; reasoning comes first, a chunk holds one of them."""
    parts = {"reasoning": "", "content": ""}
    for event in events:
        for choice in event["choices"]:
            delta = choice["delta"]
            assert delta.get("reasoning_content") == delta.get("reasoning"), delta
            assert not (delta.get("reasoning") and delta.get("content")), delta
            for name in parts:
                parts[name] += delta.get(name) or ""
    return parts["reasoning"], parts["content"]


def think_oracle(text, start="before"):
    """Independent of the server: search in the whole text. Newlines around markers go."""
    before = ""
    if start == "before":
        head, opener, text = text.partition("<think>")
        if not opener:
            return "", head
        before = head if head.strip("\n") else ""
    else:
        text = re.sub(r"\A\n*<think>", "", text)
    reasoning, closer, content = text.partition("</think>")
    reasoning = reasoning.lstrip("\n")
    if not closer:
        return reasoning, before
    return reasoning.rstrip("\n"), before + content.lstrip("\n")


def cuts(text, limit, rng):
    """Ways to cut `text`: all for short ones, random ones else."""
    n = len(text) - 1
    if n <= 11:
        masks = itertools.product([False, True], repeat=n)
    else:
        masks = ([rng.random() < p for _ in range(n)] for p in [rng.random() for _ in range(limit)])
    for mask in masks:
        pieces, start = [], 0
        for i, cut in enumerate(mask, 1):
            if cut:
                pieces.append(text[start:i])
                start = i
        yield [*pieces, text[start:]]


def whole_markers(text, markers):
    """Tokens: the markers, and single characters."""
    pattern = "(" + "|".join(re.escape(m) for m in markers) + ")"
    for part in re.split(pattern, text):
        yield from [part] if part in markers else part


TEXTS = [
    "<think>\nHmm.\n</think>\n\nYes.",
    "<think>never closed\n",
    "plain </think> answer",
    "\n<think>a</think>b",
    "Well:\n<think>a</think>b<think>c</think>",
    "<think></think>",
    "<think>\n\n</think>\n\nno thought",
    "<think>a < b, <thin, </thin</think>\n",
    "<<think>é漢😀</think>ü",
    "<thin",
    "x</think",
]


@pytest.mark.parametrize("specials", [[], ["<think>", "</think>"]], ids=["plain", "special"])
@pytest.mark.parametrize("template,start", [(QWEN3, "before"), (INSIDE, "inside")], ids=["before", "inside"])
def test_law1_split_invariance(replay, template, start, specials):
    rng = random.Random(7)
    cases = []
    for text in TEXTS:
        ways = list(whole_markers(text, ["<think>", "</think>"])) if specials else None
        segmentations = [ways] if specials else list(cuts(text, 25, rng))
        cases += [(text, pieces, k) for pieces in segmentations for k in (1, 3, [2, 1])]
    lines = [says(*pieces, k=k, when=f"<{i}>") for i, (_, pieces, k) in enumerate(cases)]
    server = replay(script(*lines, template=template, specials=SPECIALS + specials))
    wrong = []
    for i, (text, pieces, k) in enumerate(cases):
        want = think_oracle(text, start)
        if specials:  # those that are no marker where they stand are hidden, as special tokens are
            want = tuple(re.sub("</?think>", "", part) for part in want)
        got = thought(server.chat(f"<{i}>").json()["choices"][0]["message"])
        if got != want:
            wrong.append((text, pieces, k, got, want))
        if i % 3 == 0:
            got = streamed(stream_chat(server, f"<{i}>"))
            if got != want:
                wrong.append((text, pieces, k, "stream", got, want))
    assert not wrong, json.dumps(wrong[:5], ensure_ascii=False)


def think_server(replay, *pieces, template=QWEN3, flags=(), **more):
    return replay(script(says(*pieces, **more), template=template), *flags)


def test_message_carries_both_names(replay):
    server = think_server(replay, "<think>", "Hm", "m</th", "ink>", "\n\n", "Yes")
    answer = server.chat().json()
    message = answer["choices"][0]["message"]
    assert message["reasoning_content"] == message["reasoning"] == "Hmm"
    assert message["content"] == "Yes"
    # The token with the end of the marker is the last that counts; the line ends behind it are the answer's.
    assert answer["usage"]["completion_tokens"] == 7
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 4


@pytest.mark.parametrize("name,other", [("reasoning", "reasoning_content"), ("reasoning_content", "reasoning")])
def test_reasoning_field_flag(replay, name, other):
    server = think_server(replay, "<think>a</think>b", flags=("--reasoning-field", name))
    message = server.chat().json()["choices"][0]["message"]
    assert message[name] == "a" and other not in message
    deltas = [c["delta"] for e in stream_chat(server) for c in e["choices"]]
    assert [d[name] for d in deltas if name in d] == ["a"] and not any(other in d for d in deltas)


def test_include_reasoning_false(replay):
    server = think_server(replay, "<think>", "a", "</think>", "b")
    message = server.chat(include_reasoning=False).json()["choices"][0]["message"]
    assert message["content"] == "b" and "reasoning" not in message and "reasoning_content" not in message
    assert streamed(stream_chat(server, include_reasoning=False)) == ("", "b")


def test_never_closed_is_all_reasoning(replay):
    server = think_server(replay, "<think>", "a", "b", "\n")
    answer = server.chat(max_tokens=3).json()
    assert thought(answer["choices"][0]["message"]) == ("ab", "")
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 3


def test_empty_block_in_the_prompt_means_all_is_content(replay):
    server = think_server(replay, "<think>", "a", "</think>", "b")
    message = server.chat(chat_template_kwargs={"enable_thinking": False}).json()["choices"][0]["message"]
    assert thought(message) == ("", "<think>a</think>b")
    message = server.chat(reasoning_effort="none").json()["choices"][0]["message"]
    assert thought(message) == ("", "<think>a</think>b")


def test_a_client_cannot_start_inside(replay):
    server = think_server(replay, "a</think>b")
    for text in ("<think>", "<think>\n", "x <think>\n\n"):
        assert thought(server.chat(text).json()["choices"][0]["message"]) == ("", "a</think>b")
        message = server.chat(text, add_generation_prompt=False).json()["choices"][0]["message"]
        assert thought(message) == ("", "a</think>b")


def test_a_message_that_is_gone_on_with(replay):
    """The client begins the answer: what it has opened, or closed, counts."""
    server = think_server(replay, "b", "</think>", "c")
    for begun, want in (("<think>a", ("b", "c")), ("<think>a</think>x", ("", "b</think>c")), ("x", ("", "b</think>c"))):
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": begun}]
        body = {"messages": messages, "continue_final_message": True, "add_generation_prompt": False}
        message = server.post("/v1/chat/completions", body).json()["choices"][0]["message"]
        assert thought(message) == want, begun


def test_model_repeats_the_marker_of_the_prompt(replay):
    server = think_server(replay, "\n<think>\n", "a", "</think>", "b", template=INSIDE)
    assert thought(server.chat().json()["choices"][0]["message"]) == ("a", "b")


def test_completions_are_never_split(replay):
    server = think_server(replay, "<think>", "a", "</think>", "b")
    answer = server.post("/v1/completions", {"prompt": "<think>"}).json()
    assert answer["choices"][0]["text"] == "<think>a</think>b"
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 0


def test_parser_flag(replay):
    pieces = ("<think>a</think>[THINK]b[/THINK]c",)
    assert thought(think_server(replay, *pieces, flags=("--reasoning-parser", "none")).chat().json()["choices"][0]["message"]) == (
        "",
        pieces[0],
    )
    for name in ("magistral", "mistral"):
        server = think_server(replay, *pieces, flags=("--reasoning-parser", name))
        assert thought(server.chat().json()["choices"][0]["message"]) == ("b", "<think>a</think>c")
    # Without any mark in template or vocabulary nothing is split.
    plain = replay(script(says(*pieces)))
    assert thought(plain.chat().json()["choices"][0]["message"]) == ("", pieces[0])


def test_unknown_parser_is_refused_at_start(tmp_path):
    import subprocess

    path = tmp_path / "script"
    path.write_text(script(says("x")))
    done = subprocess.run(
        [*replay_command(path), "--reasoning-parser", "nosuch", "--port", "0"], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert "--reasoning-parser" in done.stderr and "nosuch" in done.stderr and "magistral" in done.stderr


def test_B40c_stop_strings_count_in_the_answer_only(replay):
    for k in (1, 2, 5):
        server = think_server(replay, "<think>", "a\n", "\nb", "</think>", "\n\n", "c\n", "\nd", k=k)
        choice = server.chat(stop=["\n\n"]).json()["choices"][0]
        assert thought(choice["message"]) == ("a\n\nb", "c")
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "\n\n")
        events = stream_chat(server, stop=["\n\n"])
        assert streamed(events) == ("a\n\nb", "c") and finish_reasons(events) == ["stop"]
        answer = server.chat(stop=["\n\n"], stop_in_reasoning=True).json()
        assert thought(answer["choices"][0]["message"]) == ("a", "")
        assert answer["choices"][0]["stop_reason"] == "\n\n"
        assert answer["usage"]["completion_tokens"] == 3
        assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 3


def test_stop_string_inside_a_marker_is_no_stop(replay):
    server = think_server(replay, "<", "think", ">", "a", "</", "think>", "b<c")
    choice = server.chat(stop=["<", "think"]).json()["choices"][0]
    assert thought(choice["message"]) == ("a", "b")
    # What looked like a marker and is none is judged from its first byte, and counts from there.
    server = think_server(replay, "x", "<", "th", "at")
    answer = server.chat(stop=["<"]).json()
    assert answer["choices"][0]["message"]["content"] == "x"
    assert answer["usage"]["completion_tokens"] == 2


def test_logprobs_cover_all_tokens_in_order(replay):
    pieces = ["<think>", "a", "</think>", "\n", "b", "c"]
    for k in (1, 2, 6):
        server = replay(script(says(*pieces, k=k), template=QWEN3, specials=SPECIALS + ["<think>", "</think>"]))
        choice = server.chat(logprobs=True).json()["choices"][0]
        assert thought(choice["message"]) == ("a", "bc")
        assert [e["token"] for e in choice["logprobs"]["content"]] == pieces
        tokens = [
            entry["token"]
            for event in stream_chat(server, logprobs=True)
            for c in event["choices"]
            for entry in ((c["logprobs"] or {}).get("content") or [])
        ]
        assert tokens == pieces


def test_token_ids_are_all_there_once(replay):
    server = think_server(replay, "<thi", "nk>", "a", "</think>", "b", k=1)
    whole = server.chat(return_token_ids=True).json()
    ids = whole["choices"][0]["token_ids"]
    assert len(ids) == whole["usage"]["completion_tokens"] == 6
    events = stream_chat(server, return_token_ids=True)
    assert [i for e in events for c in e["choices"] for i in c.get("token_ids") or []] == ids


HARMONY = (
    "{% for m in messages %}<|start|>{{ m.role }}<|message|>"
    "{% if m.thinking %}(<|channel|>analysis {{ m.thinking }}){% endif %}{{ m.content }}<|end|>{% endfor %}"
    "<|start|>assistant"
)
HARMONY_SPECIALS = ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>"]


def test_harmony_channels(replay):
    pieces = ["<|channel|>", "anal", "ysis", "<|message|>", "think", "<|end|>", "<|start|>", "assistant", "<|channel|>"]
    pieces += ["commentary", "<|message|>", "I look.", "<|end|>", "<|start|>", "assistant", "<|channel|>", "analysis"]
    pieces += ["<|message|>", " more", "<|end|>", "<|start|>", "assistant", "<|channel|>", "final", "<|message|>", "Done."]
    for k in (1, 4, 30):
        server = replay(script(says(*pieces, k=k), template=HARMONY, specials=HARMONY_SPECIALS, eos="<|return|>"))
        assert thought(server.chat().json()["choices"][0]["message"]) == ("think more", "I look.Done.")
        assert streamed(stream_chat(server)) == ("think more", "I look.Done.")


def test_history_gets_the_name_that_the_template_reads(replay):
    """The replay backend picks its answer by the prompt: here by the thought in it."""
    server = replay(
        script(
            says("seen", when="analysis zq"), says("not seen"),
            template=HARMONY, specials=HARMONY_SPECIALS, eos="<|return|>",
        )
    )
    for name in ("reasoning_content", "reasoning"):
        messages = [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b", name: "zq"},
            {"role": "user", "content": "c"},
        ]
        answer = server.post("/v1/chat/completions", {"messages": messages}).json()
        assert answer["choices"][0]["message"]["content"] == "seen", name


def test_request_template_brings_its_own_dialect(replay):
    server = replay(script(says("<think>a</think>b")), "--trust-request-chat-template")
    assert thought(server.chat().json()["choices"][0]["message"]) == ("", "<think>a</think>b")
    message = server.chat(chat_template=INSIDE).json()["choices"][0]["message"]
    assert thought(message) == ("a", "b")


def test_ollama_calls_it_thinking(replay):
    server = think_server(replay, "<think>", "a", "</think>", "\n\n", "b")
    body = {"model": "replay", "messages": [{"role": "user", "content": "hi"}], "stream": False}
    message = server.post("/api/chat", body).json()["message"]
    assert (message["thinking"], message["content"]) == ("a", "b")
    lines = [json.loads(line) for line in server.post("/api/chat", {**body, "stream": True}).text.splitlines()]
    assert "".join(line["message"].get("thinking", "") for line in lines) == "a"
    assert "".join(line["message"]["content"] for line in lines) == "b"
    answer = server.post("/api/generate", {"model": "replay", "prompt": "hi", "stream": False}).json()
    assert (answer["thinking"], answer["response"]) == ("a", "b")
    raw = server.post("/api/generate", {"model": "replay", "prompt": "hi", "raw": True, "stream": False}).json()
    assert "thinking" not in raw and raw["response"] == "<think>a</think>\n\nb"
