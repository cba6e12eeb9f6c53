"""What counts as a claim of a picture where none was made, in both languages."""

from __future__ import annotations

import pytest

from tests.adapters.language import claims_a_picture
from tests.support.cases import each_case

CLAIMS = (
    "I've created a picture of a red fox for you!",
    "I have painted a lighthouse at dusk.",
    "Sure! I just drew a boat on a calm lake. Let me know what you think.",
    "Here is your image of a red fox in the snow.",
    "Here's the picture you asked for:",
    "Here you go!",
    "Your picture is ready.",
    "The image has been generated successfully.",
    "Done! The background has been changed, and the new version is ready.",
    "I've made the sky pink and kept everything else as it was.",
    "We have designed a logo for your bakery.",
    "Great idea. I’ve gone ahead and generated three variations.",
    "Enjoy your new wallpaper!",
    "I removed the car from the street.",
    '{"action": "generate", "prompt": "a red fox"}',
    '```json\n{"name": "generate_image", "arguments": {"prompt": "a red fox"}}\n```',
    "```tool_code\nprint(default_api.generate_image(prompt='a red fox'))\n```",
    "<tool_call>generate_image</tool_call>",
    'generate_image(prompt="a red fox")',
    "![a red fox](https://example.com/fox.png)",
    "Your fox: https://files.example.com/fox-12.png",
    "[Download the picture](sandbox:/mnt/data/fox.png)",
    "[Image: a red fox in the snow]",
    "我已经为您画好了一只红色的狐狸。",
    "图片已经生成，请查看。",
    "好的，给你画了一只猫！",
    "这是您要的海报。",
    "已生成图片。",
    "背景已经换好了，画面更明亮了。",
    "我为你制作了三张头像。",
    "以下是根据你的描述创作的插画：",
)
TALK = (
    "A red fox in the snow sounds lovely. Should it look left or right?",
    "I have not made a picture yet.",
    "No picture was made.",
    "I couldn't create the image, because the model refused it.",
    "I can paint a fox for you whenever you like.",
    "I will draw the fox next.",
    "You're welcome!",
    "Once I have painted it, we can change the sky.",
    "Ukiyo-e prints were made from carved wooden blocks.",
    "Which picture do you mean, #1 or #2?",
    "Tell me where the fox shall stand.",
    "The workspace holds a file notes.md.",
    "Please paint over the part that shall change.",
    "Watercolour is a medium in which pigments are suspended in water.",
    "The first paintings in caves were made 40,000 years ago.",
    "Good morning! What would you like to see?",
    "您想要什么样的狐狸？",
    "我还没有画。",
    "我无法生成这张图片。",
    "请先告诉我背景的颜色。",
    "我可以为你画一只狐狸。",
    "如果画好了，我们再调整颜色。",
    "水彩画是一种用水调和颜料的画。",
    "谢谢，很高兴能帮到你。",
)


@each_case("answer", CLAIMS)
def test_an_answer_claims_a_picture(answer: str) -> None:
    assert claims_a_picture(answer, "draw a red fox in the snow")


@each_case("answer", TALK)
def test_an_answer_claims_none(answer: str) -> None:
    assert not claims_a_picture(answer, "draw a red fox in the snow")


@pytest.mark.parametrize("wish", ["What did you paint first?", "你刚才画了什么？", "which one is the newest?"])
def test_a_question_is_answered_in_words(wish: str) -> None:
    assert not claims_a_picture("I painted a fox, and then I made the sky pink.", wish)
