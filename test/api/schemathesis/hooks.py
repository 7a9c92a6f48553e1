"""What schemathesis has to be told about the API beyond openapi.json (docs/api.md)."""

import json
import os
import re
import sys
import unicodedata
import uuid

import jsonschema_rs
import schemathesis

# Python's parser of lambdas, which Hypothesis calls in deep stacks, counts against the same limit.
sys.setrecursionlimit(10_000)

with open(os.environ["OPENAPI"], encoding="utf-8") as file:
    DOCUMENT = json.load(file)

BLANK_CATEGORIES = ("Cc", "Cf", "Zl", "Zp", "Zs")

# Codes of the rules that the schema states. Others are about the state of records, several fields, or characters.
with open(os.environ["SCHEMA_CODES"], encoding="utf-8") as file:
    SCHEMA_CODES = set(json.load(file))


@schemathesis.hook
def before_call(context, case, kwargs):
    """Each request is a new one: the same key with another body is refused, whatever the schema says."""
    # Numbers in place of texts are drawn as such, and the HTTP client refuses to send them.
    for name, value in (case.headers or {}).items():
        if not isinstance(value, (str, bytes)):
            case.headers[name] = str(value)
    key = (case.headers or {}).get("Idempotency-Key")
    if key is not None and re.fullmatch(r"[\x20-\x7e]{1,255}", str(key)):
        case.headers["Idempotency-Key"] = str(uuid.uuid4())


@schemathesis.check
def valid_data_is_refused_only_by_other_rules(ctx, response, case):
    """In place of positive_data_acceptance, for which any 422 is an error."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if response.status_code not in (400, 406, 413, 415, 422):
        return
    body = response.json()
    # Codes of their own stand for rules about what is happening to the record, such as card_expired.
    if response.status_code == 422 and body["code"] != "validation_failed":
        return
    errors = [
        (code, message)
        for field, codes in body.get("error_codes", {}).items()
        for code, message in zip(codes, body["errors"][field], strict=True)
    ]
    # A URL is stored in its normal form, which may be longer than what was sent.
    unexpected = [code for code, message in errors if code in SCHEMA_CODES and "2048" not in message]
    assert errors and not unexpected, f"valid data was refused: {body['error']}"


@schemathesis.check
def invalid_data_is_accepted_only_when_lenient(ctx, response, case):
    """
    In place of negative_data_rejection: integers and booleans as strings, blanks for null and untrimmed text are
    accepted, as the contract says, but nothing that remains invalid once they are read so.
    """
    if case.meta is None or not case.meta.generation.mode.is_negative or response.status_code >= 300:
        return
    operation = DOCUMENT["paths"][case.operation.path][case.operation.method.lower()]
    # Each operation of a batch is read by itself: an invalid one is refused alone.
    if operation["operationId"] == "executeBatch":
        # Schemathesis also sends OPTIONS, whose response has no results.
        if response.status_code == 204 or any(result["status"] == 422 for result in response.json()["results"]):
            return
    for parameter in map(resolved, operation["parameters"]):
        given = parameters_in(case, parameter["in"])
        name = parameter["name"]
        value = given.get(name)
        # Of a list or an object something else arrives, or nothing.
        if not isinstance(value, (str, int, float)) or (value == "" and parameter.get("allowEmptyValue")):
            continue
        must_fit(name, value, parameter["schema"])
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is not None and case.body is not schemathesis.core.NOT_SET:
        must_fit("the body", case.body, content["schema"])


def parameters_in(case, place):
    found = {"path": case.path_parameters, "query": case.query, "header": case.headers}[place]
    return found or {}


def must_fit(what, value, schema):
    read = as_read(value, schema)
    validator = jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]})
    errors = [error.message for error in validator.iter_errors(read)]
    assert not errors, f"{what} was accepted, but {errors[0]}"


def resolved(schema):
    while "$ref" in schema:
        target = DOCUMENT
        for key in schema["$ref"].split("/")[1:]:
            target = target[key]
        schema = target
    return schema


def as_read(value, schema):
    """What the API makes of a value before it judges it (docs/api.md, conventions)."""
    schema = resolved(schema)
    types = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if isinstance(value, str):
        return text_as_read("" if is_blank_text(value) else value.strip(), schema, types)
    if isinstance(value, (int, float)) and "boolean" in types and value in (0, 1):
        return bool(value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {key: as_read(one, known[key]) if key in known else one for key, one in value.items()}
    if isinstance(value, list) and "items" in schema:
        return [as_read(one, schema["items"]) for one in value if not is_blank(one, schema["items"])]
    return value


def is_blank(element, schema):
    """Entirely blank elements of a list are dropped (CARD-28); fields that nobody knows do not count."""
    if isinstance(element, dict):
        known = resolved(schema).get("properties", {})
        return all(is_blank(one, known[key]) for key, one in element.items() if key in known)
    return element is None or (isinstance(element, str) and is_blank_text(element))


def is_blank_text(text):
    """A text of nothing but spaces, controls and invisible characters is blank (CONV-49). NUL is always refused."""
    return all(one != "\0" and unicodedata.category(one) in BLANK_CATEGORIES for one in text)


def text_as_read(text, schema, types):
    if text == "" and "null" in types:
        return None
    if "integer" in types and re.fullmatch(r"[+-]?\d{1,20}", text):
        return int(text)
    if "number" in types and re.fullmatch(r"[+-]?\d{1,20}(\.\d{1,20})?", text):
        return float(text)
    if "boolean" in types and text in ("0", "1", "true", "false"):
        return text in ("1", "true")
    return text
