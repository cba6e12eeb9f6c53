"""Text as names are compared in: small plain letters, simplified characters, words and where they stand."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from functools import cached_property

# The characters of the curated names, so that whoever writes traditional Chinese finds them too.
_SIMPLIFIED = str.maketrans(
    "亞來俠倫偵傢傳兒內別剋劇動卽歷唸喬噴國園圖報塊塗塢墻牆學宮實寫寶專對層屬帶幾廣錄雕後態戲摺據擬攝教數時曬書"
    "術東楊業極構樂標樣機歐殺氈氣測濕潑濛烏無燈爾獸現瑪產畢畫疊蒙禪禮積築簡紀紅紋納紙級紮統絲綉繡綠綫線綢維網彩緑縮"
    "織繪羅義玩聖聯脹膠臉興華蓋蘭藍藝蘇虛蝕蠟裏裡裝複復視觀計記設詩話誌諾譜貼質賬賽車軌軸輪遊運達遜邊針鉛鉤銀銅鋼鏡"
    "鐳鑲長門闇陽際險雙雜離電靜韋頓頭風飛飯飾馬駿體鳥鴉麗麵黃點齋齒龐",
    "亚来侠伦侦家传儿内别克剧动即历念乔喷国园图报块涂坞墙墙学宫实写宝专对层属带几广录雕后态戏折据拟摄教数时晒书"
    "术东杨业极构乐标样机欧杀毡气测湿泼蒙乌无灯尔兽现玛产毕画叠蒙禅礼积筑简纪红纹纳纸级扎统丝绣绣绿线线绸维网彩绿缩"
    "织绘罗义玩圣联胀胶脸兴华盖兰蓝艺苏虚蚀蜡里里装复复视观计记设诗话志诺谱贴质账赛车轨轴轮游运达逊边针铅钩银铜钢镜"
    "镭镶长门暗阳际险双杂离电静韦顿头风飞饭饰马骏体鸟鸦丽面黄点斋齿庞",
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_APOSTROPHES = re.compile("['\u2019\u02bc`]")
_TOKEN = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff]|[^\W_\u2e80-\u9fff\uf900-\ufaff]+")
_CLAUSE_END = re.compile(r"[,.;:!?()，。；：！？、（）\n]|\s[-–—]+\s|—")


def plain(text: str) -> str:
    """Return the text in small letters without accents and apostrophes, in simplified characters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", _APOSTROPHES.sub("", folded)))
    return unicodedata.normalize("NFC", bare).translate(_SIMPLIFIED)


class Words:
    """The words of a text, each ideograph one word, and the text without what stands between them."""

    def __init__(self, text: str) -> None:
        self.text = plain(text)
        found = list(_TOKEN.finditer(self.text))
        self.words = [match.group() for match in found]
        self.joined = "".join(self.words)
        self.starts = [0]
        for word in self.words:
            self.starts.append(self.starts[-1] + len(word))
        self._places = [match.span() for match in found]

    @cached_property
    def has_ideographs(self) -> bool:
        """Whether any word is an ideograph."""
        return any(is_ideograph(word) for word in self.words)

    @cached_property
    def clause_starts(self) -> list[int]:
        """The words that begin a clause."""
        return [0] + [
            number
            for number in range(1, len(self.words))
            if _CLAUSE_END.search(self.text, self._places[number - 1][1], self._places[number][0])
        ]

    def clause_start(self, word: int) -> int:
        """Return the word that begins the clause of this one."""
        starts = self.clause_starts
        return starts[bisect_left(starts, word + 1) - 1]

    def clause_end(self, word: int) -> int:
        """Return the word before which the clause of the word before this one ends."""
        starts = self.clause_starts
        number = bisect_left(starts, word)
        return starts[number] if number < len(starts) else len(self.words)

    def joined_between(self, first: int, end: int) -> str:
        """Return the words from the first to before the end, without what stands between them."""
        return self.joined[self.starts[first] : self.starts[end]]

    def word_at(self, offset: int) -> int | None:
        """Return the number of the word that begins at this place of `joined`, the number of words for its end."""
        number = bisect_left(self.starts, offset)
        return number if number < len(self.starts) and self.starts[number] == offset else None

    def said(self, first: int, end: int) -> str:
        """Return the words as they stand in the text, with what is between them."""
        return self.text[self._places[first][0] : self._places[end - 1][1]]


def is_ideograph(word: str) -> bool:
    """Return whether the word is a single ideograph or kana."""
    return "\u2e80" <= word[0] <= "\u9fff" or "\uf900" <= word[0] <= "\ufaff"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list that is written as one text."""
    return frozenset(text.split())
