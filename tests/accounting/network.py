"""What stands between a client and a PostgreSQL server, and fails at one of the client's messages."""

from __future__ import annotations

import contextlib
import select
import socket
import threading

COMMIT = b"COMMIT\0"
"""COMMIT of what was inserted. SQLAlchemy sends another one when it meets a server for the first time."""
_FAREWELL = b"X\0\0\0\4"
"""Nobody waits for it, so it may come when the next work has begun; it is not counted."""


class Network:
    """It carries one connection at a time. Told to, it fails at a message of the client: at the k-th, or at one with a text.

    It fails "before" the message is passed on or "after" it was answered; the answer is then lost. Or it calls a function
    before it passes the message on.
    """

    def __init__(self, server_port):
        self.server_port = server_port
        self.work()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def work(self):
        """Pass everything on, and count anew."""
        self.fail(None, None)

    def fail(self, how, at):
        """From now on, fail in this way at the message of this number, counted from now on, or with this text."""
        self.how, self.at, self.n_messages, self.has_failed, self.has_inserted = how, at, 0, False, False

    def between(self, url):
        """The URL of the server by way of this network."""
        return url.replace(f":{self.server_port}/", f":{self.port}/")

    def listen(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                there = ("127.0.0.1", self.server_port)
                with contextlib.suppress(ConnectionError), client, socket.create_connection(there) as server:
                    self.carry(client, server)

    def carry(self, client, server):
        while True:
            for source in select.select([client, server], [], [])[0]:
                piece = source.recv(65536)
                if not piece:
                    return
                fails = source is client and self.is_the_one(piece)
                if fails and self.how == "before":
                    return
                if fails and callable(self.how):
                    self.how()
                (server if source is client else client).sendall(piece)
                if fails and self.how == "after":
                    server.recv(65536)
                    return

    def is_the_one(self, piece):
        if piece == _FAREWELL:
            return False
        self.n_messages += 1
        self.has_inserted |= b"INSERT INTO" in piece
        if isinstance(self.at, bytes):
            found = self.at in piece and (self.has_inserted or self.at != COMMIT)
        else:
            found = self.at == self.n_messages
        self.has_failed |= found
        return found

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(60)
