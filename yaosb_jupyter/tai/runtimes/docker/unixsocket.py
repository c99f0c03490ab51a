"""The docker library's way over a Unix socket, with nothing left open where an engine does not answer."""

from __future__ import annotations

import socket
from typing import Any

from docker.transport.unixconn import UnixHTTPAdapter, UnixHTTPConnection, UnixHTTPConnectionPool


class Connection(UnixHTTPConnection):
    def connect(self) -> None:
        """The library's own leaves the socket to the collector where it cannot connect."""
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.settimeout(self.timeout)
            opened.connect(self.unix_socket)
        except BaseException:
            opened.close()
            raise
        self.sock = opened


class Pool(UnixHTTPConnectionPool):
    def _new_conn(self) -> Any:
        timeout: Any = self.timeout
        return Connection(self.base_url, self.socket_path, timeout)


class Adapter(UnixHTTPAdapter):
    def get_connection(self, url: Any, proxies: Any = None) -> Pool:
        del proxies  # none stands before a socket of this host
        with self.pools.lock:
            pool = self.pools.get(url)
            if pool is None:
                pool = Pool(url, self.socket_path, self.timeout, maxsize=self.max_pool_size)
                self.pools[url] = pool
        return pool
