"""What the headers of every answer say, and what its page leaves out, so that nothing is run that a text brought in."""

from html.parser import HTMLParser


def check(response, name=""):
    policy = response.headers["Content-Security-Policy"]
    assert "unsafe-inline" not in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["X-Frame-Options"] == "DENY"
    assert "no-store" in response.headers["Cache-Control"]
    if "text/html" in response.headers["Content-Type"]:
        text = b"".join(response) if response.streaming else response.content
        inline_free(text.decode(), name)


def check_cookies(response, name=""):
    """`__Host-` holds only for a secure cookie of the whole host; browsers drop any other of that name."""
    for cookie in response.cookies.values():
        assert cookie.key.startswith("__Host-"), f"{name} sets {cookie.key}"
        assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", ""), name


def inline_free(html, name):
    """No inline script, style or handler: the policy would block them, and somebody would miss them."""

    class Check(HTMLParser):
        def handle_starttag(self, tag, attrs):
            attributes = dict(attrs)
            data_block = tag == "script" and attributes.get("type") == "application/json"
            assert tag != "style", f"{name}: inline style"
            assert tag != "script" or "src" in attributes or data_block, f"{name}: inline script"
            assert "style" not in attributes, f"{name}: style attribute on {tag}"
            handlers = [a for a in attributes if a.startswith(("on", "hx-on", "hx-vals-js"))]
            assert not handlers, f"{name}: handler {handlers} on {tag}"
            assert not any((value or "").startswith(("js:", "javascript:")) for value in attributes.values()), name

    Check().feed(html)
