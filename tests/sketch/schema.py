# SPDX-License-Identifier: MIT
"""schema.py SCHEMA FILE...: each file must be what the schema says. Only the keywords that ours uses are known; any other
keyword is an error, so that no rule is passed over in silence."""
import json
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
SAID = {"title", "description", "$schema", "$defs"}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check_object(root, schema, value, at):
    known = schema.get("properties", {})
    for key in schema.get("required", []):
        if key not in value:
            yield f"{at}: no '{key}'"
    for key, item in value.items():
        if key in known:
            yield from check(root, known[key], item, f"{at}.{key}")
        elif schema.get("additionalProperties") is False:
            yield f"{at}: '{key}' is not in the schema"


def check(root, schema, value, at="$"):
    for word, rule in schema.items():
        if word in SAID or word in ("properties", "required", "additionalProperties"):
            continue
        if word == "$ref":
            yield from check(root, root["$defs"][rule.removeprefix("#/$defs/")], value, at)
        elif word == "anyOf":
            if all(list(check(root, option, value, at)) for option in rule):
                yield f"{at}: {value!r:.60} is none of what it may be"
        elif word == "items":
            if isinstance(value, list):
                for i, item in enumerate(value):
                    yield from check(root, rule, item, f"{at}[{i}]")
        else:
            fits = {"type": lambda: is_type(value, rule), "const": lambda: value == rule, "enum": lambda: value in rule,
                    "pattern": lambda: re.search(rule, value), "minLength": lambda: len(value) >= rule,
                    "minimum": lambda: value >= rule, "maximum": lambda: value <= rule,
                    "minItems": lambda: len(value) >= rule, "maxItems": lambda: len(value) <= rule}
            if word not in fits:
                raise SystemExit(f"schema.py: the keyword '{word}' is not known here")
            try:
                if not fits[word]():
                    yield f"{at}: {value!r:.60} against {word} {rule!r:.80}"
            except TypeError:
                yield f"{at}: {value!r:.60} has the wrong type for {word}"
    if isinstance(value, dict):
        yield from check_object(root, schema, value, at)


def main():
    with open(sys.argv[1]) as f:
        root = json.load(f)
    wrong = 0
    for path in sys.argv[2:]:
        with open(path) as f:
            for problem in check(root, root, json.load(f)):
                print(f"{path}: {problem}")
                wrong += 1
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
