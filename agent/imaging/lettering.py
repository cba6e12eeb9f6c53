"""Whether a wish asks for words in the picture, which words exactly, and whether what a picture reads is them.

English and Chinese. Quoted words count as asked for only beside a word that says so ("a sign that reads “OPEN”"): a
name, a film or an ironic “look” in quotation marks is none.

And what else of a request can be looked for in a picture: each item stands, letter for letter, in the person's own
words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile

from agent.imaging.final_prompt import without_facts
from agent.pictures import AskedItem, AskedKind

# The patterns match a text in which every quotation is one sign, \ue000, or this one where it does not count.
DROPPED = "\ue001"
_ANY_QUOTE = "[\ue000\ue001]"
# An inch sign after a figure opens no quotation, an apostrophe inside a word closes none.
QUOTED = re.compile(
    r"“[^“”\n]{1,300}”|(?<![\d\w])\"[^\"\n]{1,300}\"|「[^「」\n]{1,300}」|『[^『』\n]{1,300}』|《[^《》\n]{1,300}》"
    r"|‘(?:[^‘’\n]|(?<=\w)’(?=\w)){1,300}’(?!\w)|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){1,300}'(?!\w)|«[^«»\n]{1,300}»"
)
SENTENCE_END = re.compile(r"[.!?;](?:\s|$)|[。！？；\n]")
_THING = (
    r"text(?!-(?:to|based)|\s+(?:prompts?|models?|files?|editor))|words?|wording|letters|lettering|letterforms?"
    r"|typograph(?:y|ic)|head-?lines?|titles?|sub-?titles?|captions?|slogans?|tag-?lines?|mottos?|labels?|inscriptions?"
    r"|signage|word-?marks?|watermarks?|quotes?|quotations?|speech (?:bubbles?|balloons?)|fonts?|monograms?|typos?"
    r"|spelling|calligraphy|letter\s+[a-z0-9](?!\w)"
)
_THING_ZH = (
    "文字|字样|字樣|标题|標題|副标题|标语|標語|口号|口號|招牌|字幕|标签|標籤|题词|题字|落款|水印|对话框|对话气泡|艺术字|文案"
    "|字体|字體|对联|春联|书法|汉字|字母|大字|铭文|署名|错别字|美术字"
)
_BEARER = (
    r"signs?|sign-?boards?|banners?|posters?|labels?|billboards?|boards?|shirts?|t-?shirts?|mugs?|cards?|plaques?"
    r"|plates?|screens?|neon|covers?|cakes?|ribbons?|flags?|notes?|stickers?|badges?|text|bubbles?|logos?|tattoos?"
    r"|placards?|stamps?|boxes|tombstones?|windows?|doors?|titles?|captions?|it|letters"
)
_ARTICLE_OR_OBJECT = r"an?|the|his|her|their|its|my|books?|newspapers?|magazines?|glasses|lamps?|corner|quietly|aloud"
# The word for lettering, or what makes a plain verb one: a sign that says, write … on.
CUE = re.compile(
    rf"\b(?:{_THING})\b|\b(?:{_BEARER})\s+(?:(?:that|which)\s+)?(?:clearly\s+)?(?:says?|saying|reads|spell(?:s|ing)?(?:\s+out)?)\b"
    rf"|\b(?:{_BEARER})\s+reading\b(?!\s+(?:{_ARTICLE_OR_OBJECT})\b)|\blabell?ed\b|\bcaptioned\b"
    r"|(?:^|[,.;:!?\n]\s*|\b(?:and|then|please|also|to|you|i want)\s+)(?:write|engrave|inscribe|spell\s+out)\s+"
    r"(?!(?:me|us|about)\b)[^.;!?\n]{1,60}?\b(?:on|across|over|under|above|below|beneath|onto|at the (?:top|bottom))\b"
    r"|\b(?:with|bearing|add|put|write|carrying|showing)\s+(?:(?:the|my|our|his|her|their|its)\s+)(?:\w+\s+)?name\b"
    rf"|{_THING_ZH}|写(?:着|上|有|了|出|道|明|个|一句|一行|几)|印(?:着|上|有)|刻(?:着|上|有)|绣(?:着|上|有)"
    r"|题(?:着|上)|标注|標注|(?:加|配|带|添)(?:上|点|个|几个|一行|些)?字(?!典)"
    r"|(?:[一两二三四五六七八九几]|\d+)个(?:大|红|金|小|黑|白)?字",
    re.IGNORECASE,
)
# What reads like one of them and is none.
NOT_LETTERING = re.compile(
    r"\b(?:in other words|in a word|in words alone|words? of mouth|(?:record|music|fashion|private|white) labels?"
    r"|(?:title|record) (?:character|role|holder)|(?:heavyweight|world|championship|league) titles?"
    r"|(?:love|old|sealed|unopened|handwritten|stack of|pile of|bundle of) letters|\w+-(?:free|less))\b"
    r"|招牌(?:菜|动作|笑容|微笑|表情|姿势|式)|书法家|(?:写|寫)着(?:作业|信|日记|书|字)|标题党|文字游戏|字母表情",
    re.IGNORECASE,
)
_NEAR_VERB = (
    r"says?|saying|reads?|reading|writ(?:e|es|ten|ing)|print(?:ed|s)?|spell(?:s|ed|ing|ed out)?|engraved?|inscribed?"
    r"|embroidered|carved|stencill?ed|emblazoned|lettered|captioned|labell?ed|title[ds]|displays?|displaying|logo|signs?"
    r"|banners?|billboards?|placards?|plaques?|name"
)
_NEAR_VERB_ZH = (
    "写|寫|印|刻|绣|题|标着|标上|加上|放上|配上|打上|改成|改为|换成|替换为|横幅|招牌|标牌|匾|牌子|牌匾|内容[为是]|名字"
)
CUE_BEFORE = re.compile(
    rf"(?:\b(?:{_THING}|{_NEAR_VERB})\b|{_THING_ZH}|{_NEAR_VERB_ZH})[^\ue000\ue001]{{0,30}}$"
    rf"|\b(?:{_THING}|{_NEAR_VERB})\b[^\ue000\ue001]{{0,30}}\ue001\s*(?:with|to|into|by|for)\s*(?:the\s+)?$",
    re.IGNORECASE,
)
CUE_AFTER = re.compile(
    r"\s*,?\s*(?:(?:is|are|should|be|in|as|the|a|an)\s+){0,4}(?:(?!(?:with|and|plus|then)\b)[\w-]+\s+){0,3}?(?:lettering|letters|text|type"
    r"|typography|font|head-?line|title|caption|slogan|tag-?line|label|script|calligraphy|written|printed|engraved"
    r"|embroidered|carved|inscribed|spelled|sign|banner|logo)\b"
    r"|\s*(?:的)?\s*(?:字样|字樣|文字|大字|标题|標題|标语|標語|招牌|横幅|艺术字|牌匾"
    r"|(?:这|那)?(?:[一两二三四五六七八九几]|\d+)?个(?:大|红|金|小|黑|白)?字)",
    re.IGNORECASE,
)
CONTINUES = re.compile(r"\s*[,，、/&]?\s*(?:(?:and|or|plus|then|followed by)\b|和|与|及|以及|或)?\s*", re.IGNORECASE)
_WORK = r"movie|film|book|novel|song|album|game|series|show|anime|manga|painting|artwork|photograph|photo|story|poem"
REFERENCE_BEFORE = re.compile(
    rf"(?:\b(?:style of|styles? like|like|inspired by|reminiscent of|based on|from|so-called|(?:the|this|that|a|an)\s+"
    rf"(?:\w+\s+)?(?:{_WORK})(?:\s+(?:called|named|titled|entitled))?)|(?<!sign )(?<!text )(?<!title )\b(?:called|named"
    rf"|nicknamed|known as|aka)|(?:名叫|叫做|叫作|名为|取名|称为|所谓的?|叫|风格[是为像]|像|类似|模仿|电影|小说|动画"
    rf"|游戏|歌曲|更|很|比较|有点|那种|这种))\s*(?:the\s+)?(?:{_WORK})?\s*$",
    re.IGNORECASE,
)
REFERENCE_AFTER = re.compile(
    r"\s*-?\s*(?:-?(?:style|esque|inspired|like)|look|vibe|feel(?:ing)?|aesthetic|effect|mood|atmosphere|movie|film)\b"
    r"|\s*(?:的)?\s*(?:风格|风|式|感|主题|系列|效果|氛围|元素|那样|一样|里的|中的)",
    re.IGNORECASE,
)
# What is taken out of a wish before it is read: words that shall not be there, and those that give way to others.
_FILL = (
    r"(?:any|the|all|of|this|that|these|those|its|other|additional|extra|more|visible|readable|legible|written|printed"
    r"|random|unwanted|garbled|fake|existing|old|on-screen|overlaid|kind|sort|form)"
)
_REFUSAL = (
    r"no|without|never|avoid(?:ing)?|free of|free from|devoid of|remov(?:e|ing)|delet(?:e|ing)|eras(?:e|ing)|omit"
    r"|exclud(?:e|ing)|drop|skip|get rid of|(?:(?:do|does|must|should)(?:\s+not|n['’]?t)|not)\s+"
    r"(?:add|include|put|write|want|need|use|show|have|render|contain|place)(?:\s+an?)?"
)
_AND = r"\s*(?:,|/|\bor\b|\bnor\b|\band\b)\s*(?:(?:or|and|nor)\s+)?"
_REFUSAL_ZH = (
    "不要|不需要|不用|不能|不得|不可|不想要|(?<![特分区个级性类离告])别(?![致墅人针名])|勿|禁止|避免|没有|沒有|无需|不含|不带|不加"
    "|不出现|不添加|去掉|去除|删掉|删除|移除|擦掉|抹掉|清除|消除"
)
_SIGNS_ZH = r"[^，。；！？,.;!?\n\ue000\ue001]"
REFUSED = re.compile(
    r"^[ \t]*(?:avoid|negative prompt|do not show|避免|不要出现|负面提示词)\s*[:：].*$"
    rf"|\b(?:{_REFUSAL})\s+(?:{_FILL}\s+){{0,3}}(?:(?:[\w'-]+\s+){{0,2}}[\w'-]+{_AND}(?:{_FILL}\s+){{0,2}}){{0,6}}?"
    rf"(?:{_THING})\b(?:{_AND}(?:{_FILL}\s+){{0,2}}(?:{_THING}|logos?|numbers?|signatures?)\b)*(?:\s*:?\s*{_ANY_QUOTE})?"
    rf"|\b(?:{_THING})\s+(?:(?:should|must|to|be|is|are)\s+){{0,2}}(?:removed|deleted|erased|gone)\b"
    rf"|(?:{_REFUSAL_ZH}){_SIGNS_ZH}{{0,8}}?(?:{_THING_ZH}|字)(?:(?:、|，|和|或|及|与)(?:任何)?(?:{_THING_ZH}))*"
    rf"(?:\s*[:：]?\s*{_ANY_QUOTE})?"
    rf"|[无無](?:任何|多余的?)?(?:{_THING_ZH}|字)(?:(?:、|和|或|及|与)(?:{_THING_ZH}))*"
    rf"|(?:{_THING_ZH})\s*(?:{_ANY_QUOTE})?\s*{_SIGNS_ZH}{{0,4}}(?:去掉|去除|删掉|删除|移除|擦掉|抹掉|清除)",
    re.IGNORECASE | re.MULTILINE,
)
REPLACED = re.compile(
    r"\b(?:replac(?:e|ing)|chang(?:e|ing)|turn|swap|correct|fix|instead of|rather than|not)\b"
    r"[^\ue000\ue001.;!?\n]{0,40}\ue000(?=[^\ue000\ue001.;!?\n]{0,30}?\b(?:with|to|into|by|for)\b)"
    r"|\b(?:instead of|rather than|not)\s+(?:the\s+)?(?:words?\s+|text\s+)?\ue000"
    r"|(?:把|将|將)[^\ue000\ue001，。；\n]{0,12}\ue000(?=[^\ue000\ue001，。；\n]{0,8}?(?:改成|改为|换成|换为|替换|变成))"
    r"|(?:而不是|而非|不是)\s*\ue000",
    re.IGNORECASE,
)


_MAX_CHARACTERS = 20_000
_NEAR_CHARACTERS = 60
_QUOTE = "\ue000"
_MARKS = (_QUOTE, DROPPED)
_TOKEN = re.compile(r"[\u2e80-\u2fff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W_]")
_IDEOGRAPH = re.compile(r"[\u2e80-\u2fff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def wants_lettering(*texts: str) -> bool:
    """Return whether any of the texts asks for words in the picture: quoted ones, a headline, a sign that says."""
    return any(_wants(text) for text in texts)


def asked_lettering(*texts: str) -> tuple[str, ...]:
    """Return the quoted words that shall stand in the picture, each once, in order."""
    found = [quote for text in texts for quote, _, is_asked in _quotes(_wish(text)) if is_asked]
    return tuple({"".join(_tokens(quote)): quote for quote in reversed(found) if _tokens(quote)}.values())[::-1]


def reads_as(asked: str, read: str) -> bool:
    """Return whether the words asked for stand in what was read.

    Case, width, punctuation, spaces and line breaks do not count; letters and accents do. Words that were read in
    another order are taken for a layout of several lines.
    """
    wanted, seen = _tokens(asked), _tokens(read)
    if not Counter(wanted) - Counter(seen):
        return True
    joined = "".join(wanted)

    def is_short(begun: str) -> bool:
        return len(begun) <= len(joined)

    return any(joined in takewhile(is_short, accumulate(seen[start:])) for start in range(len(seen)))


def _wants(text: str) -> bool:
    wish = _wish(text)
    if any(is_asked or _is_bare_lettering(quote, place, wish[0]) for quote, place, is_asked in _quotes(wish)):
        return True
    return CUE.search(NOT_LETTERING.sub(" ", wish[0])) is not None


def _wish(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with one sign for each quotation, without what is refused or replaced, and the quotations."""
    plain = without_facts(text[:_MAX_CHARACTERS].replace(_QUOTE, " ").replace(DROPPED, " "))
    quotes: list[str] = []

    def put(match: re.Match[str]) -> str:
        quotes.append(match.group(0))
        return f" {_QUOTE} "

    marked = QUOTED.sub(put, plain)
    marked = REPLACED.sub(lambda match: match.group(0).replace(_QUOTE, DROPPED), marked)
    refused = REFUSED.sub(lambda match: f" {DROPPED * sum(map(match.group(0).count, _MARKS))} ", marked)
    return refused, tuple(quotes)


def _quotes(wish: tuple[str, tuple[str, ...]]) -> Iterator[tuple[str, int, bool]]:
    """Yield each quotation that still stands: its words with their marks, its place, and whether it is asked for."""
    marked, quotes = wish
    places = [place for place, sign in enumerate(marked) if sign in _MARKS]
    is_asked, end = False, 0
    for quote, place in zip(quotes, places, strict=True):
        before = marked[max(0, place - _NEAR_CHARACTERS) : place]
        # In a list the word that asks stands before its first member only.
        is_next = bool(end) and CONTINUES.fullmatch(marked[end:place]) is not None
        is_asked = is_asked if is_next else _is_asked(before, marked[place + 1 :])
        end = place + 1
        if marked[place] == _QUOTE:
            yield quote[1:-1].strip(), place, is_asked


def _is_asked(before: str, after: str) -> bool:
    near = SENTENCE_END.split(before)[-1]
    then = SENTENCE_END.split(after[:_NEAR_CHARACTERS])[0].partition(_QUOTE)[0]
    if REFERENCE_AFTER.match(then):
        return False
    if CUE_AFTER.match(then):
        return True
    return REFERENCE_BEFORE.search(near) is None and CUE_BEFORE.search(near) is not None


def _is_bare_lettering(quote: str, place: int, marked: str) -> bool:
    """Return whether a quotation without any word for lettering still looks like it: a “Good Morning” mug."""
    before, after = marked[max(0, place - _NEAR_CHARACTERS) : place], marked[place + 1 : place + _NEAR_CHARACTERS]
    if REFERENCE_BEFORE.search(before) or REFERENCE_AFTER.match(after):
        return False
    is_ironic = quote.islower() and len(quote.split()) < 3
    return bool(_tokens(quote)) and not is_ironic


def _tokens(text: str) -> list[str]:
    """Return the words of the text in their plainest form; of a script without spaces each sign is one."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    tokens: list[str] = []
    end = -1
    for match in _TOKEN.finditer(plain):
        is_sign = _IDEOGRAPH.fullmatch(match.group(0)) is not None
        if is_sign or match.start() != end:
            tokens.append(match.group(0))
        else:
            tokens[-1] += match.group(0)
        end = -1 if is_sign else match.end()
    return tokens


MAX_ITEMS = 10
_LONGEST_ITEM = 160
_SPACES = re.compile(r"\s+")
_EDGES = " \t\n.,;:!?…'\"“”‘’「」『』()[]，。；：！？、（）"


def traceable(quote: str, texts: Iterable[str]) -> bool:
    """Return whether the quote stands in one of the texts; case, width, spaces and quotation marks do not count."""
    wanted = _plain(quote)
    return bool(wanted) and any(wanted in _plain(text) for text in texts)


def checklist_of(claimed: Iterable[AskedItem], texts: Sequence[str]) -> tuple[AskedItem, ...]:
    """Return what a picture is to be held against: what is `claimed` and stands in the person's `texts`, each once.

    `texts` are the person's messages, the newest first. Words that the newest one asks for as lettering are on the
    list in any case.
    """
    items: dict[str, AskedItem] = {}
    lettering = {_plain(words): words for words in asked_lettering(texts[0])} if texts else {}
    for item in claimed:
        quote = _SPACES.sub(" ", item.quote).strip(_EDGES)
        plain = _plain(quote)
        if plain in lettering:
            continue
        if len(quote) <= _LONGEST_ITEM and traceable(quote, texts):
            items.setdefault(plain, AskedItem(quote=quote, kind=item.kind))
    texts_asked = [AskedItem(quote=words, kind=AskedKind.TEXT) for words in lettering.values()]
    return (*texts_asked, *items.values())[:MAX_ITEMS]


def matching(quote: str, items: Sequence[AskedItem]) -> int | None:
    """Return the place of the item that the quote speaks of, None when it is none of them."""
    wanted = _plain(quote)
    same = [place for place, item in enumerate(items) if _plain(item.quote) == wanted]
    close = [place for place, item in enumerate(items) if wanted and _plain(item.quote) in wanted]
    return next(iter([*same, *close]), None)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _SPACES.sub(" ", folded.translate(_NO_QUOTES)).strip(_EDGES)


_NO_QUOTES = str.maketrans("", "", '"“”‘’「」『』')
