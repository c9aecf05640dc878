#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serves the file `weights` of the working folder on 127.0.0.1, well and badly, for downloads_test.sh.

  download_server.py PORT_FILE LOG      writes its port into PORT_FILE and a line per request into LOG: METHOD PATH RANGE IF-RANGE
"""
import http.server
import os
import sys
import time

DATA = open("weights", "rb").read()
broken_off = set()  # paths whose first answer was broken off


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def redirect(self, to):
        self.send_response(302)
        self.send_header("Location", to)
        self.send_header("Content-Length", "9")
        self.end_headers()
        self.wfile.write(b"elsewhere")

    def refuse(self, status, content_range=""):
        body = b"no such thing here"
        self.send_response(status)
        if content_range:
            self.send_header("Content-Range", content_range)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def page(self):
        body = b"<html>Please log in</html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def slowly(self):
        """Two thirds at once, the rest after `go` exists."""
        self.send_response(200)
        self.send_header("ETag", '"v1"')
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()
        self.wfile.write(DATA[:len(DATA) * 2 // 3])
        self.wfile.flush()
        for _ in range(600):
            if os.path.exists("go"):
                break
            time.sleep(0.1)
        self.wfile.write(DATA[len(DATA) * 2 // 3:])

    def send(self, data, etag, ranges=True, length=True, most=None, pretend=None, shift=0):
        """`most`: so many bytes before the connection ends; `pretend`: another length than the true one; `shift`: of a range."""
        begin = 0
        asked = self.headers.get("Range", "")
        if ranges and asked.startswith("bytes=") and self.headers.get("If-Range", etag) == etag:
            begin = int(asked[len("bytes="):].split("-")[0])
        if begin >= len(data) > 0:
            return self.refuse(416, f"bytes */{len(data)}")
        self.send_response(206 if begin else 200)
        if etag:
            self.send_header("ETag", etag)
        if begin:
            self.send_header("Content-Range", f"bytes {begin + shift}-{len(data) - 1}/{len(data)}")
        if length:
            self.send_header("Content-Length", str(pretend or len(data) - begin))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data[begin:][:most])
        if most is not None or pretend or not length:
            self.close_connection = True

    def send_in_chunks(self, begin, end):
        """The rest from `begin` on, of unknown length, of which no more than the bytes before `end` come."""
        body = DATA[begin:end]
        self.send_response(206)
        self.send_header("ETag", '"v1"')
        self.send_header("Content-Range", f"bytes {begin}-{len(DATA) - 1}/{len(DATA)}")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n")

    def do_GET(self):
        path = self.path.split("?")[0]
        with open(sys.argv[2], "a") as log:
            print(self.command, self.path, self.headers.get("Range", "-"), self.headers.get("If-Range", "-"), file=log)
        first = path not in broken_off
        if path.endswith("/good.safetensors"):
            return self.send(DATA, '"v1"')
        if path.startswith("/named/"):
            return self.send(open("first.other" if "first" in path else "second.other", "rb").read(), '"v1"')
        if path == "/half.safetensors":  # a part that nobody asked for
            self.send_response(206)
            self.send_header("Content-Range", f"bytes 0-{len(DATA) // 2 - 1}/{len(DATA)}")
            self.send_header("Content-Length", str(len(DATA) // 2))
            self.end_headers()
            self.wfile.write(DATA[:len(DATA) // 2])
            return None
        if path == "/several/net.safetensors.index.json":
            return self.send(open("index", "rb").read(), '"v1"')
        if path == "/redirect.safetensors":
            return self.redirect("/folder/good.safetensors")
        if path == "/loop":
            return self.redirect("/loop")
        if path == "/away":
            return self.redirect("http://192.0.2.1/weights")  # an address of documentation (RFC 5737)
        if path == "/file":
            return self.redirect("file:///etc/passwd")
        if path == "/once.safetensors":  # broken off once
            broken_off.add(path)
            return self.send(DATA, '"v1"', most=len(DATA) // 2 if first else None)
        if path == "/always.safetensors":
            return self.send(DATA, '"v1"', most=10)
        if path == "/changed.safetensors":  # broken off, then another version
            broken_off.add(path)
            return self.send(b"old" + DATA[3:], '"v0"', most=20) if first else self.send(DATA, '"v1"')
        if path == "/plain.safetensors":  # neither ETag nor ranges
            broken_off.add(path)
            return self.send(DATA, "", ranges=False, most=20 if first else None)
        if path == "/never.safetensors":  # neither ETag nor ranges, and never whole
            return self.send(DATA, "", ranges=False, most=20)
        if path == "/chunks.safetensors":  # broken off, then not the whole rest, then the rest
            broken_off.add(path)
            begin = int(self.headers.get("Range", "bytes=0-")[len("bytes="):-1])
            return self.send(DATA, '"v1"', most=20) if first else self.send_in_chunks(begin, 30 if begin == 20 else None)
        if path == "/shifted.safetensors":  # another range than the one asked for
            broken_off.add(path)
            return self.send(DATA, '"v1"', most=20 if first else None, shift=0 if first else 5)
        if path.startswith("/slow") and not self.headers.get("Range"):
            return self.slowly()
        if path.startswith("/slow") or path == "/complete.safetensors":
            return self.send(DATA, '"v1"')
        if path == "/shorter.safetensors":
            return self.send(DATA, '"v1"')
        if path == "/strange.safetensors":  # an ETag that is not ASCII, as Latin-1
            return self.send(DATA, '"\xff\xfe"')
        if path == "/junk.safetensors":
            return self.send(b"not a file of weights", '"v1"')
        if path == "/page.safetensors":
            return self.page()
        if path == "/large.safetensors":
            return self.send(DATA, '"v1"', pretend=10**12)
        if path == "/endless.safetensors":
            return self.send(DATA * 1000, '"v1"', length=False)
        return self.refuse(403 if path == "/closed" else 404)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
