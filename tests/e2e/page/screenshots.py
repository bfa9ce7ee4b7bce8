#!/usr/bin/env python3
"""Pictures of the chat page, to be looked at:  screenshots.py [FOLDER]   (out/screenshots)"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests"), str(Path(__file__).parent)]

from chat_page import CODE_ANSWER, ask, send  # noqa: E402
from harness.browser import Browser  # noqa: E402
from harness.script import says, script  # noqa: E402
from harness.server import Server, replay_command  # noqa: E402

PIECES = [CODE_ANSWER[i : i + 4] for i in range(0, len(CODE_ANSWER), 4)]
SLOW = script(
    says(*PIECES[:140], *["."] * 3000, when="Slowly", delay_ms=4),
    says(*PIECES, when="palindrome"),
    says("A haiku has three lines:\n\n*old pond\na frog leaps in\nsound of water*\n", when="haiku"),
    says("ok"),
)


def take(page, folder, name):
    page.browser.pump(0.2)
    page.screenshot(folder / f"{name}.png")


def wide_pictures(browser, server, folder, dark):
    suffix = "-dark" if dark else ""
    page = browser.new_page(server.url + "/", dark=dark)
    take(page, folder, "first-view" + suffix)
    ask(page, "What is a haiku?")
    page.click("#new-chat")
    ask(page, "Find the longest palindrome in a string, please.")
    take(page, folder, "answer" + suffix)
    page.eval("document.getElementById('log').scrollTop = 0")
    take(page, folder, "answer-top" + suffix)
    page.click("#open-settings")
    take(page, folder, "settings" + suffix)
    page.key("Escape")
    page.click("#open-help")
    take(page, folder, "help" + suffix)
    page.key("Escape")
    page.click("#chat-list .current .more")
    take(page, folder, "menu" + suffix)
    page.close()


def streaming_picture(browser, server, folder):
    page = browser.new_page(server.url + "/")
    send(page, "Slowly: find the longest palindrome in a string.")
    page.until("document.querySelector('.prose pre') && document.querySelector('.prose pre').textContent.length > 250")
    take(page, folder, "streaming")
    page.close()


def phone_pictures(browser, server, folder):
    page = browser.new_page(server.url + "/", width=360, height=640)
    take(page, folder, "phone-first-view")
    ask(page, "Find the longest palindrome in a string, please.")
    take(page, folder, "phone-answer")
    page.eval("document.getElementById('log').scrollTop = 150")
    take(page, folder, "phone-code")
    page.click("#open-drawer")
    take(page, folder, "phone-chats")
    page.click("#open-settings")
    take(page, folder, "phone-settings")
    page.close()


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "out/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write(SLOW)
        file.flush()
        server = Server(replay_command(file.name))
        browser = Browser()
        try:
            for dark in (False, True):
                wide_pictures(browser, server, folder, dark)
            streaming_picture(browser, server, folder)
            phone_pictures(browser, server, folder)
        finally:
            browser.close()
            server.stop()
            server.close()
    print("\n".join(sorted(str(path) for path in folder.glob("*.png"))))


if __name__ == "__main__":
    main()
