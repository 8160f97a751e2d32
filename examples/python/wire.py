"""Headers, batches and payloads of Trunkline Protocol 1 (proto/PROTOCOL.md §3 and §4).

Needs Debian's python3-protobuf and protobuf-compiler: the payloads are generated from the schema when this is imported.
"""

import importlib.util
import pathlib
import struct
import subprocess
import sys
import tempfile

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"

# length, version, type, words, flags, code, line, sequence, generation, meta, reserved
HEADER = struct.Struct("<IBBBBIIQIHH")
assert HEADER.size == 32

REQUEST, RESPONSE, CANCEL, PROBE, PROBE_REPLY = range(1, 6)
HELLO, WELCOME, HEARTBEAT, BYE, RESET, CREDIT = range(16, 22)
ACCEPTED, REFUSED, END, STATUS, GAP, OFFER, WITHDRAW = range(32, 39)
PUBLISH, PUBLISHED, ACK, NACK, EXTEND, SETTLED = range(48, 54)
KNOWN = {*range(1, 6), *range(16, 22), *range(32, 39), *range(48, 54), *range(128, 256)}
SNAPSHOT, SNAPSHOT_END, FINAL, REDELIVERED, JSON = 1, 2, 4, 8, 16


def load_schema():
    """The module that protoc makes of schemas/trunkline.proto, from a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        schemas = PROTO / "schemas"
        subprocess.run(["protoc", f"-I{schemas}", f"--python_out={folder}", "trunkline.proto"], check=True)
        spec = importlib.util.spec_from_file_location("trunkline_pb2", pathlib.Path(folder) / "trunkline_pb2.py")
        module = importlib.util.module_from_spec(spec)
        writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            spec.loader.exec_module(module)
        finally:
            sys.dont_write_bytecode = writes
        return module


pb = load_schema()


class BadBatch(Exception):
    def __init__(self, fault, at):
        super().__init__(f"message at byte {at}: bad {fault}")
        self.fault, self.at = fault, at


class Message:
    """One message of a batch; `bytes` is all of it."""

    def __init__(self, data):
        self.bytes = data
        (self.length, self.version, self.type, self.words, self.flags, self.code, self.line,
         self.sequence, self.generation, self.meta_length, self.reserved) = HEADER.unpack_from(data)
        self.header_length = self.words * 4

    @property
    def is_data(self):
        return self.type in (RESPONSE, PUBLISH) or self.type >= 128

    @property
    def extension(self):
        return self.bytes[HEADER.size:self.header_length]

    @property
    def meta_bytes(self):
        return self.bytes[self.header_length:self.header_length + self.meta_length]

    @property
    def body(self):
        return self.bytes[self.header_length + self.meta_length:]

    def payload(self, kind):
        return kind.FromString(self.body)


def fault_of(batch, at, max_message):
    """The fault of the message at `at`, in the order of §3.4, or None."""
    if len(batch) - at < HEADER.size:
        return "short"
    length, version, kind, words, _, _, _, sequence, _, meta, reserved = HEADER.unpack_from(batch, at)
    if length < HEADER.size or length > len(batch) - at:
        return "length"
    if length > max_message:
        return "tooLarge"
    if version != 1:
        return "version"
    if kind not in KNOWN:
        return "type"
    if words < 8 or words * 4 > length:
        return "headerLength"
    if sequence > 2**53 - 1:
        return "sequence"
    if words * 4 + meta > length:
        return "meta"
    return "reserved" if reserved != 0 else None


def messages_of(batch, max_message):
    """All messages of a batch, or BadBatch: then none of it counts (M-10)."""
    found, at = [], 0
    while at < len(batch) or at == 0:
        fault = fault_of(batch, at, max_message)
        if fault is not None:
            raise BadBatch(fault, at)
        (length,) = struct.unpack_from("<I", batch, at)
        found.append(Message(batch[at:at + length]))
        at += length
    return found


def message(kind, payload=None, code=0):
    """A control message."""
    body = b"" if payload is None else payload.SerializeToString()
    return HEADER.pack(HEADER.size + len(body), 1, kind, 8, 0, code, 0, 0, 0, 0, 0) + body
