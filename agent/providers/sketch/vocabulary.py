"""The words that the sketch painter knows, English and Chinese: figures, places and the weather between them."""

from __future__ import annotations

import re

_Table = tuple[tuple[str, re.Pattern[str]], ...]


def _table(*rows: tuple[str, str, str]) -> _Table:
    return tuple((name, re.compile(rf"\b(?:{english})\b|{chinese}", re.IGNORECASE)) for name, english, chinese in rows)


FIGURES = _table(
    (
        "cat",
        r"cats?|kittens?|kitty|tigers?|lions?|panthers?|leopards?",
        r"猫(?!头鹰|眼)|(?<!马)(?<!壁)虎|(?<!海)狮|(?<!海)豹",
    ),
    ("fox", r"fox(?:es)?|dogs?|pupp(?:y|ies)|wol(?:f|ves)|corgi|husky|shiba", r"狐|(?<!热)狗|犬|狼|柴(?!火|油|米)"),
    ("rabbit", r"rabbits?|bunn(?:y|ies)|hares?", r"兔"),
    ("bear", r"bears?|pandas?|teddy|koalas?|hamsters?|mouse|mice", r"熊|鼠(?!标)|考拉"),
    (
        "bird",
        r"birds?|owls?|penguins?|ducks?|chickens?|parrots?|sparrows?|eagles?|cranes?|swans?",
        r"鸟|猫头鹰|鹰|企鹅|鸭|(?<!火)鸡(?!尾酒|蛋)|鹦鹉|麻雀|鹤|天鹅",
    ),
    ("fish", r"fish(?:es)?|whales?|dolphins?|sharks?|koi|goldfish", r"(?<!木)鱼|鲸|海豚|鲨|海狮|海豹"),
    (
        "dragon",
        r"dragons?|dinosaurs?|monsters?|lizards?",
        r"(?<!卡)(?<!乌)(?<!尼)(?<!水)(?<!黑)龙(?!虾|井|江|头)|怪兽|蜥|壁虎",
    ),
    (
        "horse",
        r"horses?|unicorns?|deer|stags?|reindeer|cows?|goats?|sheep|llamas?|camels?|giraffes?|donkeys?",
        r"(?<!罗)(?<!河)(?<!海)(?<!拿)马(?!路|桶|上|克|来|拉松|卡龙|虎|戏|尔代夫|德里)|鹿|(?<!蜗)(?<!吹)牛(?!奶|仔|油|排|肉)|羊(?!毛|肉)|骆驼|独角兽",
    ),
    ("butterfly", r"butterfl(?:y|ies)|moths?|dragonfl(?:y|ies)|bees?", r"蝴蝶|蛾|蜻蜓|蜜蜂"),
    ("robot", r"robots?|androids?|cyborgs?|mechs?", r"机器人|机甲"),
    (
        "person",
        r"wom[ae]n|m[ae]n|girls?|boys?|persons?|people|lad(?:y|ies)|child(?:ren)?|kids?|portraits?"
        r"|self-portrait|princess|prince|queen|king"
        r"|dancers?|astronauts?|knights?|wizards?|witch|samurai|hero|baby|grandma|grandpa|mother|father|teacher"
        r"|scientist|chef|nurse|monk",
        r"女孩|男孩|女人|男人|少女|少年|人物|人像|肖像|小孩|孩子|老人|公主|王子|宇航员|武士|骑士|舞者|女生|男生"
        r"|姑娘|妈妈|爸爸|婴儿|巫师|侠",
    ),
    ("lighthouse", r"lighthouses?|towers?", r"灯塔|铁塔|(?<!蛋)塔"),
    ("boat", r"boats?|ships?|sail(?:boat|ing)s?|yachts?|canoes?", r"船|帆|舟"),
    ("balloon", r"balloons?|airships?", r"气球|飞艇"),
    ("rocket", r"rockets?|spaceships?|spacecraft|space ?shuttles?", r"火箭|飞船|飞碟"),
    ("car", r"cars?|trucks?|bus(?:es)?|taxis?|vans?|automobiles?", r"汽车|轿车|跑车|卡车|公交|出租车|巴士"),
    ("bicycle", r"bicycles?|bikes?|motorbikes?|motorcycles?", r"自行车|单车|摩托"),
    (
        "house",
        r"houses?|cottages?|cabins?|huts?|barns?|homes?|villas?|castles?|temples?|church(?:es)?|farms?",
        r"房子|小屋|木屋|房屋|城堡|寺|庙|教堂|别墅|村舍|农舍",
    ),
    ("umbrella", r"umbrellas?|parasols?", r"雨伞|(?<!降落)伞"),
    ("cup", r"cups?|coffees?|teas?|mugs?|cafe|latte|cappuccino|espresso|teapots?", r"(?<!世界)杯|咖啡|茶(?!色)"),
    ("cake", r"cakes?|cupcakes?|birthdays?|desserts?|pies?", r"蛋糕|生日|甜点"),
    ("guitar", r"guitars?|violins?|cellos?|music|jazz|concerts?|songs?", r"吉他|小提琴|音乐|爵士|演唱会"),
    (
        "fruit",
        r"apples?|fruits?|oranges?|lemons?|pears?|peach(?:es)?|cherr(?:y|ies)|pumpkins?|tomato(?:es)?",
        r"苹果|水果|橙(?![色黄红])|橘(?![色黄红猫])|柠檬|梨|桃子|樱桃|南瓜|番茄|西红柿",
    ),
    (
        "flower",
        r"flowers?|roses?|tulips?|sunflowers?|bouquets?|vases?|lil(?:y|ies)|dais(?:y|ies)|lotus|orchids?"
        r"|peon(?:y|ies)|poppies|poppy|plants?|still life",
        r"(?<!雪)(?<!烟)(?<!火)(?<!浪)(?<!米)(?<!兰)花(?!园|生|费|样|絮|瓶)|玫瑰|郁金香|向日葵|百合|牡丹|荷(?!兰)|莲|兰花|菊|盆栽|静物",
    ),
    ("tree", r"(?:lone |old |big |oak |cherry |apple )?trees?|bonsai|oaks?", r"树(?!林)"),
    ("heart", r"hearts?|love|valentines?", r"爱心|心形|爱情|情人"),
    ("star", r"a star|stars? shape|a starfish", r"五角星|星形"),
)

PLACES = _table(
    (
        "space",
        r"space|galax(?:y|ies)|planets?|cosmos|universe|nebula|saturn|mars|orbit",
        r"太空|宇宙|星系|行星|银河|星云|火星|土星",
    ),
    (
        "mountains",
        r"mountains?|landscapes?|alps|peaks?|hills?|valleys?|canyon|volcano|himalayas?|fuji|cliffs?",
        r"山(?!东|西|楂|药|寨|羊)|峰(?!会)|峡谷|风景|火山|悬崖",
    ),
    (
        "sea",
        r"seas?|oceans?|beach(?:es)?|waves?|coasts?|shores?|islands?|harbou?rs?|lakes?|rivers?|bay|underwater|seaside|water",
        r"(?<!上)海(?!报|拔|绵|棠|选|外|关|淘|苔|鲜)|沙滩|湖(?!南|北)|河(?!南|北|马)|浪(?!漫|费)|(?<!青)岛|(?<!香)港|(?<!浙)(?<!龙)江(?!苏|西|湖)|水边",
    ),
    (
        "city",
        r"city|cities|skylines?|streets?|towns?|skyscrapers?|buildings?|downtown|tokyo|new york|paris|london"
        r"|shanghai|beijing|hong kong"
        r"|times square|cyberpunk|metropolis|alleys?|rooftops?|market",
        r"城市|都市|街|高楼|大厦|摩天|上海|北京|东京|香港|纽约|巴黎|伦敦|赛博朋克|小镇|胡同",
    ),
    (
        "forest",
        r"forests?|woods?|woodlands?|jungles?|trees|rainforest|bamboo|pines?",
        r"森林|树林|丛林|竹|松林|林间|(?<!柏)(?<!桂)林(?!肯|黛玉)",
    ),
    ("desert", r"deserts?|dunes?|sahara|oasis|cact(?:us|i)|pyramids?", r"沙漠|沙丘|绿洲|仙人掌|金字塔"),
    (
        "room",
        r"rooms?|tables?|desks?|kitchens?|interiors?|indoors?|windows?|cafe|shelf|studio|library|still life|bedroom",
        r"房间|桌|厨房|室内|窗(?!口期)|卧室|书房|客厅|静物|咖啡馆",
    ),
    (
        "field",
        r"fields?|meadows?|gardens?|grass(?:land)?|parks?|farms?|prairie|lawn|countryside|village",
        r"田野|草地|草原|花园|公园|(?<!油)田(?!径)|农场|乡村|庭院|村",
    ),
    (
        "abstract",
        r"abstract|geometr(?:y|ic)|poster|logos?|patterns?|bauhaus|minimal(?:ist)?|icon|banner|flyer|cover"
        r"|typography|shapes?|circles?|squares?|triangles?",
        r"抽象|几何|海报|标志|图案|包豪斯|极简|图标|横幅|封面|圆形|方块|三角",
    ),
)

MOODS = _table(
    (
        "night",
        r"nights?|midnight|moon(?:lit|light)?|stars|starry|nocturnal|evening|neon|cyberpunk|dark",
        r"夜(?!宵)|月亮|月光|月下|明月|星空|星星|霓虹|赛博朋克|黑暗|晚上",
    ),
    (
        "sunset",
        r"sunsets?|dusk|golden hour|twilight|sunrises?|dawn|sundown",
        r"日落|夕阳|黄昏|晚霞|傍晚|日出|黎明|朝霞|落日",
    ),
    (
        "snow",
        r"snow(?:y|ing|fall|man)?|winters?|ice|icy|frost(?:y)?|christmas|arctic",
        r"雪(?!糕|碧|茄)|冬(?!瓜|枣|虫)|冰(?!箱|淇淋|激凌|咖啡)|圣诞|霜",
    ),
    ("autumn", r"autumn(?:al)?|fall leaves|fall colou?rs|maples?|october|harvest|halloween", r"秋|枫|落叶|丰收"),
    ("spring", r"spring(?:time)?|blossoms?|sakura|cherry blossoms?|easter", r"(?<!青)春(?!卷)|樱花|桃花"),
    ("rain", r"rain(?:y|ing)?|storms?|stormy|drizzle|fog(?:gy)?|mist(?:y)?|cloudy|thunder", r"雨|雾|暴风|阴天|雷"),
    ("summer", r"summers?|sunny|sunshine|tropical|noon", r"(?<!华)夏(?!威夷)|晴|阳光|热带"),
)


def find(table: _Table, text: str) -> str | None:
    """Return the name of the row whose word comes first in the text, or None."""
    hits = ((match.start(), name) for name, pattern in table if (match := pattern.search(text)))
    return min(hits, default=(0, None), key=lambda hit: hit[0])[1]


def find_all(table: _Table, text: str) -> tuple[str, ...]:
    """Return the names of all rows that the text mentions, in the table's order."""
    return tuple(name for name, pattern in table if pattern.search(text))


def is_known(text: str) -> bool:
    """Whether the painter has a shape for anything in the text."""
    return any(find(table, text) for table in (FIGURES, PLACES, MOODS))
