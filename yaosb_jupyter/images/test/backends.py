"""A WebSocket echo and an endpoint that sends five events, each on a Unix socket."""

import asyncio
import contextlib

from websockets.asyncio.server import ServerConnection, unix_serve

DIRECTORY = "/tmp/yaosb-test"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
EVENTS = 5
PAUSE = 0.05


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


async def send_events(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        for number in range(EVENTS):
            writer.write(f"id: {number}\ndata: event-{number}\n\n".encode())
            await writer.drain()
            await asyncio.sleep(PAUSE)
    writer.close()


async def main() -> None:
    events = await asyncio.start_unix_server(send_events, f"{DIRECTORY}/events.sock")
    async with unix_serve(echo, f"{DIRECTORY}/echo.sock", max_size=None), events:
        await asyncio.Future()


if __name__ == "__main__":
    asyncio.run(main())
