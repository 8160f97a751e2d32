#!/usr/bin/python3
"""A Trunkline subscriber in Python, after proto/PROTOCOL.md §16: asks for a service, prints ten responses and leaves.

Debian packages: python3-zmq python3-protobuf protobuf-compiler.
"""

import argparse
import os
import sys
import time

import zmq

import canonical
import wire
from wire import pb

WINDOW = 4 * 1024 * 1024
CREDIT_STEP = 32 * 1024
MAX_MESSAGE = 16 * 1024 * 1024
HEARTBEAT_MS = 2000
LIVENESS_FACTOR = 3
INSTANCE = os.urandom(16)
REQUEST_ID = 1


class Lost(Exception):
    """The session is over; say HELLO anew."""


class Ended(Exception):
    """The subscription is over for good: `status` is the exit code."""

    def __init__(self, text, status):
        super().__init__(text)
        self.status = status


class Subscriber:
    def __init__(self, options):
        self.options = options
        self.params = b"" if options.params is None else canonical.encode(canonical.decode(options.params))
        self.left = options.count
        self.epoch, self.sequence = b"", 0
        self.context = zmq.Context()
        self.socket = None

    # ---- the socket ----

    def connect(self):
        """A fresh socket for every attempt: what waited in an old one belongs to an old session."""
        if self.socket is not None:
            self.socket.close()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.LINGER, 200)
        self.socket.connect(self.options.address)

    def receive(self, wait_ms):
        """The next batch, or None. Anything but one frame is dropped (M-83)."""
        if self.socket.poll(max(0, wait_ms)) == 0:
            return None
        frames = self.socket.recv_multipart()
        return frames[0] if len(frames) == 1 else None

    def send(self, kind, payload=None, code=0):
        self.socket.send(wire.message(kind, payload, code))
        self.sent += 1

    # ---- the session ----

    def hello(self, deadline):
        """§5.2: the same HELLO until it is answered."""
        nonce = os.urandom(8)
        hello = pb.Hello(nonce=nonce, instance=INSTANCE, name="python", heartbeat_ms=HEARTBEAT_MS,
                         max_message=MAX_MESSAGE, credit=WINDOW, token=self.options.token)
        wait = 0.25
        while True:
            if time.monotonic() > deadline:
                raise Ended(f"no answer from {self.options.address}", 1)
            self.socket.send(wire.message(wire.HELLO, hello))
            until = time.monotonic() + wait
            wait = min(5.0, wait * 2)
            while time.monotonic() < until:
                batch = self.receive((until - time.monotonic()) * 1000)
                first = self.first_of(batch)
                if first is not None and first.type == wire.BYE:
                    self.bye(first)
                if first is not None and first.type == wire.WELCOME:
                    welcome = first.payload(pb.Welcome)
                    if welcome.nonce == nonce:
                        return welcome

    @staticmethod
    def first_of(batch):
        try:
            return None if batch is None else wire.messages_of(batch, MAX_MESSAGE)[0]
        except wire.BadBatch:
            return None

    @staticmethod
    def bye(message):
        bye = message.payload(pb.Bye)
        if bye.retryable:
            raise Lost(bye.code)
        raise Ended(f"{bye.code}: {bye.message}", 1)

    def session(self):
        self.connect()
        welcome = self.hello(time.monotonic() + self.options.timeout)
        self.sent = self.received = self.consumed = 0
        self.announced = WINDOW
        self.line = None
        self.request()
        silence = LIVENESS_FACTOR * max(1, welcome.heartbeat_ms) / 1000
        heard = time.monotonic()
        beat = heard + HEARTBEAT_MS / 1000
        while True:
            batch = self.receive((min(beat, heard + silence) - time.monotonic()) * 1000)
            now = time.monotonic()
            if batch is not None and self.take(batch):
                heard = now
            if now >= beat:
                beat = now + HEARTBEAT_MS / 1000
                self.send(wire.HEARTBEAT, pb.Heartbeat(batches=self.sent))
            if now - heard >= silence:
                raise Lost("the dispatcher was not heard")

    def request(self):
        start = None
        if self.sequence > 0:  # M-75: go on where it was
            start = pb.Start(**{"from": pb.Start.AFTER, "sequence": self.sequence, "epoch": self.epoch})
        self.send(wire.REQUEST, pb.Request(request=REQUEST_ID, params=self.params, filter=self.options.filter,
                                           start=start), self.options.code)

    def leave(self):
        """M-31: BYE is the last batch."""
        self.send(wire.CANCEL, pb.Cancel(request=REQUEST_ID), self.options.code)
        self.send(wire.BYE, pb.Bye(code="CLOSED"))

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.context.term()

    # ---- what arrives ----

    def take(self, batch):
        """Handles one batch; True if it was a sign of life (M-28)."""
        try:
            messages = wire.messages_of(batch, MAX_MESSAGE)
        except wire.BadBatch as error:
            print(f"dropped a batch: {error}", file=sys.stderr)
            self.received += 1
            return False
        if messages[0].type in (wire.HELLO, wire.WELCOME):
            return True
        for message in messages:
            self.handle(message)
            if message.is_data:
                self.consume(message.length)
        self.received += 1
        return True

    def consume(self, length):
        """§6: gives the bytes back, in steps."""
        self.consumed += length
        if self.consumed + WINDOW - self.announced >= CREDIT_STEP:
            self.announced = self.consumed + WINDOW
            self.send(wire.CREDIT, pb.Credit(limit=self.announced))

    def handle(self, message):
        if message.type == wire.HEARTBEAT:
            if message.payload(pb.Heartbeat).batches != self.received:
                self.send(wire.RESET)
                raise Lost("batches were lost")
        elif message.type == wire.RESET:
            raise Lost("the dispatcher does not know the session")
        elif message.type == wire.BYE:
            self.bye(message)
        elif message.type == wire.ACCEPTED:
            accepted = message.payload(pb.Accepted)
            if accepted.request == REQUEST_ID:
                if self.sequence > 0 and not accepted.resumed:
                    print("gap: history lost", file=sys.stderr)
                self.line, self.epoch = message.line, accepted.epoch
                print(f"accepted: {accepted.status}", file=sys.stderr)
        elif message.type == wire.REFUSED:
            refused = message.payload(pb.Refused)
            if refused.request == REQUEST_ID:
                raise Ended(f"{refused.code}: {refused.message}", 1)
        elif message.line == self.line:
            self.handle_line(message)

    def handle_line(self, message):
        if message.type == wire.RESPONSE:
            if message.flags & wire.SNAPSHOT_END:
                return
            self.sequence = max(self.sequence, message.sequence)
            self.show(message)
            self.left -= 1
            if self.left == 0 or message.flags & wire.FINAL:
                raise Ended("", 0)
        elif message.type == wire.STATUS:
            status = message.payload(pb.Status)
            print(f"{status.state}: {status.reason}", file=sys.stderr)
        elif message.type == wire.GAP:
            gap = message.payload(pb.Gap)
            print(f"gap: {gap.count} responses, {gap.first} to {gap.last}: {gap.reason}", file=sys.stderr)
        elif message.type == wire.END:
            end = message.payload(pb.End)
            raise Ended(f"{end.code}: {end.message}", 0 if end.code in ("", "COMPLETED") else end.exit or 1)

    @staticmethod
    def show(message):
        try:
            key = pb.Meta.FromString(message.meta_bytes).key
        except Exception as error:  # M-8: concerns this message only
            print(f"unreadable meta: {error}", file=sys.stderr)
            return
        body = message.body.decode("utf-8", "backslashreplace")
        print(f"{message.sequence}\t{key}\t{body}", flush=True)

    # ---- all of it ----

    def run(self):
        failures = 0
        try:
            while True:
                try:
                    self.session()
                except Lost as reason:
                    print(f"session lost: {reason}", file=sys.stderr)
                    time.sleep(int.from_bytes(os.urandom(2), "little") / 65535 * 0.1 * 2 ** min(5, failures))
                    failures += 1
        except Ended as end:
            if str(end):
                print(end, file=sys.stderr)
            else:
                self.leave()
            return end.status
        finally:
            self.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", default="tcp://127.0.0.1:7400")
    parser.add_argument("--code", type=int, default=2001, help="service code")
    parser.add_argument("--params", help="JSON; default: none")
    parser.add_argument("--filter", default="", help="CEL, for example: attrs.price > 100.0")
    parser.add_argument("--count", type=int, default=10, help="responses to print before leaving")
    parser.add_argument("--token", default="")
    parser.add_argument("--timeout", type=float, default=10, help="seconds to wait for a session")
    sys.exit(Subscriber(parser.parse_args()).run())


if __name__ == "__main__":
    main()
