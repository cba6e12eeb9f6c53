// Words on the page and names of its parts; what somebody wrote, or a program or a file is called, is in no language of ours.
() => {
  const skipped = [
    "script, style, template, code, pre, kbd, textarea, svg, .wire, #wires, .brand",
    "h1, .user, .md, [data-act=open], .sty details, .gal-caption",
  ].join();
  const unnamed = ".wire, #wires, .user, [role=option], #rail-rows, .gal-cell, .tr-node, #fi-name";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest(skipped)) found.push(walker.currentNode.data);
  for (const name of ["aria-label", "title", "placeholder", "alt"])
    for (const one of document.body.querySelectorAll(`[${name}]`)) if (!one.closest(unnamed)) found.push(one.getAttribute(name));
  return [...new Set(found.map(text => text.trim()).filter(Boolean))];
}
