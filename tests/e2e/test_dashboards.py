"""configs/dashboards and configs/alerts: well-formed, and about metrics and labels that a server really has."""

import json
import re
from pathlib import Path

import pytest
import yaml

from harness.grpc_client import Client
from harness.prometheus import Family, scrape, selectors
from harness.script import HELLO
from harness.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = sorted((ROOT / "configs/dashboards").glob("*.json"))
RULES = sorted((ROOT / "configs/alerts").glob("*.yml"))
# Prometheus adds them to what it scrapes.
ADDED = {"instance", "job", "le"}
# And this one for each server, be it there or not.
UP = Family("gauge", "1 while it can be scraped", [("up", {"job": "omnibus", "instance": "HOST:PORT"}, 1.0)])


@pytest.fixture(scope="module")
def families(pool):
    server = pool(HELLO, "--grpc-port", "0")
    server.chat("hello")
    with Client(server) as client:
        client.generate("hello", max_tokens=1)
    wait_until(lambda: server.metric("omnibus_grpc_requests_total") == 1, 10, "the call is counted")
    return {**scrape(server), "up": UP}


def check(families, expression):
    """Each metric exists, as what it is used for; each label is one of its own, or of all that are grouped by it."""
    found, grouped = selectors(expression)
    assert found, expression
    known = {}
    for name, family in families.items():
        suffixes = ("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",)
        known.update({name + suffix: family for suffix in suffixes})
    for name, labels in found:
        assert name in known, f"{name} is in no scrape: {expression}"
        assert labels | grouped <= known[name].labels() | ADDED, f"labels of {name}: {expression}"
        if known[name].kind != "gauge":
            assert re.search(rf"(rate|increase)\({re.escape(name)}", expression), f"a counter needs a rate: {expression}"


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def test_there_are_some():
    assert DASHBOARDS and RULES


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda p: p.name)
def test_dashboard(families, path):
    dashboard = json.loads(path.read_text())
    variables = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__rate_interval"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids)) and len(panels(dashboard)) >= 20
    for panel in panels(dashboard):
        assert panel["title"] and panel["targets"] and panel["datasource"]["uid"] == "${datasource}", panel["title"]
        for target in panel["targets"]:
            assert set(re.findall(r"\$\{?(\w+)", target["expr"])) <= variables, target["expr"]
            check(families, target["expr"].replace("$__rate_interval", "5m"))
            labels = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
            assert labels <= selectors(target["expr"])[1] | {"instance", "le"}, target["legendFormat"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\S+), (\w+)\)", variable["query"]).groups()
            assert metric in families and label in families[metric].labels() | ADDED, variable["query"]


def test_dashboard_panels_do_not_overlap():
    for path in DASHBOARDS:
        taken = set()
        for panel in json.loads(path.read_text())["panels"]:
            grid = panel["gridPos"]
            assert grid["x"] + grid["w"] <= 24
            cells = {(x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])}
            assert not cells & taken, panel["title"]
            taken |= cells


@pytest.mark.parametrize("path", RULES, ids=lambda p: p.name)
def test_alert_rules(families, path):
    groups = yaml.safe_load(path.read_text())["groups"]
    names = []
    for rule in [rule for group in groups for rule in group["rules"]]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
        names.append(rule["alert"])
        assert re.fullmatch(r"[A-Z][A-Za-z]+", rule["alert"]) and re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
        assert rule["labels"]["severity"] in ("page", "ticket")
        check(families, rule["expr"])
        _, grouped = selectors(rule["expr"])
        for text in (rule["annotations"]["summary"], rule["annotations"]["description"]):
            assert set(re.findall(r"\$labels\.(\w+)", text)) <= {"instance"}, text
        assert not grouped or "instance" in grouped, f"the annotations name the instance: {rule['expr']}"
    assert len(names) == len(set(names))
    documented = set(re.findall(r"\bOmnibus[A-Za-z]+", (ROOT / "docs/observability.md").read_text()))
    assert documented == set(names), "docs/observability.md says what to do about each alert"


def expressions():
    """Of all rules and panels."""
    for path in RULES:
        yield from (rule["expr"] for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"])
    for path in DASHBOARDS:
        yield from (target["expr"] for panel in panels(json.loads(path.read_text())) for target in panel["targets"])


def test_a_server_that_is_gone_is_seen():
    """Its own metrics are gone with it: only `up` is left, by the name of the job that the docs ask for."""
    every = list(expressions())
    assert 'up{job="omnibus"} == 0' in every
    assert any(e.startswith("changes(process_start_time_seconds{job=\"omnibus\"}[") for e in every)
    assert not any("count(omnibus_" in e or "omnibus_engine_up" in e for e in every)
    assert re.search(r"job_name: omnibus\b", (ROOT / "docs/observability.md").read_text())


def test_probes_are_no_requests(families):
    """A server that is not ready says so with 503 to each probe: a share of errors leaves them out, everywhere alike."""
    shares = [e for e in expressions() if "http_requests_total" in e and '"5.."' in e]
    assert len(shares) == 2
    filters = {text for e in shares for text in re.findall(r'handler!~"([^"]*)"', e)}
    assert all(e.count("handler!~") == e.count("http_requests_total") for e in shares) and len(filters) == 1
    assert set(filters.pop().split("|")) == {"/health", "/v1/health", "/readyz", "/livez", "/ping"}


def test_a_wrong_name_would_be_found(families):
    check(families, 'sum by (handler) (rate(http_requests_total{status=~"5.."}[5m])) > 0.5')
    for wrong in ("omnibus_redy == 0", "sum(rate(http_requests_total{code=\"200\"}[5m]))", "sum by (model) (vllm:num_requests_running)",
                  "http_requests_total > 5", "rate(vllm:time_to_first_token_seconds[5m])", "summ(omnibus_ready)"):
        with pytest.raises(AssertionError):
            check(families, wrong)
