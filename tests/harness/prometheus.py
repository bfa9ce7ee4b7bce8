"""Prometheus' text exposition format 0.0.4, read strictly, and metric names out of PromQL."""

import re
from dataclasses import dataclass, field

import requests

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\.)*)"(,|$)')


@dataclass
class Family:
    kind: str
    help: str
    samples: list = field(default_factory=list)  # (name, {label: value}, value)

    def labels(self):
        return {label for _, labels, _ in self.samples for label in labels}


def parse(text):
    """{name: Family}; asserts that the text is well-formed."""
    families, helps, current = {}, {}, None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            helps[name] = words
        elif line.startswith("# TYPE "):
            current, kind = line[7:].split(" ")
            assert current not in families and kind in ("counter", "gauge", "histogram", "summary", "untyped"), line
            families[current] = Family(kind, helps[current])
        elif line:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            suffixes = ("_bucket", "_sum", "_count") if families[current].kind == "histogram" else ("",)
            assert name in [current + suffix for suffix in suffixes], line
            families[current].samples.append((name, parse_labels(labels or "", line), float(value)))
    for name, family in families.items():
        check_histogram(name, family)
    return families


def parse_labels(text, line):
    labels = {}
    while text:
        found = LABEL.match(text)
        assert found and found[1] not in labels, line
        labels[found[1]] = found[2]
        text = text[found.end() :]
    return labels


def check_histogram(name, family):
    if family.kind != "histogram":
        return
    series = {}
    for sample, labels, value in family.samples:
        key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        series.setdefault(key, {"buckets": []})
        if sample.endswith("_bucket"):
            series[key]["buckets"].append((float(labels["le"]), value))
        else:
            series[key][sample.rsplit("_", 1)[1]] = value
    for one in series.values():
        counts = [count for _, count in sorted(one["buckets"])]
        assert counts == sorted(counts) and counts[-1] == one["count"] and max(one["buckets"])[0] == float("inf"), name


def scrape(server, **kwargs):
    answer = requests.get(server.url + "/metrics", timeout=10, **kwargs)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return parse(answer.text)


def total(families, name, **labels):
    """Sum of the samples called `name` that have these labels; 0 where there is none yet."""
    family = families.get(name) or families.get(re.sub("_(bucket|sum|count)$", "", name))
    return sum(v for n, have, v in (family.samples if family else []) if n == name and labels.items() <= have.items())


FUNCTIONS = {
    "sum", "count", "min", "max", "avg", "rate", "increase", "irate", "histogram_quantile", "min_over_time", "max_over_time",
    "avg_over_time", "label_values", "changes", "vector",
}
KEYWORDS = {"by", "without", "and", "or", "unless", "on", "ignoring", "group_left", "group_right", "bool", "offset"}


def selectors(expression):
    """([(metric, labels in its braces)], labels that results are grouped by) of a PromQL expression. Not a parser: it
    fails on what it does not know rather than overlook a name."""
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    text = re.sub(r"\[[^\]]*\]", "", text)
    grouped = set()

    def take_group(found):
        grouped.update(word.strip() for word in found[1].split(",") if word.strip())
        return " "

    text = re.sub(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", take_group, text)
    found = []
    for match in re.finditer(rf"({NAME})\s*(\{{[^}}]*\}}|\()?", text):
        name, rest = match[1], match[2] or ""
        if rest == "(" or name in KEYWORDS:
            assert name in FUNCTIONS | KEYWORDS, f"{name} in {expression}"
            continue
        found.append((name, set(re.findall(r"([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)", rest))))
    return found, grouped
