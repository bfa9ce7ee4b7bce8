"""A browser for the tests of the chat page. A test that leaves complaints of the browser behind has failed."""

import pytest

from harness.browser import Browser


@pytest.fixture(scope="session")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def open_page(browser):
    """open_page(server, **options): the chat page of a server, with nothing stored; url=False: not gone to yet."""
    pages = []

    def opened(server, url=True, **options):
        pages.append(browser.new_page(server.url + "/" if url else None, **options))
        pages[-1].origin = server.url
        pages[-1].only_once = bool({"fresh", "beside"} & set(options))
        return pages[-1]

    yield opened
    for page in reversed(pages):
        complaints = page.complaints
        strangers = [r["url"] for r in page.requests if not r["url"].startswith((page.origin + "/", "blob:" + page.origin, "data:"))]
        page.close() if page.only_once else page.give_back()
        assert complaints == [], "\n".join(complaints)
        assert strangers == []
