"""The headings of the pages that people read, in the languages of the page."""

from __future__ import annotations

from collections.abc import Mapping

from agent.archive.format import Language

_ENGLISH: Mapping[str, str] = {
    "untitled": "Untitled conversation",
    "library": "Conversations from Aivista",
    "empty": "There was no conversation.",
    "made_by": "Kept by Aivista. This page shows what was said and made; conversation.json beside it holds everything.",
    "begun": "Begun {moment}, last changed {moment_of_change}",
    "counts": "{turns} turns, {pictures} pictures",
    "elsewhere": "Other branches",
    "follows": "follows {number}",
    "first": "first of a branch",
    "you": "You",
    "agent": "Aivista",
    "picture": "Picture {handle}",
    "lost": "The file of picture {handle} was gone when this was kept.",
    "mask": "What may change (white)",
    "marked": "To be changed: {handle}",
    "references": "References: {handles}",
    "plan": "Plan",
    "earlier": "Earlier attempts",
    "sources": "Sources",
    "prompt": "Prompt",
    "model": "Model",
    "size": "Size",
    "styles": "Styles",
    "facts": "Facts",
    "price": "Price",
    "seconds": "Seconds",
    "lettering": "Lettering read",
    "review": "Review",
    "failed": "Not done",
    "stopped": "Stopped.",
    "interrupted": "Cut off by the end of the studio.",
    "waiting": "The plan above waits for an answer.",
    "question.empty": "Asked what there should be to see.",
    "question.unsure": "Asked what exactly is wanted.",
    "question.which_part": "Asked which part is meant.",
}
_CHINESE: Mapping[str, str] = {
    "untitled": "未命名的对话",
    "library": "Aivista 的对话",
    "empty": "没有对话。",
    "made_by": "由 Aivista 保存。本页展示说过和画过的内容；旁边的 conversation.json 包含全部数据。",
    "begun": "开始于 {moment}，最后更改于 {moment_of_change}",
    "counts": "{turns} 轮，{pictures} 张图片",
    "elsewhere": "其他分支",
    "follows": "接在第 {number} 轮之后",
    "first": "分支的第一轮",
    "you": "你",
    "agent": "Aivista",
    "picture": "图片 {handle}",
    "lost": "保存时图片 {handle} 的文件已不存在。",
    "mask": "可以更改的部分（白色）",
    "marked": "要修改：{handle}",
    "references": "参考：{handles}",
    "plan": "方案",
    "earlier": "之前的尝试",
    "sources": "来源",
    "prompt": "提示词",
    "model": "模型",
    "size": "尺寸",
    "styles": "风格",
    "facts": "事实",
    "price": "价格",
    "seconds": "秒",
    "lettering": "读到的文字",
    "review": "评审",
    "failed": "未完成",
    "stopped": "已停止。",
    "interrupted": "因程序结束而中断。",
    "waiting": "上面的方案在等待答复。",
    "question.empty": "询问想看到什么。",
    "question.unsure": "询问具体想要什么。",
    "question.which_part": "询问指的是哪一部分。",
}
WORDS: Mapping[Language, Mapping[str, str]] = {"en": _ENGLISH, "zh-CN": _CHINESE}


def word(language: Language, key: str, **parameters: object) -> str:
    """Return a heading or a line of the page."""
    return WORDS[language][key].format(**parameters)
