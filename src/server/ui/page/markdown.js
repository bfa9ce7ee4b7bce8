// Markdown to DOM, while it arrives. What is finished stays untouched; what changes is changed in place, so that
// nothing flickers and selections, focus and scroll positions survive.
const Markdown = (() => {
  const { el, icon } = Dom;

  function codeBlock(block) {
    const name = block.language || "text";
    return el("div", { class: "code" },
      el("div", { class: "code-head" },
        el("span", { class: "code-language" }, name),
        el("button", { type: "button", class: "copy-code", "aria-label": "Copy code" },
          icon("copy"), el("span", { class: "copy-label" }, "Copy"))),
      el("pre", { tabindex: "0", role: "region", "aria-label": "Code: " + name },
        el("code", {}, ...Highlight.nodes(block.text, block.language))));
  }

  function row(tag, texts, columns) {
    return el("tr", {}, ...texts.map((text, i) =>
      el(tag, { class: "align-" + columns[i], scope: tag === "th" ? "col" : null }, MarkdownInline.render(text))));
  }

  function tableBlock(block) {
    return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" },
      el("table", {},
        el("thead", {}, row("th", block.head, block.columns)),
        el("tbody", {}, ...block.rows.map((texts) => row("td", texts, block.columns)))));
  }

  function itemNode(blocks) {
    const first = blocks[0];
    const task = first && first.type === "paragraph" ? /^\[([ xX])\] /.exec(first.text) : null;
    if (!task) return el("li", {}, ...blocks.map(build));
    const text = (task[1] === " " ? "\u2610 " : "\u2611 ") + first.text.slice(4);
    return el("li", { class: "task" }, ...[{ ...first, text }, ...blocks.slice(1)].map(build));
  }

  function build(block) {
    switch (block.type) {
      case "code": return codeBlock(block);
      // The page has a heading of its own; those of answers come below it.
      case "heading": return el("h" + Math.min(6, block.level + 2), { class: "level-" + block.level },
        MarkdownInline.render(block.text));
      case "rule": return el("hr");
      case "quote": return el("blockquote", {}, ...block.blocks.map(build));
      case "list": return block.ordered
        ? el("ol", { start: block.number === 1 ? null : block.number }, ...block.items.map(itemNode))
        : el("ul", {}, ...block.items.map(itemNode));
      case "table": return tableBlock(block);
      default: return el("p", {}, MarkdownInline.render(block.text));
    }
  }

  function patchText(old, text) {
    if (old.data === text) return;
    if (text.startsWith(old.data)) old.appendData(text.slice(old.data.length));
    else old.data = text;
  }

  function sameElement(old, node) {
    return old.nodeName === node.nodeName && old.attributes.length === node.attributes.length &&
      Array.from(node.attributes).every((a) => old.getAttribute(a.name) === a.value);
  }

  function patch(old, node) {
    if (old.nodeType === Node.TEXT_NODE && node.nodeType === Node.TEXT_NODE) patchText(old, node.data);
    else if (old.nodeType !== Node.ELEMENT_NODE || node.nodeType !== Node.ELEMENT_NODE || !sameElement(old, node)) {
      old.replaceWith(node);
    } else if (!old.classList.contains("copy-code")) {
      patchChildren(old, old.firstChild, Array.from(node.childNodes));
    }
  }

  // Makes the children of `parent` from `old` on equal to `nodes`.
  function patchChildren(parent, old, nodes) {
    for (const node of nodes) {
      const next = old ? old.nextSibling : null;
      if (old) patch(old, node);
      else parent.append(node);
      old = next;
    }
    while (old) {
      const next = old.nextSibling;
      old.remove();
      old = next;
    }
  }

  class View {
    constructor(root) {
      this.root = root;
      this.tail = "";    // the text from the first block on that may still change
      this.lastFixed = null;  // the node before that block's
    }

    // A block that a complete line began ends all blocks before it, for good; a line that is still being written
    // ends nothing: "1" after a list may become "1. ", its next item. What begins a table are two lines.
    append(text) {
      this.tail += text;
      const lines = MarkdownBlocks.lines(this.tail);
      const blocks = MarkdownBlocks.parse(lines);
      patchChildren(this.root, this.lastFixed ? this.lastFixed.nextSibling : this.root.firstChild, blocks.map(build));
      let last = blocks.length - 1;
      const begun = (block) => block.start + (block.type === "table" ? 1 : 0);
      while (last > 0 && begun(blocks[last]) >= lines.length - 1) --last;
      if (last <= 0) return;
      for (let i = 0; i < last; ++i) {
        this.lastFixed = this.lastFixed ? this.lastFixed.nextSibling : this.root.firstChild;
      }
      let cut = 0;
      for (let i = 0; i < blocks[last].start; ++i) cut = this.tail.indexOf("\n", cut) + 1;
      this.tail = this.tail.slice(cut);
    }
  }

  return { View };
})();
