"""A small web application of the standard library only, for inside a sandbox.

    python3 webserver.py PORT TCP_PORT [--host HOST]

Ports may be 0; it prints the two it has, as JSON. ``/`` says hello, ``/events`` sends event-0 to event-4 and then has
no more, ``/ws`` echoes messages, ``/page`` is a page that uses both, ``/echo`` gives back a body, ``/headers`` the
request's headers, ``/login`` redirects to ``/``. The TCP port echoes.
"""

import argparse
import base64
import hashlib
import json
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = """<!doctype html><title>inside</title><style>body{font:18px sans-serif;margin:2em}</style>
<h1>An application in a sandbox</h1><ul id=log></ul><script>
const log = text => { const li = document.createElement("li"); li.textContent = text;
  document.getElementById("log").append(li) }
const here = location.href.replace(/page.*/, "")
log("origin: " + self.origin)
const socket = new WebSocket(here.replace("http", "ws") + "ws", ["echo"])
socket.onopen = () => socket.send("hello")
socket.onmessage = message => {
  log("websocket: " + message.data + " by " + socket.protocol); socket.close(4001, "seen") }
socket.onclose = close => log("closed: " + close.code + " " + close.reason)
const events = new EventSource(here + "events")
events.onmessage = event => log("event: " + event.data)
fetch(here + "echo", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"a": 1}'})
  .then(response => response.text()).then(text => log("fetched: " + text))
try { log("parent: " + parent.document.title) } catch (error) { log("parent: " + error.name) }
try { log("cookie: " + document.cookie) } catch (error) { log("cookie: " + error.name) }
try { log("storage: " + localStorage.length) } catch (error) { log("storage: " + error.name) }
const other = new URLSearchParams(location.search).get("other")
if (other) fetch(other, {credentials: "include"}).then(response => response.text())
  .then(text => log("other: " + text), error => log("other: " + error.name))
</script>"""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path == "/ws":
            self.websocket()
        elif path == "/events":
            self.events()
        elif path == "/login":
            self.answer(302, b"", ("Location", "/"))
        elif path == "/headers":
            self.answer(200, json.dumps(dict(self.headers.items())).encode(), ("Content-Type", "application/json"))
        elif path == "/page":
            self.answer(200, PAGE.encode(), ("Content-Type", "text/html"), ("Set-Cookie", "theirs=1; Path=/"))
        elif path == "/":
            self.answer(200, b"hello from inside", ("Content-Type", "text/plain"))
        else:
            self.answer(404, b"no such page")

    def do_POST(self):
        self.answer(200, self.rfile.read(int(self.headers["Content-Length"])), ("Content-Type", "text/plain"))

    def answer(self, status, body, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self):
        first = int(self.headers.get("Last-Event-ID") or -1) + 1
        if first > 4:
            self.send_response(204)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"retry: 20\n\n")
        for number in range(first, 5):
            self.wfile.write(b": a comment\r\nid: %d\r\ndata: event-%d\r\n\r\n" % (number, number))
            time.sleep(0.02)

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        digest = hashlib.sha1(key.encode(), usedforsecurity=False).digest()
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(digest).decode())
        if "echo" in self.headers.get("Sec-WebSocket-Protocol", ""):
            self.send_header("Sec-WebSocket-Protocol", "echo")
        self.end_headers()
        self.close_connection = True
        while True:
            first, second = self.rfile.read(2)
            size = second & 127
            if size > 125:
                size = int.from_bytes(self.rfile.read(2 if size == 126 else 8), "big")
            mask = self.rfile.read(4)
            data = self.rfile.read(size)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
            length = struct.pack(">BQ", 127, size) if size > 65535 else struct.pack(">BH", 126, size)
            self.wfile.write(bytes([first]) + (length if size > 125 else bytes([size])) + data)
            if first & 15 == 8:
                return

    def log_message(self, *_):
        pass


def echo(listener):
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def answer(connection):
    while data := connection.recv(65536):
        connection.sendall(data)
    connection.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("tcp", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    args = parser.parse_args()
    web = ThreadingHTTPServer((args.host, args.port), Handler)
    tcp = socket.create_server((args.host, args.tcp))
    threading.Thread(target=echo, args=(tcp,), daemon=True).start()
    print(json.dumps([web.server_address[1], tcp.getsockname()[1]]), flush=True)
    web.serve_forever()


if __name__ == "__main__":
    main()
