"""S4, from the server's own table: every field that /openapi.json documents, on every route, with the values that have
ended other servers. What the schema refuses must get 400 naming the field; what it accepts is never a 5xx. The table is
read from the program, so that a new field is walked without being listed; test_s04_numeric_fields.py holds what the
bounds have to be."""

import contextlib
import http.client
import json

import pytest
import requests

from harness.routes import ROUTES
from harness.script import HELLO

VALUES = ["-1", "0", "1", "0.5", "2147483648", "9223372036854775808", "-9223372036854775809", "1e300", "-1e300", "1e999",
          "NaN", '"1"', '""', "true", "null", "[]", "{}", "[null]", "[[]]", '{"x":1}']
UNBUILT_VALUES = ["1", "-1", "1e999", '"1"', "null", "[]", '{"x":1}']  # of fields without effect, or refused
TYPES = {
    "null": lambda v: v is None, "boolean": lambda v: isinstance(v, bool), "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list), "object": lambda v: isinstance(v, dict),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "integer": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and v == int(v),
}


def resolve(schema, document):
    while "$ref" in schema:
        target = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return schema


def properties(schema, document):
    schema = resolve(schema, document)
    out = dict(schema.get("properties", {}))
    for part in schema.get("allOf", []) + schema.get("oneOf", []) + schema.get("anyOf", []):
        out = properties(part, document) | out
    return out


def refuses(schema, value, document):
    """True: certainly wrong by the schema. False: the schema does not say."""
    schema = resolve(schema, document)
    if value is None:
        return False  # absent, for every field
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(TYPES[t](value) for t in types):
        return True
    if "enum" in schema and value not in schema["enum"]:
        return True
    if "const" in schema and value != schema["const"]:
        return True
    if TYPES["number"](value) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return True
    if isinstance(value, (str, list, dict)):
        kind = {str: "Length", list: "Items", dict: "Properties"}[type(value)]
        size = len(value)
        if not schema.get("min" + kind, size) <= size <= schema.get("max" + kind, size):
            return True
    if isinstance(value, list) and "items" in schema and any(refuses(schema["items"], v, document) for v in value):
        return True
    for key in ("anyOf", "oneOf"):
        if key in schema and all(refuses(part, value, document) for part in schema[key]):
            return True
    return False


@pytest.fixture(scope="module")
def server(pool):
    return pool(HELLO)


@pytest.fixture(scope="module")
def document(server):
    answer = requests.get(server.url + "/openapi.json", timeout=10)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_s04_every_documented_field(server, document):
    bodies = {(route.method.lower(), route.pattern): route for route in ROUTES if route.body}
    refused = accepted = walked = 0
    wrong = []
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                content = (operation.get("requestBody") or {}).get("content", {}).get("application/json")
                if content is None or (method, path) not in bodies:
                    continue
                route = bodies[method, path]
                fields = properties(content["schema"], document)
                walked += len(fields)
                for name, schema in fields.items():
                    limits = [resolve(schema, document).get(key) for key in ("minimum", "maximum")]
                    edges = [json.dumps(limit + step) for limit in limits if limit is not None for step in (-1, 1)]
                    built = "x-omnibus" not in resolve(schema, document)
                    for text in VALUES + edges if built else UNBUILT_VALUES:
                        pairs = {key: json.dumps(value) for key, value in route.body.items()} | {name: text}
                        if name == "messages":
                            pairs.pop("prompt", None)  # one or the other
                        body = "{" + ",".join(f"{json.dumps(k)}:{v}" for k, v in pairs.items()) + "}"
                        connection.request(method.upper(), route.path, body.encode())
                        answer = connection.getresponse()
                        data = answer.read().decode()
                        place = f"{name}={text} on {path}: {answer.status} {data[:300]}"
                        assert answer.status in (200, 400, 404, 409, 413, 501), place
                        is_json = text not in ("NaN", "1e999")
                        if not is_json or refuses(schema, json.loads(text), document):
                            refused += 1
                            if answer.status not in (400, 501):
                                wrong.append("accepted: " + place)
                                continue
                            error = json.loads(data)["error"]
                            named = error.get("param") if isinstance(error, dict) and is_json else None
                            if named is not None and named.split(".")[0].split("[")[0] != name:
                                wrong.append(f"names {named}: {place}")
                        else:
                            accepted += answer.status == 200
    print(f"{walked} fields, {refused} values refused as documented, {accepted} accepted")
    assert not wrong, "\n".join(wrong)
    assert walked > 100 and refused > 500 and accepted > 100
    server.assert_serves()
