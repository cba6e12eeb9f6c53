// Copy under a message gives its words as Markdown, not as the HTML that the page is given of them (webui/markdown.py).
(() => {
  const AROUND = { strong: "**", b: "**", em: "*", i: "*", s: "~~", code: "`" };
  const inline = node => [...node.childNodes].map(write).join("");
  const fence = code => {
    const language = /language-(\S+)/.exec(code?.className ?? "")?.[1] ?? "", text = code?.textContent ?? "";
    const marks = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
    return `${marks}${language}\n${text.replace(/\n$/, "")}\n${marks}`;
  };
  const list = node => [...node.children].map((item, at) => {
    const mark = node.localName === "ol" ? `${(node.start ?? 1) + at}. ` : "- ";
    return mark + inline(item).trim().replaceAll("\n", `\n${" ".repeat(mark.length)}`);
  }).join("\n");
  const table = node => {
    const rows = [...node.rows].map(row => `| ${[...row.cells].map(cell => inline(cell).trim()).join(" | ")} |`);
    const rule = `|${[...node.rows[0]?.cells ?? []].map(cell => cell.align === "right" ? " --: |" : " --- |").join("")}`;
    return [rows[0], rule, ...rows.slice(1)].join("\n");
  };
  const formula = node => {
    const sign = node.querySelector(".katex-display") || node.matches(".katex-display") ? ["$$", "$$"] : ["\\(", "\\)"];
    return sign[0] + (node.querySelector("annotation")?.textContent ?? "") + sign[1];
  };
  const write = node => {
    if (node.nodeType !== Node.ELEMENT_NODE) return node.nodeType === Node.TEXT_NODE ? node.data : "";
    const name = node.localName, around = AROUND[name];
    if (node.matches(".katex, .katex-display")) return formula(node);
    if (around) return around + inline(node) + around;
    switch (name) {
      case "button": return "";
      case "br": return "\n";
      case "hr": return "---";
      case "a": return node.textContent === node.getAttribute("href") ? node.textContent : `[${inline(node)}](${node.getAttribute("href")})`;
      case "pre": return fence(node.querySelector("code"));
      case "ul": case "ol": return `\n${list(node)}`;
      case "table": return table(node);
      case "blockquote": return blocks(node).replace(/^/gm, "> ");
      case "p": return `${inline(node)}\n`;
      default: return /^h[1-6]$/.test(name) ? `${"#".repeat(name[1])} ${inline(node)}` : inline(node);
    }
  };
  const blocks = node => [...node.children].map(child => write(child).trim()).filter(Boolean).join("\n\n");

  // Gradio copies what it was given, and shows that it did: only what is copied becomes another text.
  let instead = null;
  addEventListener("click", event => {
    const button = event.target.closest?.("#chat .message-buttons button"), row = button?.closest(".message-row");
    const said = [...row?.querySelectorAll(".md") ?? []].map(blocks).filter(Boolean).join("\n\n");
    if (!said) return;
    instead = said;
    setTimeout(() => { instead = null; }, 500);
  }, true);
  const clipboard = navigator.clipboard, writeText = clipboard?.writeText?.bind(clipboard);
  if (writeText) clipboard.writeText = text => writeText(instead ?? text);
  addEventListener("copy", event => {
    if (instead === null) return;
    event.clipboardData.setData("text/plain", instead);
    event.preventDefault();
  }, true);
})();
