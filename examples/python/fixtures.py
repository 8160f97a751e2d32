#!/usr/bin/python3
"""Checks the golden fixtures of proto/fixtures (proto/PROTOCOL.md §15) with nothing but Python."""

import json
import sys

from google.protobuf import json_format

import canonical
import wire
from wire import pb

MAX_MESSAGE = 1024 * 1024
NAMES = {getattr(wire, name): name for name in (
    "REQUEST RESPONSE CANCEL PROBE PROBE_REPLY HELLO WELCOME HEARTBEAT BYE RESET CREDIT ACCEPTED REFUSED END STATUS GAP"
    " OFFER WITHDRAW PUBLISH PUBLISHED ACK NACK EXTEND SETTLED").split()}


def load(name):
    return json.loads((wire.PROTO / "fixtures" / f"{name}.json").read_text("utf-8"))


def name_of(kind):
    return NAMES.get(kind, f"APPLICATION({kind})")


def same(expected, found, what):
    if expected != found:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def check_form(kind, data, form):
    """The bytes decode to the fixture's JSON form, and the form encodes to the same bytes."""
    decoded = kind.FromString(data)
    expected = json_format.ParseDict(form, kind())
    same(expected, decoded, "decoded")
    # a map has no order on the wire
    if len(form.get("attrs", {})) <= 1:
        same(data.hex(), expected.SerializeToString(deterministic=True).hex(), "encoded")


def check_message(fixture):
    data = bytes.fromhex(fixture["hex"])
    (found,) = wire.messages_of(data, MAX_MESSAGE)
    same(fixture["header"], {
        "length": found.length, "version": found.version, "type": found.type, "headerLength": found.words,
        "flags": found.flags, "code": found.code, "line": found.line, "sequence": found.sequence,
        "generation": found.generation, "metaLength": found.meta_length}, "header")
    same(fixture["type"], name_of(found.type), "type")
    same(fixture.get("extension", ""), found.extension.hex(), "extension")
    if "meta" in fixture:
        check_form(pb.Meta, found.meta_bytes, fixture["meta"])
    else:
        same(b"", found.meta_bytes, "meta")
    if "payload" in fixture:
        check_form(getattr(pb, fixture["payload"]["message"]), found.body, fixture["payload"]["fields"])
    else:
        same(fixture.get("body", ""), found.body.hex(), "body")


def check_batch(fixture):
    try:
        found = wire.messages_of(bytes.fromhex(fixture["hex"]), fixture["maxMessage"])
    except wire.BadBatch as error:
        same((fixture.get("fault"), fixture.get("at")), (error.fault, error.at), "fault")
        return
    same(fixture.get("types"), [name_of(message.type) for message in found], "types")


def check_params(fixture):
    try:
        found = canonical.encode(canonical.decode(fixture["json"])).decode("utf-8")
    except ValueError:
        if "error" not in fixture:
            raise
        return
    same(fixture.get("canonical"), found, "canonical")


def main():
    failed = count = 0
    for file, check in (("messages", check_message), ("batches", check_batch), ("params", check_params)):
        for fixture in load(file):
            count += 1
            try:
                check(fixture)
            except Exception as error:
                failed += 1
                print(f"{file}: {fixture['name']}: {type(error).__name__}: {error}", file=sys.stderr)
    print(f"{count} fixtures, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
