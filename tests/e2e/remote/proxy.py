"""A proxy between clients and a server that knows where messages begin, and can damage the traffic.

It forwards bytes between a unix or TCP socket of its own and the server's. A Plan says what it does
to them. Messages of both directions are counted together, beginning with the hello and the welcome.
Bulk data belongs to the message before it.
"""

import collections
import heapq
import os
import random
import selectors
import socket
import struct
import threading
import time

PREFACE = 32
NEW = 1
ANSWER = 21  # enum hed_msg_kind of wire/wire.h: HED_MSG_ANSWER
ALIGN = 16
ROOM_S = 0.001  # how often a full socket is tried again


class Plan:
    """What happens to the bytes. Numbers count messages unless the name says otherwise."""

    def __init__(self, cut_messages=None, cut_bytes=None, stall_messages=None, pieces=False,
                 delay=0.0, hold=None, hold_s=0.0, seed=0):
        self.cut_messages = cut_messages  # close everything after this many
        self.cut_bytes = cut_bytes  # the same, after this many bytes in all
        self.stall_messages = stall_messages  # after this many, forward nothing and close nothing
        self.pieces = pieces  # split into 1 to 7 bytes, each sent on its own
        self.delay = delay  # seconds in each direction
        self.hold = hold  # the connection of this number (0 is the first) begins late,
        self.hold_s = hold_s  # by this many seconds
        self.random = random.Random(seed)


class Parser:
    """Finds the ends of messages in one direction of a connection."""

    def __init__(self, from_client, first):
        self.from_client = from_client
        self.left = PREFACE if from_client else 0
        self.head = b""
        self.first = first  # is the first message a hello or a welcome, which are not padded?
        self.kinds = collections.Counter()

    def ends(self, data):
        """The offset after every message that ends in data."""
        found, at = [], 0
        while at < len(data):
            if self.left:
                n = min(self.left, len(data) - at)
                self.left -= n
                at += n
                if not self.left and self.kinds:
                    found.append(at)
                continue
            n = min(64 - len(self.head), len(data) - at)
            self.head += data[at:at + n]
            at += n
            if len(self.head) < 64:
                continue
            size, kind = struct.unpack_from("<IH", self.head)
            bulk, = struct.unpack_from("<Q", self.head, 48)
            whole = size if self.first else (size + ALIGN - 1) // ALIGN * ALIGN
            self.first = False
            self.kinds[kind] += 1
            self.head = b""
            self.left = whole - 64 + bulk
            if not self.left:
                found.append(at)
        return found


class Way:
    """One direction of a connection."""

    def __init__(self, source, sink, parser):
        self.source, self.sink, self.parser = source, sink, parser
        self.queue = collections.deque()  # (when it is due, bytes); None: the end
        self.pending = b""  # due, but the sink is full

    def push(self):
        """Sends what it can. It never waits, because the other direction may be waiting for it."""
        try:
            while self.pending:
                self.pending = self.pending[self.sink.send(self.pending, socket.MSG_DONTWAIT):]
        except BlockingIOError:
            pass
        except OSError:
            self.pending = b""


class Proxy:
    """Forwards until it is closed. `listen` and `server` are "unix:PATH" or "tcp://HOST:PORT"."""

    def __init__(self, listen, server, plan):
        self.server, self.plan = server, plan
        self.tcp = listen.startswith("tcp://")
        self.listener = socket.socket(socket.AF_INET if self.tcp else socket.AF_UNIX)
        self.listener.bind(("127.0.0.1", 0) if self.tcp else listen.split(":", 1)[1])
        self.listener.listen(64)
        self.address = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}" if self.tcp else listen
        self.path = None if self.tcp else listen.split(":", 1)[1]
        self.ways = []
        self.messages = 0
        self.bytes = 0
        self.dead = False
        self.stalled = False
        self.late = []  # (due, number, socket): connections that are held back
        self.connections = 0
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.waker, self.wakened = socket.socketpair()
        self.selector.register(self.wakened, selectors.EVENT_READ, None)
        self.over = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def close(self):
        self.over = True
        self.waker.send(b"x")
        self.thread.join()
        self.cut()
        for s in (self.listener, self.waker, self.wakened):
            s.close()
        self.selector.close()
        if self.path:
            os.unlink(self.path)

    def kinds(self, from_client):
        """How many messages of each kind have passed."""
        total = collections.Counter()
        for w in list(self.ways):
            if w.parser.from_client == from_client:
                total += w.parser.kinds
        return total

    def answers(self):
        """Answers so far: the round trips that a client waited for."""
        return self.kinds(False)[ANSWER]

    # ---- the thread ---------------------------------------------------------------------------

    def run(self):
        while not self.over:
            for key, _ in self.selector.select(self.next_due()):
                if key.fileobj is self.listener:
                    self.accept()
                elif key.data:
                    self.take(key.data)
            self.give()

    def next_due(self):
        if self.stalled or self.dead:
            return None
        if any(w.pending for w in self.ways):
            return ROOM_S
        dues = [w.queue[0][0] for w in self.ways if w.queue] + [e[0] for e in self.late]
        return max(0, min(dues) - time.monotonic()) if dues else None

    def accept(self):
        client, _ = self.listener.accept()
        number = self.connections
        self.connections += 1
        if self.dead:
            client.close()
        elif number == self.plan.hold:
            heapq.heappush(self.late, (time.monotonic() + self.plan.hold_s, number, client))
        else:
            self.begin(client, number)

    def begin(self, client, number):
        if self.server.startswith("tcp://"):
            host, port = self.server[6:].split(":")
            server = socket.create_connection((host, int(port)))
        else:
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server.split(":", 1)[1])
        if self.tcp:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, sink, from_client in ((client, server, True), (server, client, False)):
            way = Way(source, sink, Parser(from_client, number == 0))
            self.ways.append(way)
            self.selector.register(source, selectors.EVENT_READ, way)

    def take(self, way):
        try:
            data = way.source.recv(65536)
        except OSError:
            data = b""
        due = time.monotonic() + self.plan.delay
        if not data:
            self.selector.unregister(way.source)
            way.queue.append((due, None))
        elif self.plan.pieces and self.bytes < 200000:
            at = 0
            while at < len(data):
                n = self.plan.random.randint(1, 7)
                way.queue.append((due, data[at:at + n]))
                at += n
        else:
            way.queue.append((due, data))

    def give(self):
        now = time.monotonic()
        while self.late and self.late[0][0] <= now:
            _, number, client = heapq.heappop(self.late)
            self.begin(client, number)
        for way in self.ways:
            way.push()
            while (way.queue and way.queue[0][0] <= now and not way.pending and not self.stalled
                   and not self.dead):
                self.pass_on(way, way.queue.popleft()[1])

    def pass_on(self, way, data):
        plan = self.plan
        if data is None:
            try:
                way.sink.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            return
        stop = None
        if plan.cut_bytes is not None and self.bytes + len(data) >= plan.cut_bytes:
            stop = plan.cut_bytes - self.bytes
        for end in way.parser.ends(data):
            self.messages += 1
            if self.messages == plan.cut_messages or self.messages == plan.stall_messages:
                stop = end
                break
        self.bytes += len(data)
        way.pending = data if stop is None else data[:stop]
        way.push()
        if stop is not None and plan.stall_messages is not None:
            self.stalled = True
        elif stop is not None:
            self.cut()

    def cut(self):
        """Closes every connection, and also later ones."""
        self.dead = True
        for way in self.ways:
            if way.source.fileno() >= 0:
                try:
                    self.selector.unregister(way.source)
                except KeyError:
                    pass
            way.queue.clear()
            way.pending = b""
        for way in self.ways:
            way.source.close()
        for _, _, client in self.late:
            client.close()
        self.late = []
