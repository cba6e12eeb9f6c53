"""Reading a page of the web: fetched under guard, and taken apart."""

from __future__ import annotations

from agent.fetching.extraction import PageExtraction, ReadPage
from agent.fetching.fetcher import Fetcher


class PageReader:
    """Reads pages for one studio."""

    def __init__(self, fetcher: Fetcher | None = None, extraction: PageExtraction | None = None) -> None:
        self._fetcher = fetcher or Fetcher()
        self._extraction = extraction or PageExtraction()

    async def read(self, url: str) -> ReadPage:
        """Return what the page at an address says.

        Raises ToolArgumentError when the address may not be asked for or the page cannot be read, and NetworkFailure
        when it is out of reach; the sentence holds no word of the page.
        """
        return await self._extraction.read(await self._fetcher.fetch(url))

    async def aclose(self) -> None:
        """Close every connection."""
        await self._fetcher.aclose()
