"""A wire between browser and site that can be cut: what goes through it ends at once, as when a network dies."""

import contextlib
import socket
import threading
from collections.abc import Iterator


class Wire:
    """Forwards a port of its own to `port`, until it is cut; cut connections never come back, new ones are refused."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.whole = threading.Event()
        self.whole.set()
        self._ends: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self.whole.is_set():
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self.target))
            with self._lock:
                self._ends |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            self._close(end)

    def _close(self, end: socket.socket) -> None:
        with self._lock:
            self._ends.discard(end)
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()

    def cut(self) -> None:
        """Lose every connection."""
        self.whole.clear()
        for end in list(self._ends):
            self._close(end)

    def mend(self) -> None:
        """Let new connections through again."""
        self.whole.set()

    def end(self) -> None:
        self.cut()
        self._listener.close()


@contextlib.contextmanager
def wire(port: int) -> Iterator[Wire]:
    made = Wire(port)
    try:
        yield made
    finally:
        made.end()
