"""The page in a real Chromium, driven by Playwright: these tests run by name (make browser)."""
from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import Cli

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
"""A browser that calls nobody by itself, so that what is asked for is asked for by the page."""

WHERE = """name => {
  const item = page.view.items.get(page.graph.first(page.graph.names.indexOf(name))), r = $("canvas").getBoundingClientRect();
  return [r.left + page.x + item.x * page.scale, r.top + page.y + item.y * page.scale];
}"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The machine's Chromium, or the one that ``playwright install chromium`` brings."""
    from playwright.sync_api import sync_playwright
    found = next(filter(None, map(shutil.which, INSTALLED)), None)
    with sync_playwright() as player:
        # A container's root user has no sandbox to start in; the page is our own.
        started = player.chromium.launch(executable_path=found, args=QUIET, chromium_sandbox=False)
        yield started
        started.close()


@dataclass
class Shown:
    """A page that is open: its tab, its file, what it complained of and what it asked for."""

    tab: Page
    file: Path
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def value(self, script: str) -> Any:
        """What a JavaScript expression is now."""
        return self.tab.evaluate(script)

    def until(self, script: str) -> None:
        """Waits until a JavaScript expression is true: asked from outside, for the page's policy forbids it to evaluate texts by itself."""
        for _ in range(100):
            if self.value(script):
                return
            self.tab.wait_for_timeout(50)
        raise AssertionError(f"never true within 5 seconds: {script}")

    def place(self, name: str) -> tuple[float, float]:
        """Where in the window the drawn box of a node has its middle."""
        x, y = self.tab.evaluate(WHERE, name)
        return x, y

    def click(self, name: str, times: int = 1) -> None:
        """Clicks the drawn box of a node."""
        self.tab.mouse.click(*self.place(name), click_count=times)

    def details(self) -> str:
        told: str = self.tab.locator("#right").inner_text()
        return told

    def rows(self) -> list[str]:
        """The rows of the outline, their marks and figures left away."""
        return [row.split("  ")[0].strip() for row in self.tab.locator("#rows .row b").all_inner_texts()]


Open = Callable[..., Shown]


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path, cli: Cli) -> Iterator[Open]:
    """Writes the page of a text as a user would (``irscope show FILE -o page.html``) and opens it from the disk, without a network."""
    context = browser.new_context(offline=True, viewport={"width": 1400, "height": 900})

    def opened(text: str, *options: str, fragment: str = "", suffix: str = ".hlo") -> Shown:
        source, target = tmp_path / f"model{suffix}", tmp_path / "page.html"
        source.write_text(text)
        done = cli("show", source, "-o", target, *options)
        assert done.exit_code == 0, done.stderr
        shown = Shown(context.new_page(), target)
        shown.tab.on("console", lambda message: shown.complaints.append(message.text))
        shown.tab.on("pageerror", lambda error: shown.complaints.append(str(error)))
        shown.tab.on("request", lambda request: shown.requests.append(request.url))
        shown.tab.goto(target.as_uri() + fragment)
        shown.until("globalThis.irscopeReady !== undefined")
        return shown

    yield opened
    context.close()
