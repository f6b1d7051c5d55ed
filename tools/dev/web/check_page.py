#!/usr/bin/env python3
"""Uses the page of a running `medusa serve` in headless Chromium, as a person would, and checks what it shows.

    apt-get install chromium && pip install playwright==1.56.0
    build/release/medusa serve --config configs/demo.yaml &
    tools/dev/web/check_page.py http://127.0.0.1:8080/ --pictures /tmp/page

Load, send, stream, replay with buttons and keys, stop, race, reload; on a desktop, in the dark and on a phone. Any
script error, any request to another host and any content wider than the window is a failure. --pictures keeps what
was seen; docs/images/tree.png is one of these.
"""
import argparse
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

WAIT = 120_000  # milliseconds for an answer on a slow machine
KINDS = [("desktop", 1280, 800, "light"), ("dark", 1280, 800, "dark"), ("phone", 390, 844, "light")]


def ask(page: Page, text: str, most: int = 96) -> None:
    if not page.locator("#settings[open]").count():
        page.click("#settings summary")
    page.fill("#max_tokens", str(most))
    page.click("#settings summary")
    page.fill("#prompt", text)
    page.press("#prompt", "Enter")


def wait_for_end(page: Page) -> None:
    page.wait_for_function("byId('send').textContent === 'Send' && chat.steps.length > 0", timeout=WAIT)


def check_replay(page: Page) -> None:
    steps = page.evaluate("chat.steps.length")
    assert page.evaluate("chat.steps.reduce((n, step) => n + step.emitted.length, 0)") >= steps
    assert f"step {steps} of {steps}" in page.evaluate("byId('step_text').value")
    page.focus("#tree")
    page.keyboard.press("ArrowLeft")
    assert f"step {steps - 1} of" in page.evaluate("byId('step_text').value")
    page.click("#forth")
    assert f"step {steps} of" in page.evaluate("byId('step_text').value")
    page.click("#play")
    page.wait_for_function(f"chat.playing === 0 && chat.shown === {steps - 1}", timeout=WAIT)


def check_stop(page: Page) -> None:
    page.click("#clear")
    ask(page, "Write a very long story.", 2000)
    page.wait_for_function("chat.steps.length > 2", timeout=WAIT)
    page.keyboard.press("Escape")
    page.wait_for_function("byId('send').textContent === 'Send'", timeout=5000)
    assert page.locator(".message.error").count() == 0
    page.click("#clear")
    page.evaluate("send('Why?'); chat.running.abort()")  # before the first token
    page.wait_for_function("byId('send').textContent === 'Send'", timeout=5000)
    assert page.evaluate("chat.messages.length") == 0
    assert page.locator(".message").count() == page.locator(".message.error").count() == 1, "a question that is forgotten"
    assert page.evaluate("byId('prompt').value") == "Why?"


def check_race(page: Page, picture) -> None:
    page.click("#race")
    page.wait_for_function("/times/.test(byId('race_result').textContent)", timeout=WAIT)
    picture("race")
    print("  race:", page.inner_text("#race_result"))
    assert page.inner_text("#plain_text") == page.inner_text("#fast_text"), "not the text of plain decoding"
    page.keyboard.press("Escape")


def check_kind(browser, url: str, kind: tuple, folder: Path | None) -> None:
    name, width, height, scheme = kind
    # Chromium's own tools evaluate text, which the page's policy forbids to everybody else.
    context = browser.new_context(bypass_csp=True, viewport={"width": width, "height": height}, color_scheme=scheme,
                                  has_touch=name == "phone")
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    own = urlsplit(url).netloc
    page.on("request", lambda request: faults.append(request.url)
            if urlsplit(request.url).scheme != "data" and urlsplit(request.url).netloc != own else None)

    def picture(what: str) -> None:
        if folder:
            page.screenshot(path=folder / f"{name}-{what}.png", full_page=name == "phone")

    page.goto(url)
    page.wait_for_selector("#drafter option", state="attached")
    ask(page, "Write the numbers from one to twenty as words, then write them again.")
    wait_for_end(page)
    check_replay(page)
    best = page.evaluate("chat.steps.reduce((best, step, i, all) => "
                         "step.emitted.length > all[best].emitted.length ? i : best, 0)")
    page.evaluate(f"showStep({best})")
    picture("tree")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name}: wider than the window"
    if name == "desktop":
        check_race(page, picture)
    before = page.locator(".message").count()
    page.reload()
    page.wait_for_selector("#drafter option", state="attached")
    assert page.locator(".message").count() == before, "the conversation is gone after a reload"
    check_stop(page)
    assert not faults, faults
    print(f"{name}: ok")
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8080/")
    parser.add_argument("--pictures", type=Path, help="folder for screenshots")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        for kind in KINDS:
            check_kind(browser, options.url, kind, options.pictures)
        browser.close()


if __name__ == "__main__":
    main()
