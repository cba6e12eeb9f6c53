"""How surely a request names a style: its names found in it, whole or misspelt, and what stands around them.

A name is strict or loose. A strict one ("ukiyo-e", 浮世绘) means the style wherever it stands, unless the words around
it speak of a thing: a museum of Van Gogh's, an oil painting above the sofa. A loose one ("noir", 漫画) is also a word
for things, so it means the style only where the request makes that clear: alone, set off by a comma, beside a word
such as "style", after "as a" or 做成, or right before a creature ("manga cat", 漫画猫).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from typing import NamedTuple

from agent.library import MatchKind, MatchReason, Style

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


_PLURAL = 0.97
_LOOSE_AS_STYLE = 0.9
# A loose name that may be a thing, and a strict one that the words around it make a thing.
_AS_A_THING = 0.4
# A name inside a longer name of another style: "立体剪纸" is paper sculpture, not paper cutting.
_INSIDE_ANOTHER = 0.55
_PHRASES_FOUND = (0.0, 0.45, 0.7, 0.85)
_SHORTEST_SPLIT_NAME = 8
_SHORTEST_SPLIT_WORD = 3
_LONGEST_NAME_WORDS = 14
_SHORTEST_MISSPELT_WORD = 5
_SHORTEST_CORE = 3
# Endings that say "picture" rather than which: a wrong letter counts only in what stands before them.
_GENERIC_ENDINGS = (
    *("摄影", "海报", "插画", "设计", "风格", "艺术", "主义", "照片", "电影", "动画", "效果图", "封面", "图案", "漫画"),
    *("画", "风", "派", "图"),
)


class Naming(NamedTuple):
    """A style's name found in a request, from the first word to before the end."""

    similarity: float
    reason: MatchReason
    first: int
    end: int


class _Name(NamedTuple):
    style_id: str
    kind: MatchKind
    text: str
    words: Words
    is_loose: bool


class _Place(NamedTuple):
    name: _Name
    first: int
    end: int
    similarity: float


class StyleNames:
    """The names and phrases of some styles, ready to be found in requests; made once for a set of styles."""

    def __init__(self, styles: Iterable[Style]) -> None:
        self._names = [name for style in styles for name in _names_of(style)]
        self._phrases = [(style.id, phrase, Words(phrase)) for style in styles for phrase in style.phrases]
        self._by_letters: dict[str, list[_Name]] = defaultdict(list)
        self._by_first_word: dict[str, list[_Name]] = defaultdict(list)
        self._by_pattern: dict[str, list[_Name]] = defaultdict(list)
        self._joined_by_letter: dict[str, list[str]] = defaultdict(list)
        for name in self._names:
            self._add(name)
        self._spelling: dict[str, list[str]] = defaultdict(list)
        for word in {word for name in self._names for word in name.words.words if not is_ideograph(word)}:
            if len(word) >= _SHORTEST_MISSPELT_WORD:
                self._spelling[word[0]].append(word)

    def _add(self, name: _Name) -> None:
        joined, words = name.words.joined, name.words.words
        if not joined:
            return
        self._by_letters[joined].append(name)
        if name.is_loose:
            return
        if not name.words.has_ideographs:
            self._by_first_word[words[0]].append(name)
            if len(joined) >= _SHORTEST_SPLIT_NAME:
                self._joined_by_letter[joined[0]].append(joined)
        elif len(words) == len(joined) and _core_size(joined) >= _SHORTEST_CORE + (name.kind is MatchKind.ALIAS):
            for wrong in range(1, min(_core_size(joined), len(joined) - 1)):
                self._by_pattern[f"{joined[:wrong]}?{joined[wrong + 1 :]}"].append(name)

    def found_in(self, wish: Words, *, is_style: bool = False) -> dict[str, Naming]:
        """Return the best naming of each style by its id; with `is_style` no name can be a thing.

        What stands inside another style's longer name counts little, and so does a name that is denied or a thing.
        """
        places = [(place, _naming(wish, place, is_style=is_style)) for place in self._places(wish)]
        # "一盒彩色铅笔" holds a thing; the shorter name inside of it is no style either.
        things = [naming for _, naming in places if naming.similarity <= _AS_A_THING]
        best: dict[str, Naming] = {}
        for place, naming in places:
            if any(thing.first <= naming.first and naming.end <= thing.end for thing in things):
                naming = naming._replace(similarity=min(naming.similarity, _AS_A_THING))
            known = best.get(place.name.style_id)
            if known is None or _rank(naming) > _rank(known):
                best[place.name.style_id] = naming
        for style_id, naming in _by_phrases(self._phrases, wish):
            known = best.get(style_id)
            if known is None or _rank(naming) > _rank(known):
                best[style_id] = naming
        return {
            style_id: naming._replace(similarity=min(naming.similarity, _INSIDE_ANOTHER))
            if any(_is_inside(naming, other) for other in best.values())
            else naming
            for style_id, naming in best.items()
        }

    def _places(self, wish: Words) -> Iterator[_Place]:
        exact: set[str] = set()
        for place in self._whole(wish):
            exact.add(place.name.text)
            yield place
        for place in (*self._one_wrong_character(wish), *self._wrong_letters(wish), *self._wrongly_joined(wish)):
            if place.name.text not in exact:
                yield place

    def _whole(self, wish: Words) -> Iterator[_Place]:
        """Yield names that are said letter for letter, however they are spaced, in singular or plural."""
        for first, end, letters in _spans(wish):
            for name in self._by_letters.get(letters, ()):
                if _may_be_split(name.words, wish, first, end):
                    yield _Place(name, first, end, 1.0)
            for plural in ("s", "es"):
                if letters.endswith(plural):
                    for name in self._by_letters.get(letters[: -len(plural)], ()):
                        if _may_be_split(name.words, wish, first, end):
                            yield _Place(name, first, end, _PLURAL)

    def _one_wrong_character(self, wish: Words) -> Iterator[_Place]:
        """Yield names with one other character inside: at the ends it would make too many other words."""
        for first, end, letters in _spans(wish):
            if end - first == len(letters) >= _SHORTEST_CORE:
                for wrong in range(1, len(letters) - 1):
                    for name in self._by_pattern.get(f"{letters[:wrong]}?{letters[wrong + 1 :]}", ()):
                        if name.words.joined != letters:
                            yield _Place(name, first, end, 1 - 1 / len(letters))

    def _wrong_letters(self, wish: Words) -> Iterator[_Place]:
        """Yield names of which some words are misspelt, none of them as another ordinary word."""
        meant = [self._meant(word) for word in wish.words]
        for first, candidates in enumerate(meant):
            for word in candidates:
                for name in self._by_first_word.get(word, ()):
                    end = first + len(name.words.words)
                    wrong = _total_wrong(name.words.words, meant[first:end])
                    if wrong:
                        yield _Place(name, first, end, 1 - 1.5 * wrong / len(name.words.joined))

    def _wrongly_joined(self, wish: Words) -> Iterator[_Place]:
        """Yield names of two or more words that are run together or torn apart, with a letter wrong besides."""
        from rapidfuzz.distance import OSA

        for first, end, letters in _spans(wish, longest=4):
            said = wish.words[first:end]
            if len(letters) < _SHORTEST_SPLIT_NAME - 1 or (wish.has_ideographs and any(map(is_ideograph, said))):
                continue
            if len(said) == 1 and letters in ordinary_words():
                continue
            for joined in self._joined_by_letter.get(letters[0], ()):
                if abs(len(joined) - len(letters)) <= 1 and OSA.distance(joined, letters, score_cutoff=1) == 1:
                    for name in self._by_letters[joined]:
                        count = len(name.words.words)
                        is_torn_well = end - first < count or min(map(len, said)) >= _SHORTEST_SPLIT_WORD
                        if end - first != count and is_torn_well and not name.is_loose:
                            yield _Place(name, first, end, 1 - 1.5 / len(joined))

    def _meant(self, word: str) -> dict[str, int]:
        """Return the words of names that this one may stand for, each with how many letters are wrong."""
        from rapidfuzz.distance import OSA

        found = {word: 0}
        if len(word) < _SHORTEST_MISSPELT_WORD - 1 or is_ideograph(word) or word in ordinary_words():
            return found
        for known in self._spelling.get(word[0], ()):
            allowed = _allowed_edits(known)
            if abs(len(known) - len(word)) <= allowed:
                wrong = OSA.distance(known, word, score_cutoff=allowed)
                if 0 < wrong <= allowed:
                    found[known] = wrong
        return found


def _names_of(style: Style) -> Iterator[_Name]:
    kinds = [(MatchKind.NAME, name, False) for name in style.names]
    kinds += [(MatchKind.ALIAS, name, False) for name in (*style.aliases.en, *style.aliases.zh)]
    kinds += [(MatchKind.ALIAS, name, True) for name in style.loose]
    return (_Name(style.id, kind, text, Words(text), is_loose) for kind, text, is_loose in kinds)


def _spans(wish: Words, longest: int = _LONGEST_NAME_WORDS) -> Iterator[tuple[int, int, str]]:
    for first in range(len(wish.words)):
        letters = ""
        for end in range(first + 1, min(first + longest, len(wish.words)) + 1):
            letters += wish.words[end - 1]
            yield first, end, letters


def _rank(naming: Naming) -> tuple[float, int]:
    return naming.similarity, naming.end - naming.first


def _is_inside(inner: Naming, outer: Naming) -> bool:
    """Whether words that both names take belong to the other one: it is longer, or as long and a style's own name."""
    if inner.end <= outer.first or outer.end <= inner.first or inner.similarity > outer.similarity:
        return False
    shorter_by = (outer.end - outer.first) - (inner.end - inner.first)
    is_name = outer.reason.kind is MatchKind.NAME and inner.reason.kind is not MatchKind.NAME
    return shorter_by > 0 or (shorter_by == 0 and is_name)


def _naming(wish: Words, place: _Place, *, is_style: bool) -> Naming:
    name, first, end = place.name, place.first, place.end
    if _is_negated(wish, first):
        similarity = 0.0
    elif is_style:
        similarity = min(place.similarity, _LOOSE_AS_STYLE) if name.is_loose else place.similarity
    elif is_a_thing(wish, first, end):
        similarity = _AS_A_THING
    elif not name.is_loose:
        similarity = place.similarity
    else:
        similarity = _LOOSE_AS_STYLE if means_the_style(wish, first, end) else _AS_A_THING
    reason = MatchReason(kind=name.kind, text=name.text, words=wish.said(first, end))
    return Naming(similarity, reason, first, end)


def _by_phrases(phrases: Sequence[tuple[str, str, Words]], wish: Words) -> Iterator[tuple[str, Naming]]:
    """Take phrases for a sign of the style only where several of them are said: one alone is just a wish."""
    found: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for style_id, text, words in phrases:
        offset = wish.joined.find(words.joined)
        first = wish.word_at(offset) if offset >= 0 else None
        end = wish.word_at(offset + len(words.joined)) if offset >= 0 else None
        if first is not None and end is not None:
            found[style_id].append((text, first, end))
    for style_id, said in found.items():
        text, first, end = said[0]
        similarity = _PHRASES_FOUND[min(len(said), len(_PHRASES_FOUND) - 1)]
        reason = MatchReason(kind=MatchKind.PHRASE, text=text, words=wish.said(first, end))
        yield style_id, Naming(similarity, reason, first, end)


def _may_be_split(name: Words, wish: Words, first: int, end: int) -> bool:
    """Return whether these words can be the name: "how much a car costs" does not speak of Mucha."""
    if end - first <= len(name.words) or name.has_ideographs:
        return True
    parts = wish.words[first:end]
    return len(name.joined) >= _SHORTEST_SPLIT_NAME and min(map(len, parts)) >= _SHORTEST_SPLIT_WORD


def _total_wrong(words: Sequence[str], meant: Sequence[dict[str, int]]) -> int | None:
    if len(meant) != len(words):
        return None
    wrong = [candidates.get(word) for word, candidates in zip(words, meant, strict=True)]
    return None if None in wrong else sum(one for one in wrong if one is not None)


def _allowed_edits(word: str) -> int:
    return 0 if len(word) < _SHORTEST_MISSPELT_WORD else 1 if len(word) < 9 else 2


def _core_size(name: str) -> int:
    ending = next((ending for ending in _GENERIC_ENDINGS if name.endswith(ending)), "")
    return len(name) - len(ending)


@lru_cache(maxsize=1)
def ordinary_words() -> frozenset[str]:
    """Return the English words that are a letter or two from a word of a style's name."""
    folder = resources.files("agent.storage") / "style_data"
    return frozenset((folder / "ordinary_words.txt").read_text(encoding="utf-8").split())


# What stands around a name

_STYLE_WORDS = frozenset(
    {
        *("style", "styled", "styling", "aesthetic", "aesthetics", "look", "vibe", "vibes", "feel", "mood", "theme"),
        *("art", "artwork", "illustration", "painting", "drawing", "print", "poster", "portrait", "page", "panel"),
        *("render", "rendering", "animation", "inspired", "effect", "filter", "version", "like", "ish", "esque"),
    }
)
_STYLE_CHARACTERS = ("风", "画", "感", "质感", "效果", "滤镜", "派", "主义", "式", "版", "系", "手绘", "插图")
_STYLE_OF = frozenset({"style", "manner", "look", "spirit", "aesthetic", "vein"})
_ARTICLES = frozenset({"a", "an", "the"})
_NOT = frozenset(
    {
        *("not", "no", "without", "never", "avoid", "dont", "isnt", "instead", "than", "except", "nothing"),
        *("too", "less", "stop"),
    }
)
_BUT = frozenset({"but", "just", "rather"})
_ALL_BUT = frozenset({"anything", "everything", "any", "all"})
_NOT_CHARACTERS = (
    *("不要", "不是", "不用", "不想", "别用", "别画", "别做", "别是", "而非", "无需", "拒绝", "不像", "别像", "太像"),
    *("去掉", "去除", "别再"),
)
_NEGATION_REACH = 5
_NEGATION_REACH_ZH = 7

_DETERMINERS = word_set(
    """
    a an the my our your his her their this that two three four some one
    """
)
_FILL = _ARTICLES | word_set(
    """
    please pls in as all but just make it more something very totally of style want i would like maybe ok okay
    yes lets go with do use try and my this that into turn convert look can you we have id be being some pure
    thanks now change render redo give me to him her them photo picture image one only really full fully
    """
)
_TURNED_INTO = frozenset({"in", "as", "into", "like"})
_CHANGING = word_set(
    """
    make turn convert change render redo transform restyle draw paint do
    """
)
_QUALITIES = word_set(
    """
    black white pure full classic old modern dark bright fine rough simple quick
    """
)
# What a collage or a blueprint is of when it is no picture's style.
_NO_SUBJECTS = word_set(
    """
    success life career business future mind soul love time memories year plan mistakes photos pictures money
    """
)
_STANDS = word_set(
    """
    is are was were has hangs lies stands hung lay fell falls
    """
)

_HANDLING = word_set(
    """
    holding holds hold held reading reads read watching watches watch playing plays play played folding folds
    fold buying buys buy bought selling sells sell sold removing removes remove cleaning cleans clean washing
    admiring admires hanging hangs hung collecting collects collect wearing wears wear carrying carries
    dropped drops dropping visiting visits visit fixing fixes fix repairing repairs laid lays laying digging
    found finds studying sharpening browsing carving paints draws sews knits embroiders
    word words called named titled labelled labeled saying says
    """
)
_HANDLING_PAIRS = frozenset(
    {("looking", "at"), ("playing", "with"), ("drawing", "with"), ("painting", "with"), ("covered", "in")}
    | {("covered", "with"), ("full", "of"), ("stall", "with"), ("wall", "of")}
)
_THINGS_AFTER = word_set(
    """
    reader readers artist artists shop shops store stores museum museums exhibition exhibitions convention
    conventions fan fans club collection collector collectors shelf case cases sharpener box boxes set sets
    kit kits brush brushes supplies class classes lesson lessons workshop teacher student students course
    tools tool machine machines factory worker workers maker camera cameras heater lamp sensor display screen
    projector ticket tickets floor floors tile tiles pot pots vase vases brick bricks court courts roof soil
    pit mine dust stall festival fair market cathedral cathedrals church churches window windows palace
    palaces town bureaucracy empire ring rings watch knife spoon amount change difference effort furniture
    removal cleaner chips fish fillet beetle beetles feathers shells mat library librarian paper papers
    cabinet stand dealer publisher author writer movement glass bowl ball goblet chandelier tap sweater socks
    scarf gloves hat blanket cushion pillow tablecloth marathon
    """
)
_ABOUT_A_THING = frozenset({"at", "with", "on", "to", "for", "from"})
_NO_DOING = word_set(
    """
    painting drawing looking morning evening during something anything nothing building
    """
)
_PLACE_AFTER = re.compile(
    r"(?:(?:poster|print|painting|drawing|picture|toy)s?\s)?"
    r"(?:on|above|over|behind|beside|under|near|in|at|against)\s(?:the|a|an|my|his|her|our|their)\s(?:\w+\s){0,2}"
    r"(?:walls?|tables?|shelf|shelves|desks?|floor|sofa|couch|fridge|beds?|carpet|doors?|gallery|museum|room|kitchen"
    r"|bathroom|bedroom|hallway|mantel\w*|fireplace|windows?|shops?|store|mall|television|tv|tablet|phone|corner|drawer|ground"
    r"|rug|train|cinema|skull|bag|ear)\b"
)
_CREATURES = word_set(
    """
    cat cats kitten kittens dog dogs puppy puppies fox foxes wolf wolves bear bears rabbit bunny hare mouse
    hamster hedgehog squirrel owl owls bird birds crow raven eagle heron crane duck swan penguin chicken
    rooster cow pig sheep goat horse horses pony deer stag elephant giraffe lion lions tiger tigers leopard
    panda pandas koala monkey gorilla sloth raccoon otter seal whale whales dolphin shark octopus jellyfish
    turtle frog snake dragon dragons dinosaur unicorn phoenix mermaid fairy elf witch wizard knight knights
    king queen prince princess warrior samurai ninja pirate cowboy astronaut robot robots monster monsters
    ghost vampire angel devil alien hero heroine villain girl girls boy boys man woman men women child kid
    baby portrait selfie couple family grandma grandmother grandpa lady gentleman detective sailor soldier
    nurse chef dancer ballerina skateboarder guitarist city cityscape skyline landscape seascape village
    forest jungle mountain mountains island planet galaxy spaceship castle lighthouse scene world character
    avatar mascot hamsters foxglove tree trees flower flowers rose garden
    """
)
_CREATURES_ZH = re.compile(
    r"的?[小大老胖一]?[只个位头条]?[小大胖]?(?:猫|狗|犬|兔|狐|狼|熊|鼠|猪|牛|羊|马(?!路|克)|鹿|虎|狮|猴|鸡(?!蛋)|鸭|鹅|鸟|鹰|鹤|燕|鱼|鲸|鲨"
    r"|海豚|水母|章鱼|乌龟|青蛙|蛇|龙|恐龙|凤凰|麒麟|独角兽|企鹅|大象|长颈鹿|熊猫|松鼠|刺猬|狐狸|仓鼠|柴犬|柯基|机器人|宇航员"
    r"|女孩|男孩|女生|男生|少女|少年|女子|美女|帅哥|公主|王子|骑士|武士|忍者|女巫|巫师|人像|人物|头像|肖像|女神|仙女|精灵|怪兽"
    r"|怪物|幽灵|天使|小人|孩子|城市|小镇|村庄|森林|山水|风景|星球|飞船|城堡|灯塔|街景|世界)"
)
_NOT_BEFORE_CREATURES = frozenset({"blackandwhite", "monochrome", "黑白"})
_THINGS_AFTER_ZH = re.compile(
    r"店|展|馆|家(?!族|庭|园|具|乡)|书(?!法)|盒|砖|瓷砖|地砖|墙砖|机(?!器|械|甲)|工[人厂]|师|颜料|笔(?!下|触|法|墨|意)|课|班|社|迷|粉丝|爱好者|材料"
    r"|框|架|碗|瓶(?!身)|手帕|衣|鞋|沙发|家具|演员|杂志社|编辑|的?(?:裙|裤|布料|围巾|帽|毯|枕|杯)|撒|放在|放着|掉[在到了]|摆在|堆|挂在|散落|落在|投影|屏幕|摄像头|窗户上"
)
_HANDLING_ZH = re.compile(
    r"(?:[一两几三那这][盒支本套瓶管块]|挂着|挂了|挂|贴着|贴满|贴了|拿着|拿了|手里|捧着|翻着|看着|在看|看|玩着|在玩|玩|放着|放了|摆着|摆满|摆了|读着|读|买|卖"
    r"|清除|擦掉|擦|收藏|穿着|穿|绣着|绣|铺着|铺|打|沾满|削|坐在\S{1,4}边|在用|正用|正在用|着|[剪画写织绣折拼拍]了)(?:了|着|过|墙上的)?"
    r"(?:[一两几]?[幅张本块盒套个只副些支])?(?:很多|许多|漂亮的|旧|老|大|小)?$"
)
# What is to be written stands after a colon, in a clause of its own.
_LETTERING_ZH = re.compile(r"(?:名字|店名|标题|文字|字样|写上|写着|写|题字|叫做?|名为)是?$")
_SOMEWHERE_ZH = re.compile(r"(?:墙上|柜[里子]|馆里|展出|店里|桌上|手上)[^，]{0,6}$")
_CHANGED_TO_ZH = re.compile(
    r"(?:做成|改成|变成|换成|画成|变为|转成|转为|弄成|当成|P成|p成|做个|来个|来张|来一张|来一个|换个|整个|走)$"
)
_LIKE_ZH = re.compile(r"(?:像|好像|仿佛|如同)[^，]{0,8}$")
_ALIKE_ZH = re.compile(r"一样|那样|那种|似的|里|的感觉|的样子")
_FEELS_ZH = re.compile(r"(?:的|那种|那样的?|这种)?(?:感觉|色调|味道|氛围|光影|笔触|调子|画面感|意境|韵味|腔调)")
_BY_MEANS_ZH = re.compile(r"用$")
_MADE_ZH = re.compile(r"(?:画|做|绘|捏|来|表现|剪|拼|搭|织|缝|折|雕|刻|呈现|重)")
_FILL_ZH = re.compile(
    r"(?:做成|改成|变成|换成|画成|弄成|转成|变为|当成|一个|一张|一幅|来|个|张|幅|用|的|请|吧|呢|要|想要|想|我|把|它|照片|图片|图|这张|这个"
    r"|这|全部|改|换|整|搞|一点|更|再|点|试试|帮|给|可以|吗|成|为|效果|谢谢|好|行)*"
)


def is_a_thing(wish: Words, first: int, end: int) -> bool:
    """Whether the words around a name speak of a thing: of somebody holding, hanging or selling one, or of a shop."""
    after = wish.words[end : end + 1]
    if after and after[0] in _THINGS_AFTER:
        return True
    tail = "".join(wish.words[end : end + 4]) if wish.clause_end(end) > end else ""
    if tail and is_ideograph(tail[0]) and _THINGS_AFTER_ZH.match(tail):
        return True
    before = wish.words[wish.clause_start(first) : first]
    if before and before[-1] in _DETERMINERS and after and after[0] in _STANDS:
        return True
    if is_ideograph(wish.words[first]) and _LETTERING_ZH.search("".join(wish.words[max(0, first - 8) : first])):
        return True
    said_before = "".join(before[-12:])
    if is_ideograph(wish.words[first]) and (_HANDLING_ZH.search(said_before) or _SOMEWHERE_ZH.search(said_before)):
        return True
    named = [word for word in before[-4:] if word not in _DETERMINERS]
    near = [word for word in named if word not in _QUALITIES]
    if tuple(named[-2:]) in _HANDLING_PAIRS or tuple(near[-2:]) in _HANDLING_PAIRS:
        return True
    if near and (near[-1] in _HANDLING or _is_done_to_it(near)):
        return True
    place = " ".join(wish.words[end : min(end + 6, wish.clause_end(end))])
    return bool(before) and bool(_PLACE_AFTER.match(place))


def _is_done_to_it(near: Sequence[str]) -> bool:
    """Whether what comes before says that somebody is doing something to it ("peeling the sticker")."""
    verb = near[-2] if len(near) > 1 and near[-1] in _ABOUT_A_THING else near[-1]
    return verb.endswith("ing") and len(verb) > 5 and verb not in _NO_DOING


def means_the_style(wish: Words, first: int, end: int) -> bool:
    """Whether the words around a loose name make clear that the style is meant."""
    if _speaks_of_style(wish, first, end):
        return True
    start, stop = wish.clause_start(first), wish.clause_end(end)
    before, after = wish.words[start:first], wish.words[end:stop]
    if is_ideograph(wish.words[first]):
        return _means_the_style_in_chinese("".join(before), "".join(after), wish.joined_between(first, end))
    is_at_end = all(word in _FILL for word in after)
    if is_at_end and all(word in _FILL for word in before):
        return not before or before[-1] != "the"
    if is_at_end and before:
        lead = [word for word in before[-4:] if word not in _ARTICLES and word not in _QUALITIES]
        if lead and lead[-1] in _TURNED_INTO:
            return True
        if before[0] in _CHANGING and before[-1] not in _DETERMINERS:
            return True
    opening = all(word in _FILL or word in _CHANGING for word in before)
    if opening and after[:1] == ["of"] and after[1:]:
        return not _NO_SUBJECTS.intersection(after[1:3])
    is_before_creature = bool(after) and after[0] in _CREATURES
    return is_before_creature and wish.joined_between(first, end) not in _NOT_BEFORE_CREATURES


def _means_the_style_in_chinese(before: str, after: str, name: str) -> bool:
    if _FILL_ZH.fullmatch(before) and _FILL_ZH.fullmatch(after):
        return True
    if (_LIKE_ZH.search(before) and _ALIKE_ZH.match(after)) or _FEELS_ZH.match(after):
        return True
    if _CHANGED_TO_ZH.search(before) or (_BY_MEANS_ZH.search(before) and _MADE_ZH.match(after)):
        return True
    return name not in _NOT_BEFORE_CREATURES and bool(_CREATURES_ZH.match(after))


def _speaks_of_style(wish: Words, first: int, end: int) -> bool:
    rest = wish.words[end : end + 2]
    if rest and rest[0] in _STYLE_WORDS:
        return True
    if "".join(rest).startswith(_STYLE_CHARACTERS):
        return True
    before = [word for word in wish.words[max(0, first - 3) : first] if word not in _ARTICLES]
    return len(before) > 1 and before[-1] == "of" and before[-2] in _STYLE_OF


def _is_negated(wish: Words, first: int) -> bool:
    reach = _NEGATION_REACH_ZH if is_ideograph(wish.words[first]) else _NEGATION_REACH
    clause = max(wish.clause_start(first), first - reach)
    before = wish.words[clause:first]
    for number, word in reversed(list(enumerate(before))):
        if word in _BUT:
            return word == "but" and before[max(0, number - 1)] in _ALL_BUT
        if word in _NOT:
            return True
    return any(negation in "".join(before) for negation in _NOT_CHARACTERS)
