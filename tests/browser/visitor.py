"""A person with a browser: signs in, looks at pages, and notices everything that a browser complains about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect

PASSWORD = "let me in 9"
PATIENCE = 30_000  # milliseconds for what the site does by itself, on a busy machine
REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`CSP violation: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""
expect.set_options(timeout=PATIENCE)


class Visitor:
    """One browser profile, signed in as `name` (nobody if empty); `page` is its first tab.

    `troubles` lists what went wrong in any tab: errors and warnings of the console, broken scripts, violations of the
    content security policy, and answers of the server that say it failed.
    """

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.address = address
        self.troubles: list[str] = []
        self.requested: list[str] = []
        self.context: BrowserContext = browser.new_context(base_url=address, **options)
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(REPORT_VIOLATIONS)
        self.context.on("page", self._watch)
        self.page: Page = self.context.new_page()

    def _watch(self, page: Page) -> None:
        def heard(message: Any) -> None:
            if message.type in {"error", "warning"}:
                self.troubles.append(f"{page.url}: {message.type}: {message.text}")

        page.on("console", heard)
        page.on("pageerror", lambda error: self.troubles.append(f"{page.url}: script broke: {error}"))
        page.on("request", lambda request: self.requested.append(request.url))
        page.on("response", lambda got: self.troubles.append(f"{got.url}: {got.status}") if got.status >= 500 else None)

    def sign_in(self, name: str, password: str = PASSWORD) -> "Visitor":
        self.page.goto("/accounts/login/")
        self.page.get_by_label("Username or email").or_(self.page.locator("[name=login]")).first.fill(name)
        self.page.locator("[name=password]").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.locator("header.bar")).to_contain_text(name)
        return self

    def comes_back(self, session: list[Any]) -> bool:
        """Take the cookies of an earlier browser; return whether they are still signed in, which saves the form."""
        if session:
            self.context.add_cookies(session)
            if self.context.request.get("/accounts/", max_redirects=0).status == 200:
                return True
            self.context.clear_cookies()
        return False

    def forget(self, *expected: str) -> None:
        """Drop troubles that a test has caused on purpose."""
        self.troubles = [trouble for trouble in self.troubles if not any(text in trouble for text in expected)]


@contextmanager
def visiting(browser: Browser, address: str, **options: Any) -> Iterator[Visitor]:
    """A visitor whose browser is closed at the end."""
    visitor = Visitor(browser, address, **options)
    try:
        yield visitor
    finally:
        visitor.context.close()
