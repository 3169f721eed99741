# SPDX-License-Identifier: MIT
"""sarif.py FILE...: what SARIF 2.1.0 requires of the objects that we write, and what code hosts need besides."""
import json
import re
import sys


def need(condition, what):
    if not condition:
        raise SystemExit(f"{path}: {what}")


def check_location(location):
    physical = location.get("physicalLocation")
    if physical:
        uri = physical["artifactLocation"]["uri"]
        need(re.fullmatch(r"(file:///)?([A-Za-z0-9/._~+-]|%[0-9A-F]{2})+", uri), f"not a URI: {uri}")
        need(uri.startswith("file:///") or not uri.startswith("/"), f"neither absolute nor relative: {uri}")
        need(physical["region"]["startLine"] >= 1, "lines begin at 1")
        need(physical["region"].get("startColumn", 1) >= 1, "columns begin at 1")
    for logical in location.get("logicalLocations", []):
        need(logical["name"] and logical["kind"] == "function", "a logical location has a name")
    if "message" in location:
        need(location["message"]["text"], "a message has text")


def check_flows(result):
    for flow in result.get("codeFlows", []):
        need(flow["threadFlows"], "a code flow has thread flows")
        ids = [t["id"] for t in flow["threadFlows"]]
        need(len(ids) == len(set(ids)), "thread flows have ids of their own")
        for thread in flow["threadFlows"]:
            need(thread["locations"], "a thread flow has locations")
            orders = [x["executionOrder"] for x in thread["locations"]]
            need(orders == sorted(orders) and orders[0] >= 1, "a thread's steps are in order")
            for x in thread["locations"]:
                check_location(x["location"])
                need(x["importance"] in ("essential", "important", "unimportant"), "importance is one of three words")
                need(all(v["text"] for v in x.get("state", {}).values()), "a state is text by name")


def check_result(run, result):
    rules = run["tool"]["driver"]["rules"]
    need(rules[result["ruleIndex"]]["id"] == result["ruleId"], "the rule is the one at its index")
    need(result["level"] == "error" and result["kind"] == "fail", "a failure is an error")
    need(result["message"]["text"], "a result has a message")
    need(len(result["locations"]) == 1, "a result has one location")
    related = [x["id"] for x in result["relatedLocations"]]
    need(len(related) == len(set(related)), "related locations have ids of their own")
    for location in result["locations"] + result["relatedLocations"]:
        check_location(location)
    for stack in result.get("stacks", []):
        need(stack["message"]["text"] and stack["frames"], "a stack has a title and frames")
        for frame in stack["frames"]:
            check_location(frame["location"])
    check_flows(result)


for path in sys.argv[1:]:
    with open(path) as f:
        log = json.load(f)
    need(log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json"), "not SARIF 2.1.0")
    need(len(log["runs"]) == 1, "one run")
    for the_run in log["runs"]:
        need(the_run["tool"]["driver"]["name"] == "etch", "the tool is named")
        need(the_run["invocations"][0]["executionSuccessful"] is True, "an invocation says how it went")
        for the_result in the_run["results"]:
            check_result(the_run, the_result)
