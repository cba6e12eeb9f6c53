"""Whether words ask to change a part of a picture that they only point at: "change this part", 把这里改成红色, or
speak of a mask: "fill the mask", 只改涂抹的地方.

Nothing can be pointed at in words alone, so such a wish needs a mask or a name. An ordinary wish must never be held
up: every clause of the message has to be known as pointing, or as saying nothing of its own, before it counts. What
speaks of a mask counts wherever it stands, because nothing else in the message can take the mask's place.
"""

from __future__ import annotations

import re
import unicodedata

from agent.pictures import handles_in

_MOST_CHARACTERS = 160

# English

_PICTURE = r"(?:picture|image|photo(?:graph)?|pic|drawing|sketch|painting|canvas|illustration|shot|render)"
_LEAD = (
    r"(?:(?:please|pls|plz|hey|hi|hello|ok(?:ay)?|now|then|and|also|but|so|just|well|hmm+|no|yes|sorry|can you|can we|"
    r"could you|could we|would you|will you|let'?s|i'd like(?: you)? to|i would like(?: you)? to|i want(?: you)? to|"
    r"i need(?: you)? to|try to|help me(?: to)?|maybe|perhaps|instead|kindly|only|actually|first)\s+)*"
)
_THIS = r"(?:this|that|these|those)(?: (?:one|little|small|tiny|big|whole|entire|specific|particular|certain))?"
_PART = rf"(?:{_THIS} (?:parts?|areas?|regions?|sections?|bits?|portions?)(?![-\w])|the (?:part|area|region)$)"
_POINT = rf"(?:{_PART}|(?:right |over |just )?here(?![-\w]))"
_WHOLE = rf"(?: (?:of|in|on) (?:it|this|the {_PICTURE}|this {_PICTURE}))?"
_CHANGE = (
    r"(?:change|fix|edit|modify|adjust|alter|correct|repair|repaint|redraw|redo|rework|retouch|re-?colou?r|colou?r|"
    r"paint|tint|brighten|darken|lighten|blur|sharpen|smooth(?: out)?|soften|remove|delete|erase|clean(?: up)?|"
    r"touch up|improve|enhance|replace|swap|fill(?: in)?|cut out|get rid of|enlarge|shrink|restore|transform|convert|"
    r"do something (?:about|with)|work on|regenerate)"
)
_COLOUR = (
    r"(?:(?:light|dark|bright|deep|pale) )?(?:red|green|blue|yellow|orange|purple|violet|pink|brown|black|white|"
    r"gr[ae]y|gold(?:en)?|silver|teal|turquoise|cyan|magenta|beige)(?:dish|ish)?"
)
_COMPARED = r"(?:brighter|darker|lighter|bigger|smaller|larger|sharper|softer|smoother|warmer|cooler|redder|bluer)"
# What makes the words a name of the part, or a wish for the whole scene.
_NAMING_WORDS = (
    r"(?:of|in|on|at|where|which|who|whose|around|near|next|beside|under|above|below|behind|between|left|right|top|"
    r"bottom|header|footer|corner)\b"
)
_NAMING = rf"(?!.*\b{_NAMING_WORDS})"
_SCENE_EN = re.compile(
    r"\b(?:winter|summer|spring|autumn|night(?:time)?|day(?:time)?|dusk|dawn|evening|morning|sunset|sunrise|snow\w*|"
    r"rain\w*|fog\w*|storm\w*|style|landscape|scene|weather)\b"
)
_VALUE = rf"{_NAMING}[\w'%#-]+(?: [\w'%#-]+){{0,9}}"
# Straight after "this area" a second noun would make it the name of a thing ("this area rug red").
_LOOK = (
    rf"(?:{_COLOUR}|{_COMPARED}|[\w'-]+|(?:more|less|much|very|slightly|a|an|as|so|too|look|like|into|to|be|become|"
    rf"appear|have) {_VALUE})(?: (?:please|again|too|now|instead))*"
)
_AFTER = (
    r"(?: (?:to|into|with|for me|please|thanks|again|too|now|first|only|completely|entirely|slightly|a bit|a little|"
    rf"more|less|instead|so that)\b(?:{_NAMING}(?: [\w'%#-]+){{0,10}})?)?"
)
_ATTRIBUTE = (
    r"(?:(?:the )?(?:colou?rs?|light(?:ing)?|brightness|contrast|texture|details?|tones?|shade|look) (?:of |in |at )?)?"
)
_POINTING_EN = re.compile(
    rf"{_LEAD}(?:"
    rf"{_CHANGE} {_ATTRIBUTE}{_POINT}{_WHOLE}{_AFTER}"
    rf"|(?:make|turn|set|get|paint|colou?r|tint) (?:it |the colou?rs? )?{_POINT}{_WHOLE} {_LOOK}"
    rf"|(?:make|turn|paint|colou?r) it (?:{_COLOUR}|{_COMPARED})(?: please)? {_POINT}(?: please)?"
    rf"|(?:change|fix|edit|alter|modify|correct) (?:it|something|this|that)(?: to {_COLOUR})? {_POINT}(?: please)?"
    rf"|{_POINT}{_WHOLE} (?:should|must|needs? to|has to|have to|ought to) (?!not|never|stay|remain|be (?:kept|called))"
    rf"{_VALUE}"
    rf"|i(?: want|'d like| would like| need) {_PART}{_WHOLE} {_LOOK}"
    rf"|(?:add|put|place|insert)(?: (?!{_NAMING_WORDS})[\w'-]+){{1,8}} "
    rf"(?:right here|(?:in|at|on|to|into|inside|within) {_THIS} (?:part|area|region|section|spot){_WHOLE})(?: please)?"
    r")"
)
# "this part of the sky": half a name, enough where there is only one picture it can be in.
_HALF_NAMED_EN = re.compile(
    rf"{_LEAD}{_CHANGE} {_ATTRIBUTE}{_THIS} (?:part|area|region|section|bit|portion) "
    rf"(?:of|in) (?:the|his|her|their|its) [\w'-]+(?: [\w'-]+)?{_AFTER}"
)
_COMPLAINT_EN = re.compile(rf"{_LEAD}{_POINT}{_WHOLE} (?:is|are|isn'?t|looks?|seems?|feels?|doesn'?t look) {_VALUE}")
_ANY_CHANGE_EN = re.compile(
    rf"{_LEAD}(?:(?:change|fix|repair|redo|correct|improve) (?:it|this|that)(?: to {_VALUE})?|make it {_VALUE})"
)
_NOTHING_EN = re.compile(
    r"(?:(?:please|thanks|thank you|hi|hello|hey|ok(?:ay)?|sorry|no|yes|well|hmm+)\s*)+"
    r"|(?:and |but )?(?:keep|leave) (?:the rest|everything else|all else|the others?)(?: (?:as (?:it is|is|they are)|"
    r"unchanged|the same|alone|untouched))?|(?:and |but )?nothing else|the rest (?:stays?|as is)(?: the same)?"
)
_NAMED_PICTURE_EN = re.compile(
    r"\b(?:last|latest|newest|previous|first|second|third|fourth|other|original|final|current|most recent|earlier) "
    rf"(?:\w+ )?(?:{_PICTURE}|one|version|variant|upload|result)\b"
    rf"|\b(?:{_PICTURE}|version|variant|number|no\.) ?#?\d+\b"
    rf"|\bthe {_PICTURE} (?:of|with|from|showing|above|before|i|you|we)\b"
    rf"|\bmy (?:\w+ )?(?:{_PICTURE}|upload|selfie)\b"
    rf"|\b(?:that|the(?: [\w'-]+){{1,3}}) {_PICTURE}\b|\bthe (?:original|upload)\b"
)

# Chinese

_LEAD_ZH = (
    "(?:请你?|麻烦你?|帮我|帮忙|帮|给我|能不能|能否|可不可以|可以|可否|能|我想要?|我要|我希望|希望|想要?|那么|然后|再|还有|"
    "另外|现在|好的?|嗯+|就|只|只要|你|来|不对|先|顺便)*"
)
_KIND_ZH = "(?:部分|区域|地方|位置)"
_POINT_ZH = f"(?:这|那|此)(?:里|儿|边|处|块儿?(?:{_KIND_ZH})?|一块(?:{_KIND_ZH})?|一处|(?:一?[个片])?{_KIND_ZH})"
_WHOLE_ZH = "(?:(?:这|该|此)?[张幅]?(?:图片|图像|图|照片|画面|画)(?:里面|上面|里|上|中)?的?)?"
_ATTRIBUTE_ZH = "(?:的?(?:颜色|色彩|色调|亮度|光线|细节|内容|效果|质感))?"
_ADVERB_ZH = (
    "(?:都|也|再|就|全部|全|要|想|需要|得|可不可以|能不能|可以|能|帮我|请|给我|稍微|稍|重新|应该|最好|还是|先|统统)*"
)
_VERB_ZH = (
    "(?:改(?![动造进编])|换|变|调|弄|搞|涂|染|处理|去掉|去除|删|移除|抹|擦|消除|替换|重画|重做|更换|编辑|优化|美化|润色|放大|缩小|模糊|虚化|"
    "提亮|加亮|压暗|加深|上色|画成|画得|填充|填成|修(?=一下|下|改|复|好|掉|正|饰|一修|$)|画(?=一下|一遍|$))"
)
_SHADE_ZH = "(?:红|蓝|绿|黄|黑|白|紫|橙|粉|灰|棕|金|银|亮|暗|深|浅|大|小|清楚|清晰|柔和|鲜艳|好看)"
_END_ZH = "(?:吧|吗|呢|啊|呀|哦|了|谢谢|好吗|可以吗|行吗)*"
_POINTING_ZH = re.compile(
    f"{_LEAD_ZH}(?:"
    f"(?:把|将|让|使|对|给)?{_WHOLE_ZH}{_POINT_ZH}{_ATTRIBUTE_ZH}{_ADVERB_ZH}{_VERB_ZH}.{{0,16}}"
    f"|(?:把|将|让|使)?{_WHOLE_ZH}{_POINT_ZH}{_ATTRIBUTE_ZH}{_ADVERB_ZH}(?:是|成|更)*{_SHADE_ZH}色?的?(?:一点|一些|些|点)?"
    f"(?:儿|的)?{_END_ZH}"
    f"|(?:改变|改改|改|换掉|换|修改|修复|修|调整|调|去掉|去除|移除|删掉|删除|删|擦掉|抹掉|编辑|处理|重画|重做|重新画|美化|优化|提亮|"
    f"放大|模糊|虚化|涂|弄|动|更改|替换)(?:一下|一修|掉|下)?{_WHOLE_ZH}{_POINT_ZH}{_ATTRIBUTE_ZH}(?:成.{{1,12}})?{_END_ZH}"
    f"|在?{_WHOLE_ZH}(?:这|那)(?:个|块|片)?(?:部分|区域|位置)(?:里|上|内)?(?:再|也)?加(?:上|一|个|点|入).{{1,12}}"
    ")"
)
_HALF_NAMED_ZH = re.compile(
    f"{_LEAD_ZH}(?:把|将|让|使|对|给)?[\u4e00-\u9fff]{{1,6}}的{_POINT_ZH}{_ATTRIBUTE_ZH}{_ADVERB_ZH}{_VERB_ZH}.{{0,16}}"
)
_COMPLAINT_ZH = re.compile(
    f"{_LEAD_ZH}{_WHOLE_ZH}{_POINT_ZH}{_ATTRIBUTE_ZH}(?:太|不|有点|有些|怎么|看起来|看着|很).{{1,10}}"
)
_ANY_CHANGE_ZH = re.compile(
    f"{_LEAD_ZH}(?:(?:修改|改|修|换|调|处理|重画|重做)(?:一下|一改|改|下|掉)?|[调改弄变][亮暗深浅大小].{{0,3}}|[改换变]成.{{1,10}}|去掉|删掉){_END_ZH}"
)
_NOTHING_ZH = re.compile(
    "(?:请|谢谢你?|好的?|嗯+|你好|您好|麻烦你?了?|拜托了?|可以吗|行吗|好吗|不对|对|是的)+"
    "|(?:其他|其它|别的|其余|剩下)(?:的|地方|部分|内容|区域)*(?:都|全)?(?:不变|不动|别动|不要动|不要改|别改|不用改|保持.{0,4}|一样)"
)
# Praise for what was done, and questions about it.
_DONE_ZH = re.compile(
    "得(?:很|真|挺|好|太|还|非常|不错)|好了|好看了|不错|什么|为何|喜欢|[了过]吗|不用|不要|别|勿|不变|不动"
)
_SCENE_ZH = re.compile("冬|夏|春天|秋|夜|晚|白天|黄昏|傍晚|清晨|日出|日落|雪|雨|雾|风格|世界|场景")
_NAMED_PICTURE_ZH = re.compile(
    "上一?[张幅]|前一?[张幅]|第[一二三四五六七八九十\\d]+[张幅个]|最后一?[张幅个]|最新|最近|刚才|刚刚|原图|原来|上图|[那另][外一]*[张幅]"
    "|上面那|我(?:上传|发)的|图片?[\\d一二三四]|[\u4e00-\u9fff]的那?[张幅]"
)

# Words of a mask. A mask that somebody wears, a marked trail and a selection of cheeses are things in a picture.

_AREA = (
    r"(?:areas?|regions?|parts?|portions?|sections?|spots?|zones?|bits?|pixels|places?|patch(?:es)?|shapes?)(?![-\w])"
)
_MARKED = (
    r"(?:mask(?:ed)?|marked|painted|brushed|selected|highlighted|circled|outlined|scribbled|drawn|drew|lassoed|coloured"
    r"|colored)(?:[ -](?:over|on|in|out|around|up|off))?"
)
_I_MARKED = rf"(?:i|we)(?:'ve| have| had)?(?: just| already)? {_MARKED}(?!\w)"
_THE = r"(?:the|this|that|my|these|those)"
_ONLY = r"(?:only|just|solely|nothing but|strictly)"
_MASK_EN = re.compile(
    # "the masked area", "the part I painted over", "erase what I marked"
    rf"\b(?:un)?mask(?:ed)? {_AREA}|\b{_THE} {_MARKED} {_AREA}|\b{_AREA} (?:(?:that|which|where) )?{_I_MARKED}"
    rf"|\b{_THE} (?:marked|masked|selected|highlighted|circled) (?:objects?|items?|things?)\b"
    rf"|\b(?:objects?|items?|things?) (?:(?:that|which) )?{_I_MARKED}"
    rf"|\bwhere(?:ver)? {_I_MARKED}"
    rf"|\b(?!(?:like|love|show|see|use|is|know)\b)\w+ (?:{_ONLY} )?(?:what(?:ever)?|everything|all)(?: that)?"
    rf" {_I_MARKED}"
    # "inside the mask", "fill the mask", "my selection only"
    rf"|\b(?:inside|within|outside|beyond) (?:of )?{_THE} (?:mask|selection)(?! of\b)(?![-\w])"
    rf"|\b(?:fill(?: in| up)?|inpaint|paint in|use|apply|respect|follow|regenerate|according to|based on|{_ONLY}"
    rf"(?: \w+)?) (?:the|my) mask(?![-\w])"
    rf"|\b{_THE} mask (?:that )?{_I_MARKED}"
    rf"|\b(?:the|my) selection(?=\s*(?:$|[,.;!?]|(?:only|please|with|to|into|by)\b))"
)
# A mask that belongs to a face.
_WORN_EN = re.compile(
    r"\b(?:wear\w*|put on|takes? off)\b.{0,20}\bmasks?\b"
    r"|\bmasks? (?:from|off|on|over|of) (?:his|her|their|its|the|my|a)\b(?! (?:picture|image|photo|area))"
)
_ABOUT_MASKS_EN = re.compile(r"(?:please |so |and )?(?:how|what|why|when|which|is|are|does|did|do i|explain)\b")
_MARKED_ZH = (
    "(?:选中|选定|选取|选出|框选|圈选|圈出|圈中|圈住|圈起来|框出|框住|框中|标记|标出|标注|涂抹|涂过|涂红|涂黑|涂白|涂色|涂出|刷过|刷出|抹过|高亮"
    "|画圈|勾出|蒙住)(?:过|了|出来|好|住)*"
)
_AREA_ZH = "(?:区域|部分|部位|地方|位置|范围|内容|东西|物体|那[块片]|这[块片])"
_I_MARKED_ZH = (
    f"(?:我|刚才|刚刚)(?:刚才|刚刚|已经|所|用画笔|用刷子)*(?:{_MARKED_ZH}|[选画涂圈框标刷](?:过|了|好|出来)*)的"
)
_CHANGED_ZH = "(?:擦|去|删|抹|移除|换|改|变|填|涂|清|都|全|里|内|外|以外|之外)"
_MASK_ZH = re.compile(
    f"{_MARKED_ZH}的?(?:那个?|这个?|那些|这些)?{_AREA_ZH}"
    f"|{_I_MARKED_ZH}(?:(?:那块|这块|那个|这个|那片|这片)?{_AREA_ZH}|(?=$|[,。!?]|{_CHANGED_ZH}))"
    f"|选区(?=$|[,!?]|{_CHANGED_ZH}|以|之|中|只)|(?:填充|只改|修改|擦除|清空|重画)选区"
    "|(?:蒙版|遮罩|蒙板)(?:以外|之外|以内|之内|里|内|中|外|区域|部分|覆盖|范围|的(?:地方|位置|区域|部分))"
    "|(?:填充|填满|填|按照|按|根据|依照|只改|只动|修改|重画|重绘|应用|使用)(?:我|这个|那个|刚才|画|涂|的)*(?:蒙版|遮罩|蒙板)"
    "(?!效果|风格|海报|教程|图层)"
)
_ABOUT_MASKS_ZH = re.compile("什么|怎么|如何|怎样|为何")
_NEW_PICTURE = re.compile(
    r"(?:please |can you |could you )?"
    r"(?:draw|sketch|illustrate|design|create|imagine|paint(?= (?:an?|the masked) \w+))\b"
    r"(?!.*\b(?:in|inside|within|where|only)\b)"
    rf"|(?:请|帮我|给我|麻烦)*(?:画|绘制|生成|设计|创作|做)[一两三四几个张幅](?!.*(?:{_AREA_ZH}|[蒙遮].?[里内中]))"
)

_CLAUSE = re.compile(
    r"[,.;!?，。；！？、：:\n()（）…—~]+|\s+(?:and|but|then)\s+(?=(?:keep|leave|nothing|fix|change|repair|make it)\b)"
)
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|『[^』]*』|(?<!\w)'[^']*'(?!\w)")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SPACES = re.compile(r"\s+")


def points_at_a_part(text: str, *, picture_count: int) -> bool:
    """Return whether the words ask to change a part that they only point at, of a picture that they do not name.

    `picture_count` is how many pictures the conversation holds: with exactly one, "this part of the sky" is name
    enough. English and Chinese; long messages never count.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").strip()
    if len(folded) > _MOST_CHARACTERS or names_a_picture(folded):
        return False
    is_chinese = _CHINESE.search(folded) is not None
    clauses = [_tidied(clause, is_chinese=is_chinese) for clause in _CLAUSE.split(folded)]
    kinds = [_kind(clause, is_chinese=is_chinese, picture_count=picture_count) for clause in clauses if clause]
    if "else" in kinds:
        return False
    return "pointing" in kinds or {"complaint", "change"} <= set(kinds)


def refers_to_a_mask(text: str) -> bool:
    """Return whether the words ask for a change of what the person masked, marked or selected, in English or Chinese.

    A question about masks, a new picture with a mask in it and a mask that somebody wears do not count.
    """
    folded = _SPACES.sub(" ", unicodedata.normalize("NFKC", text).casefold().replace("’", "'")).strip()
    folded = _WORN_EN.sub(" ", _QUOTED.sub(" ", folded))
    is_question = _ABOUT_MASKS_EN.match(folded) or _ABOUT_MASKS_ZH.search(folded)
    if is_question or _NEW_PICTURE.match(folded):
        return False
    return bool(_MASK_EN.search(folded) or _MASK_ZH.search(folded))


def names_a_picture(text: str) -> bool:
    """Return whether the words say which picture is meant: a handle, "the last picture", 上一张."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return bool(handles_in(folded) or _NAMED_PICTURE_EN.search(folded) or _NAMED_PICTURE_ZH.search(folded))


def _tidied(clause: str, *, is_chinese: bool) -> str:
    # Emoji and marks around the words say nothing here.
    clause = re.sub(r"^[^\w]+|[^\w]+$", "", clause)
    return _SPACES.sub("" if is_chinese else " ", clause)


def _kind(clause: str, *, is_chinese: bool, picture_count: int) -> str:
    """Return what a clause is: `pointing`, `complaint`, `change` (of nothing in particular), `nothing` or `else`."""
    if (_SCENE_ZH if is_chinese else _SCENE_EN).search(clause):
        return "else"
    rules = _rules(is_chinese=is_chinese, picture_count=picture_count)
    kind = next((kind for kind, pattern in rules if pattern.fullmatch(clause)), "else")
    return "else" if kind == "pointing" and _DONE_ZH.search(clause) else kind


def _rules(*, is_chinese: bool, picture_count: int) -> list[tuple[str, re.Pattern[str]]]:
    half_named = _HALF_NAMED_ZH if is_chinese else _HALF_NAMED_EN
    rules = [("pointing", _POINTING_ZH if is_chinese else _POINTING_EN)]
    if picture_count != 1:
        rules.append(("pointing", half_named))
    return [
        *rules,
        ("nothing", _NOTHING_ZH if is_chinese else _NOTHING_EN),
        ("complaint", _COMPLAINT_ZH if is_chinese else _COMPLAINT_EN),
        ("change", _ANY_CHANGE_ZH if is_chinese else _ANY_CHANGE_EN),
    ]
