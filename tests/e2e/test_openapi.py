"""/openapi.json and /docs: made from the route table and the field tables, so what is tested here is that they are
whole (every route, every field, words for each) and true (bounds, types, shapes of real answers)."""

import copy
import json
import re

import jsonschema
import pytest
import requests

from harness.script import SPECIALS, script, says

METHODS = ("get", "head", "post", "put", "delete", "patch")


@pytest.fixture(scope="module")
def server(pool):
    return pool(
        script(
            says("Hel", "lo", " ", "wor", "ld", "!", when="hello"),
            says("a", "b", rows=[{"97": -0.1, "98": -2.5, "99": -4.0}, None], when="logprobs"),
            says("abcdef", "STOP", "ghi", when="stop here"),
            says("ok"),
            specials=[*SPECIALS, "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"],
        )
    )


@pytest.fixture(scope="module")
def document(server):
    answer = requests.get(server.url + "/openapi.json", timeout=10)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    return answer.json()


def operations(document):
    return [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def resolved(document, schema):
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


# Their answers depend on what is in the store, which has tests of its own.
STORE = {"/api/copy", "/api/delete"}


def bodies(document):
    """(method, path, schema, example) of each JSON body."""
    for method, path, operation in operations(document):
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            content = content["application/json"]
            yield method, path, resolved(document, content["schema"]), content.get("example")


def ask(server, method, path, body):
    return requests.request(method, server.url + path, json=body, timeout=30)


def names(answer, field):
    """Whether an error is about the field."""
    error = answer.json()["error"]
    if isinstance(error, str):
        return field in error or "think" in error
    return (error["param"] or "").startswith(field)


def fields(schema, prefix=""):
    for name, field in schema.get("properties", {}).items():
        yield prefix + name, field
        yield from fields(field, prefix + name + ".")


# Whole.


def test_it_is_an_openapi_document(document):
    assert document["openapi"] == "3.1.0" and re.fullmatch(r"\d+\.\d+\.\d+", document["info"]["version"])
    jsonschema.Draft202012Validator.check_schema({"$defs": document["components"]["schemas"]})
    refs = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert refs == set(document["components"]["schemas"]), "a reference without a schema, or a schema without one"
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))


def test_every_route_is_described(document, server):
    for method, path, operation in operations(document):
        place = f"{method} {path}"
        assert method in METHODS and operation["summary"].endswith("."), place
        assert any(status.startswith("2") for status in operation["responses"]) or "501" in operation["responses"], place
        assert all(response["description"] for response in operation["responses"].values()), place
        # What the document calls a route is one: any other method on it is 405, and Allow lists what is documented.
        target = path.replace("{id}", "x")
        answer = requests.request("PROPFIND", server.url + target, timeout=10)
        assert answer.status_code == 405, place
        allowed = {m.lower() for m in answer.headers["allow"].split(", ")} - {"options"}
        documented = set(document["paths"][path])
        assert allowed == documented | ({"head"} if "get" in documented else set()), place


def test_every_route_of_the_code_is_in_it(document):
    """The other way round: what the sources add to the table is documented."""
    import pathlib

    root = pathlib.Path(__file__).resolve().parents[2] / "src/server"
    literal = re.compile(r'"(/[A-Za-z0-9_{}/.\-]*)"')
    missing = {
        path
        for source in [*root.glob("*/*_api.cc"), root / "docs/docs_routes.cc"]
        for path in literal.findall(source.read_text())
        if path not in document["paths"] and not path.endswith("/")
    }
    assert missing - {"/"} == set()


def test_every_note_is_of_something(document):
    """A route or field that was renamed leaves no words behind."""
    import pathlib

    root = pathlib.Path(__file__).resolve().parents[2] / "src/server/docs"
    described = {f"{method.upper()} {path}" for method, path, _ in operations(document)}
    known = {name for _, _, schema, _ in bodies(document) for name, _ in fields(schema)}
    for file in root.glob("*.json"):
        notes = json.loads(file.read_text())
        assert set(notes["routes"]) <= described, file.name
        assert set(notes.get("fields", {})) <= known, file.name
        for route, note in notes["routes"].items():
            assert set(note.get("fields", {})) <= known, route


def test_every_field_is_explained(document):
    for _, path, schema, _ in bodies(document):
        for name, field in fields(schema):
            place = f"{path}: {name}"
            assert field.get("description", "").endswith("."), place
            kinds = [k for k in ("type", "anyOf", "oneOf", "enum", "x-omnibus") if k in field]
            assert kinds, place
            if field.get("type") in (["array", "null"], "array"):
                assert "items" in field, place
            if field.get("x-omnibus") != "ignored":
                assert "null" in json.dumps(field), f"{place}: null is absent"


def test_security_is_by_scope(document, pool):
    from harness.script import HELLO

    assert all(operation["security"] == [] for _, _, operation in operations(document)), "no keys, no need of one"
    keyed = pool(HELLO, "--api-key", "sk-docs")
    assert requests.get(keyed.url + "/openapi.json", timeout=10).status_code == 401
    assert requests.get(keyed.url + "/docs", timeout=10).status_code == 401
    with_key = requests.get(keyed.url + "/openapi.json", headers={"X-Api-Key": "sk-docs"}, timeout=10).json()
    for method, path, operation in operations(with_key):
        code = requests.request(method, keyed.url + path.replace("{id}", "x"), json={}, timeout=10).status_code
        needs = bool(operation["security"])
        assert (code == 401) == needs and ("401" in operation["responses"]) == needs, f"{method} {path}: {code}"
        if needs:
            assert operation["security"] == [{"bearer": []}, {"api_key": []}]
    assert set(with_key["components"]["securitySchemes"]) == {"bearer", "api_key"}


# True.


def limits(schema):
    """(value, accepted?) at the bounds of a field, and of wrong types."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "integer" in kinds or "number" in kinds:
        for key, outside in (("minimum", -1), ("maximum", 1)):
            if key in schema:
                if "exclusiveMaximum" not in schema:
                    yield schema[key], True
                yield schema[key] + outside, False
        if "string" not in kinds:
            yield "1", False
        yield True, False
    if kinds[:1] == ["integer"]:
        yield 1.5, False
    if kinds[:1] == ["boolean"]:
        yield from ((True, True), (False, True), (1, False), ("true", False))
    if kinds[:1] == ["string"]:
        if "number" not in kinds:
            yield 1, False
        if "maxLength" in schema:
            yield "x" * (schema["maxLength"] + 1), False
        if schema.get("minLength"):
            yield "", False
    if kinds[:1] == ["array"]:
        yield {}, False
        if "maxItems" in schema and schema["maxItems"] < 2000:
            yield [1] * (schema["maxItems"] + 1), False
        if schema.get("minItems"):
            yield [], False
    if kinds[:1] == ["object"]:
        yield [], False
    for value in schema.get("enum", []):
        yield value, True
    if "enum" in schema or "anyOf" in schema:
        yield {"no": "such"}, False


# What a bound alone cannot decide: another field must be there, or the model has a word in it.
TOGETHER = {
    "top_logprobs": {"logprobs": True}, "stream_options": {"stream": True}, "min_tokens": {"max_tokens": 10},
    "logprob_token_ids": {"logprobs": 1},
}
UNDECIDED = {"logit_bias", "seed", "model", "name", "chat_template", "template", "best_of", "logprobs", "top_logprobs",
             "prompt_logprobs", "think", "raw", "continue_final_message", "num_ctx"}


def test_types_and_bounds_are_those_of_the_server(document, server):
    asked = 0
    for method, path, schema, example in bodies(document):
        validator = jsonschema.Draft202012Validator({**schema, "components": document["components"]})
        for name, field in schema["properties"].items():
            for value, accepted in limits(field):
                body = {**example, "max_tokens": 2} if "max_tokens" in schema["properties"] else dict(example)
                body |= TOGETHER.get(name, {})
                if "chat" in path and "logprobs" in body:
                    body["logprobs"] = True
                body[name] = value
                large = isinstance(value, (int, float)) and abs(value) > 1000
                if accepted and (name in UNDECIDED or large or path in STORE):
                    continue
                place = f"{path}: {json.dumps({name: value})[:200]}"
                answer = ask(server, method, path, body)
                asked += 1
                if accepted:
                    assert answer.status_code == 200, f"{place}: {answer.text}"
                elif field.get("x-omnibus") != "ignored":
                    assert answer.status_code == 400, f"{place}: {answer.text[:300]}"
                    assert names(answer, name), f"{place}: {answer.text}"
                    assert not validator.is_valid(body), f"{place}: refused, but the document allows it"
    assert asked > 100


def test_null_is_absent(document, server):
    for method, path, schema, example in bodies(document):
        nulls = {name: None for name in schema["properties"] if name not in example}
        answer = ask(server, method, path, {**nulls, **example})
        assert answer.status_code == ask(server, method, path, example).status_code, f"{path}: {answer.text}"
        assert answer.status_code == 200 or path in STORE, f"{path}: {answer.text}"
        assert "x-omnibus-ignored-fields" not in answer.headers


def test_marked_fields_are_what_they_say(document, server):
    for method, path, schema, example in bodies(document):
        for name, field in schema["properties"].items():
            mark = field.get("x-omnibus")
            if mark == "ignored":
                answer = ask(server, method, path, {**example, name: "x"})
                assert answer.status_code == 200 and answer.headers["x-omnibus-ignored-fields"] == name
            if mark == "unsupported":
                answer = ask(server, method, path, {**example, name: "no such value"})
                assert answer.status_code == 400 and names(answer, name), f"{path}: {name}: {answer.text}"
                assert "not supported" in answer.text


def closed(schema):
    """The schema without anything that it does not name: a field of an answer that nobody documented fails."""
    if isinstance(schema, dict):
        schema = {key: closed(value) for key, value in schema.items()}
        if "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
        return schema
    return [closed(item) for item in schema] if isinstance(schema, list) else schema


@pytest.fixture(scope="module")
def check(document):
    """check(path, answer): the answer's body has the shape that the document gives for its route and status."""
    schemas = closed(copy.deepcopy(document["components"]["schemas"]))

    def check(path, answer, method="post"):
        content = document["paths"][path][method]["responses"][str(answer.status_code)]["content"]
        media = answer.headers["content-type"].split(";")[0]
        described = content[media]
        schema = described.get("x-item-schema", described["schema"])
        text = answer.content.decode()
        if media == "application/json":
            items = [answer.json()]
        elif media == "application/x-ndjson":
            items = [json.loads(line) for line in text.splitlines()]
        else:
            items = [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n")[:-1] if line != "data: [DONE]"]
        assert items
        validator = jsonschema.Draft202012Validator({**closed(schema), "components": {"schemas": schemas}})
        for item in items:
            validator.validate(item)

    return check


CHAT = [
    {}, {"n": 2}, {"logprobs": True, "top_logprobs": 2}, {"logprobs": True}, {"return_token_ids": True},
    {"max_tokens": 1}, {"stop": "wor"}, {"prompt_logprobs": 1}, {"stop_token_ids": [101]}, {"logprobs": True, "return_tokens_as_token_ids": True},
]
STREAM = [{}, {"stream_options": {"include_usage": True}},
          {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}]


@pytest.mark.parametrize("text", ["hello", "logprobs", "stop here"])
def test_shapes_of_answers(check, server, text):
    messages = [{"role": "user", "content": text}]
    for fields in CHAT:
        check("/v1/chat/completions", server.post("/v1/chat/completions", {"messages": messages, **fields}))
        for stream in STREAM if "prompt_logprobs" not in fields else []:
            body = {"messages": messages, "stream": True, **fields, **stream}
            check("/v1/chat/completions", server.post("/v1/chat/completions", body))
    for fields in [*CHAT, {"echo": True}, {"echo": True, "logprobs": 2}]:
        if fields.get("logprobs") is True:
            fields = {**{k: v for k, v in fields.items() if k != "top_logprobs"}, "logprobs": 2}
        check("/v1/completions", server.post("/v1/completions", {"prompt": text, **fields}))
        for stream in STREAM if "prompt_logprobs" not in fields else []:
            check("/v1/completions", server.post("/v1/completions", {"prompt": text, "stream": True, **fields, **stream}))
    for fields in ({"prompt": text}, {"messages": messages}, {"prompt": text, "return_token_strs": True},
                   {"content": text}, {"content": text + "\u00e9", "with_pieces": True}):
        check("/tokenize", server.post("/tokenize", fields))


@pytest.mark.parametrize("text", ["hello", "logprobs", "stop here"])
def test_shapes_of_ollamas_answers(check, server, text):
    body = {"model": "replay", "prompt": text, "messages": [{"role": "user", "content": text}]}
    for path in ("/api/generate", "/api/chat"):
        for fields in ({}, {"logprobs": True}, {"logprobs": True, "top_logprobs": 2}, {"options": {"num_predict": 1}},
                       {"options": {"stop": ["wor", "STOP"]}}, {"keep_alive": 0}):
            for stream in (True, False):
                unknown = "messages" if path == "/api/generate" else "prompt"
                asked = {k: v for k, v in body.items() if k != unknown}
                check(path, server.post(path, {**asked, "stream": stream, **fields}))
        for keep in (0, "5m"):
            check(path, server.post(path, {"model": "replay", "keep_alive": keep}))


@pytest.mark.parametrize("text", ["hello", "logprobs", "stop here"])
def test_shapes_of_llama_cpps_answers(check, server, text):
    for fields in ({}, {"n_probs": 2}, {"return_tokens": True}, {"n_cmpl": 2}, {"timings_per_token": True}, {"n_predict": 1},
                   {"stop": ["wor", "STOP"]}, {"prompt": [text, text]}, {"prompt": [104, 105, text]},
                   {"prompt": {"prompt_string": text}}):
        for stream in (False, True):
            check("/completion", server.post("/completion", {"prompt": text, "stream": stream, **fields}))
    picked = server.post("/completion", {"prompt": text, "response_fields": ["content", "timings/prompt_n"]})
    assert set(picked.json()) == {"content", "timings/prompt_n"}
    check("/completion", picked)
    check("/apply-template", server.post("/apply-template", {"messages": [{"role": "user", "content": text}]}))


def test_shapes_of_the_rest(check, server, document):
    for _, path, _ in [o for o in operations(document) if o[0] == "get"]:
        answer = requests.get(server.url + path.replace("{id}", "replay"), timeout=10)
        media = answer.headers["content-type"].split(";")[0]
        assert answer.status_code == 200, path
        assert media in document["paths"][path]["get"]["responses"]["200"]["content"], path
        if media == "application/json":
            check(path, answer, "get")


def test_shapes_of_errors(check, server, document):
    for method, path, schema, example in bodies(document):
        answers = [ask(server, method, path, {}), ask(server, method, path, [1])]
        answers.append(requests.request(method, server.url + path, data=b"{", timeout=10))
        if "model" in schema["properties"]:
            answers.append(ask(server, method, path, {**example, "model": "nobody"}))
        assert [a.status_code for a in answers] == [400, 400, 400, 404][: len(answers)], path
        for answer in answers:
            check(path, answer, method)
    for method, path, operation in operations(document):
        if "501" in operation["responses"] and not any(status.startswith("2") for status in operation["responses"]):
            answer = ask(server, method, path.replace("{id}", "0"), {})
            assert answer.status_code == 501
            check(path, answer, method)
    check("/v1/models/{id}", requests.get(server.url + "/v1/models/nobody", timeout=10), "get")


def test_examples_are_answered(document, server, check):
    for method, path, schema, example in bodies(document):
        assert example, path
        if path in STORE:
            continue
        answer = ask(server, method, path, example)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        assert "x-omnibus-ignored-fields" not in answer.headers
        check(path, answer)


# The page.


@pytest.fixture(scope="module")
def page(server):
    answer = requests.get(server.url + "/docs", timeout=10)
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer


def test_page_shows_all_of_the_document(page, document):
    import html

    text = html.unescape(page.text)
    for method, path, operation in operations(document):
        assert f'id="{operation["operationId"]}"' in text and f"<b>{method.upper()}</b> <code>{path}</code>" in text
        assert operation["summary"] in text
    for _, path, schema, _ in bodies(document):
        for name, field in fields(schema):
            assert f"<code>{name}</code>" in text, f"{path}: {name}"
            if field.get("x-omnibus") is None:
                assert field["description"] in text


def test_page_is_self_contained(page):
    import base64
    import hashlib

    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "script" not in policy
    style = re.search(r"<style>(.*?)</style>", page.text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert not re.search(r"<script|\ssrc\s*=|@import|url\(|<link|<img|\sstyle=|\son\w+=", page.text)
    assert set(re.findall(r'href="([^#"]*)', page.text)) <= {"", "/openapi.json"}
    # Every link within the page leads somewhere.
    assert set(re.findall(r'href="#([^"]+)"', page.text)) <= set(re.findall(r'id="([^"]+)"', page.text))


def test_page_is_well_formed(page):
    from html.parser import HTMLParser

    class Nesting(HTMLParser):
        void = {"meta", "br"}

        def __init__(self):
            super().__init__()
            self.open, self.ids = [], []

        def handle_starttag(self, tag, attributes):
            self.ids += [value for key, value in attributes if key == "id"]
            if tag not in self.void:
                self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    parser = Nesting()
    parser.feed(page.text)
    parser.close()
    assert parser.open == [] and len(parser.ids) == len(set(parser.ids))


def test_page_shows_a_models_name_as_text(own_replay):
    from harness.script import HELLO

    server = own_replay(HELLO, "--served-model-name", "<script>alert(1)</script>'\"&")
    page = requests.get(server.url + "/docs", timeout=10)
    assert "<script" not in page.text and "&lt;script&gt;" in page.text
