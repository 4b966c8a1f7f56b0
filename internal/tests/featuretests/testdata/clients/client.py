"""Asks by http.client what TestRealClients wants to know: client.py HTTP HTTPS http|https FILE."""
import http.client
import ssl
import sys

plain, secure, scheme, file = sys.argv[1:]
if scheme == "https":
    conn = http.client.HTTPSConnection(secure, context=ssl._create_unverified_context(), timeout=60)
else:
    conn = http.client.HTTPConnection(plain, timeout=60)


def ask(method, path, body=None, chunked=False):
    headers = {"Host": "a.example"}
    if chunked:
        headers["Transfer-Encoding"] = "chunked"
    conn.request(method, path, body, headers, encode_chunked=chunked)
    answer = conn.getresponse()
    return answer, answer.read()


def say(answer, text):
    print(answer.status, text.decode())


with open(file, "rb") as opened:
    content = opened.read()
for path in "/1", "/2", "/3":
    say(*ask("GET", path))
say(*ask("POST", "/known", content))
say(*ask("POST", "/chunked", (content[i:i + 10000] for i in range(0, len(content), 10000)), True))
answer, _ = ask("HEAD", "/head")
print(answer.status, "head")
answer, _ = ask("GET", "/redirect")
print(answer.status, answer.getheader("Location"))
answer, text = ask("GET", "/big")
print(answer.status, len(text), "bytes")
