"""Server-sent events, read strictly: what is not exactly as promised is an assertion."""

import json


def parse_events(text):
    """JSON events of a whole stream; checks framing and that [DONE] ends it."""
    assert text.endswith("data: [DONE]\n\n"), f"the stream does not end with [DONE]: {text[-200:]!r}"
    blocks = text.split("\n\n")
    assert blocks[-1] == ""
    events = []
    for block in blocks[:-1]:
        assert block.startswith("data: ") and "\n" not in block, f"not one data line: {block!r}"
        events.append(block[len("data: ") :])
    assert events[-1] == "[DONE]" and events.count("[DONE]") == 1
    return [json.loads(event) for event in events[:-1]]


def stream_chat(server, text="hi", **fields):
    answer = server.chat(text, stream=True, **fields)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    return parse_events(answer.content.decode("utf-8"))


def joined(events, index=0):
    """The text of one choice of a chat stream."""
    return "".join(
        choice["delta"].get("content") or ""
        for event in events
        for choice in event["choices"]
        if choice["index"] == index
    )


def finish_reasons(events, index=0):
    return [
        choice["finish_reason"]
        for event in events
        for choice in event["choices"]
        if choice["index"] == index and choice["finish_reason"] is not None
    ]
