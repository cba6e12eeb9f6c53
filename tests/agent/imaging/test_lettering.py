"""Which wishes ask for words in the picture, which words, and what counts as reading them."""

from __future__ import annotations

from tests.adapters.language import asked_lettering, reads_as, wants_lettering
from tests.support.cases import each_case

WANTED = [
    "a café poster with the headline “Slow mornings”",
    'Add the text "SALE" at the bottom',
    "a neon sign that says OPEN",
    'a shop window with a sign saying "Closed on Mondays"',
    "a wooden sign reading Welcome Home",
    "the text reads: Happy New Year",
    "write Happy Birthday on the cake",
    "A birthday card. Write Congratulations, Anna across the top",
    "a book cover with the title The Long Winter",
    "an infographic of the water cycle with labels",
    "a meme with a caption",
    "put our slogan under the logo",
    "a mug “Good Morning”",
    "a T-shirt that reads COFFEE FIRST",
    "a comic panel, the hero in a speech bubble says he is tired",
    "make the lettering larger",
    "change “SALE” to “SOLD OUT”",
    "replace the word 'Monday' with 'Friday'",
    "fix the typo on the banner",
    "an old bottle labelled Poison",
    "Poster, no people, with the title at the top",
    "no photo, just bold typography",
    "a wedding invitation with the names and the words 'Save the date'",
    "no text except the title",
    "a logo with the name Luna",
    "a Christmas card ‘Don’t open till the 24th’",
    "画一张海报，标题是“慢下来”",
    "招牌上写着“老张面馆”",
    "在图片顶部加上文字：夏日特卖",
    "一块木牌，上面写着欢迎回家",
    "给杯子印上“早安”字样",
    "贺卡上写上生日快乐",
    "T恤上印着 COFFEE",
    "一家有霓虹招牌的小店",
    "加几个字，写春风得意",
    "把“特价”改成“售罄”",
    "海报上写五个大字：恭喜发财啊",
    "石碑上刻着「静」",
    "门上贴着春联的四合院",
    "给这张图配上一句标语",
    "封面需要副标题",
    "不要人物，只要标题“秋”",
    "海报“夏日特卖”，红色背景",
]
NOT_WANTED = [
    "",
    "draw a red fox in the snow, watercolour",
    "put it into the context of a city",
    "a student with a textbook on the desk",
    "a rough texture of stone",
    "a portrait, no text",
    "without any text or watermark",
    "a landscape with no people, text or logos",
    "Please don't add any words to the picture.",
    "do not include a caption",
    "remove the text",
    "remove the word “SALE” from the poster",
    "a text-free background",
    "Avoid: text, letters, watermark",
    "a girl reading a book under a tree",
    "a poster of a girl reading a book",
    "an old man writing at a desk",
    "a ship heading north",
    "a stack of love letters on the table",
    "in other words, make it warmer",
    "a city in the style of “Blade Runner”",
    "a cat named “Tom”",
    "make it more 'premium'",
    "the “golden hour” look",
    'a frame of 24" x 36" on the wall',
    "the dogs' bowl and the cats' toys",
    "a stop sign in the rain",
    "a record label's office",
    "the heavyweight title holder in the ring",
    "a wordless children's book page",
    "the text should be removed",
    "photo of a king, avoid lettering",
    "画一只在雪地里的狐狸",
    "不要文字",
    "画面里不要出现任何文字或水印",
    "海边日落，没有文字",
    "无文字，极简风格",
    "去掉图里的文字",
    "把标题去掉",
    "埃及金字塔前的骆驼",
    "十字路口的雨夜",
    "数字艺术风格的山",
    "写实风格的人像特写",
    "一位在写字台前写作的老人",
    "孩子写着作业",
    "一道招牌菜",
    "“赛博朋克”风格的城市",
    "像《千与千寻》那样的街道",
    "一只叫“小白”的猫",
    "更“高级”一点",
    "别加标题",
]


def test_a_wish_for_words_in_the_picture_is_heard() -> None:
    assert [text for text in WANTED if not wants_lettering(text)] == []


def test_other_wishes_and_refusals_are_not() -> None:
    assert [text for text in NOT_WANTED if wants_lettering(text)] == []


def test_one_of_several_texts_is_enough() -> None:
    assert wants_lettering("a café poster", "A poster of a red cup. The headline reads “SLOW”.")
    assert not wants_lettering()


def test_the_words_asked_for_are_those_beside_a_word_that_asks() -> None:
    asked = [
        ("a café poster with the headline “Slow mornings”", ("Slow mornings",)),
        ('Bold serif lettering "SLOW MORNINGS" across the top, and a small line "since 1987"', ("SLOW MORNINGS",)),
        ("a banner, “GRAND OPENING” in gold letters", ("GRAND OPENING",)),
        ('three jars with the labels "Salt", "Pepper" and "Tea"', ("Salt", "Pepper", "Tea")),
        ("a sign that reads 'Don't feed the cats'", ("Don't feed the cats",)),
        ("change the word “SALE” to “SOLD OUT”", ("SOLD OUT",)),
        ("replace “Monday” with “Friday” on the sign", ("Friday",)),
        ("remove the word “SALE”", ()),
        ("the word “OPEN”, not “CLOSED”", ("OPEN",)),
        ('in the style of the film "Metropolis", with the title "DAWN"', ("DAWN",)),
        ("a cat named “Tom”", ()),
        ("a “steampunk” city", ()),
        ("a mug “Good Morning”", ()),
        ("the sign says “OPEN”. A second sign says “Open”.", ("OPEN",)),
        ("招牌上写着“老张面馆”", ("老张面馆",)),
        ("标题是「慢下来」，副标题『山居岁月』", ("慢下来", "山居岁月")),
        ("给杯子印上“早安”字样", ("早安",)),
        ("“恭喜发财”四个大字", ("恭喜发财",)),
        ("把“特价”改成“售罄”", ("售罄",)),
        ("“赛博朋克”风格的城市，招牌写着“夜”", ("夜",)),
        ("去掉文字“特价”", ()),
    ]
    assert {text: read for text, words in asked if (read := asked_lettering(text)) != words} == {}


def test_facts_in_a_prompt_ask_for_nothing() -> None:
    prompt = "a tower\n\n[FACTS]\n- The sign says “CLOSED” (a.example)\n[/FACTS]"
    assert not wants_lettering(prompt)
    assert asked_lettering(prompt) == ()


def test_words_are_read_whatever_their_case_width_and_lines() -> None:
    same = [
        ("Slow mornings", "SLOW\nMORNINGS"),
        ("SLOW MORNINGS", "Café Luna — slow mornings since 1987"),
        ("Slow mornings", "SLOW MOR-\nNINGS"),
        ("Slow mornings", "slowmornings"),
        ("Don't panic!", "DON’T PANIC"),
        ("Summer Sale 50% off", "SUMMER 50% OFF\nSALE"),
        ("ＯＰＥＮ", "open"),
        ("恭喜发财", "恭 喜\n发 财！"),
        ("老张面馆", "老张面馆 since 1990"),
        ("春风得意", "得意\n春风"),
        ("Café", "CAFÉ"),
        ("OPEN 24小时", "open24小时"),
    ]
    assert [(asked, read) for asked, read in same if not reads_as(asked, read)] == []


def test_other_letters_are_other_words() -> None:
    others = [
        ("Slow mornings", "SLOW MORNIGNS"),
        ("OPEN", "OPENN"),
        ("OPEN", "REOPEN"),
        ("OPEN", ""),
        ("夏日特卖", "夏日持卖"),
        ("恭喜发财", "恭喜發財"),
        ("Café", "CAFE"),
        ("very very good", "very good"),
        ("SALE 50%", "SALE 60%"),
    ]
    assert [(asked, read) for asked, read in others if reads_as(asked, read)] == []


@each_case(
    "piece",
    ["no a, ", "no a and ", "“", "'a", "不要", 'replace "x" ', "write a ", "no text, ", "无", "a or ", "remove "],
)
def test_a_long_text_made_to_be_slow_is_read_to_its_end(piece: str) -> None:
    # A pattern that tries every way would not come back from this.
    text = f"the sign says “OPEN”. {piece * 20_000}"
    assert wants_lettering(text)
    assert asked_lettering(text)[0] == "OPEN"
