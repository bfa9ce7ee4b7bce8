// Markdown's blocks, as a tree: fences, headings, rules, quotes, lists, tables, paragraphs. Works on lines, in time
// linear in the text (times the depth of nesting, which is bounded); nothing throws.
// A block: {type, start, ...}; start is its first line.
const MarkdownBlocks = (() => {
  const kMaxDepth = 10;
  const kMaxColumns = 48;
  const kFence = /^( {0,3})(`{3,}|~{3,})(.*)$/;
  const kHeading = /^ {0,3}(#{1,6})(?: (.*))?$/;
  const kQuote = /^ {0,3}>/;
  const kMarker = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)/;
  const kDelimiterRow = /^[ |:-]+$/;

  const blank = (line) => line.trim() === "";
  const indent = (line) => line.length - line.trimStart().length;
  const dedent = (line, columns) => line.slice(Math.min(columns, indent(line)));

  // Lines without their ends; tabs that indent become spaces.
  function lines(text) {
    return text.split("\n").map((line) => {
      const whole = line.endsWith("\r") ? line.slice(0, -1) : line;
      const width = indent(whole);
      return whole.slice(0, width).replaceAll("\t", "    ") + whole.slice(width);
    });
  }

  function fenceOf(line) {
    const match = kFence.exec(line);
    return match && !(match[2][0] === "`" && match[3].includes("`")) ? match : null;
  }

  function isRule(line) {
    if (indent(line) > 3) return false;
    const marks = line.replaceAll(" ", "");
    return marks.length >= 3 && "-*_".includes(marks[0]) && marks === marks[0].repeat(marks.length);
  }

  const markerOf = (line) => (isRule(line) ? null : kMarker.exec(line));
  const isOrdered = (marker) => marker[2].length > 1;
  const sameList = (a, b) => a[2][a[2].length - 1] === b[2][b[2].length - 1] && isOrdered(a) === isOrdered(b);

  // Does the line end a paragraph above it? A numbered list does so only from 1 on: "in\n1984. It was" is prose.
  function interrupts(line) {
    if (fenceOf(line) || kHeading.test(line) || isRule(line) || kQuote.test(line)) return true;
    const marker = markerOf(line);
    return marker !== null && marker[0].length < line.length && (!isOrdered(marker) || parseInt(marker[2], 10) === 1);
  }

  function cells(line) {
    const row = line.trim();
    const out = [""];
    for (let i = row.startsWith("|") ? 1 : 0; i < row.length; ++i) {
      if (row[i] === "\\" && row[i + 1] === "|") { out[out.length - 1] += "|"; ++i; }
      else if (row[i] === "|") { if (i + 1 < row.length) out.push(""); }
      else out[out.length - 1] += row[i];
    }
    return out.map((cell) => cell.trim());
  }

  function alignments(line) {
    const columns = cells(line);
    if (!columns.every((cell) => /^:?-+:?$/.test(cell))) return null;
    return columns.map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left"));
  }

  // The columns of a table that begins at `at`, or null.
  function tableAt(all, at) {
    const below = all[at + 1];
    if (below === undefined || !all[at].includes("|") || !kDelimiterRow.test(below) || !below.includes("-")) return null;
    const columns = alignments(below);
    return columns && columns.length <= kMaxColumns && columns.length === cells(all[at]).length ? columns : null;
  }

  class Parser {
    constructor(all, depth) {
      this.all = all;
      this.depth = depth;
      this.at = 0;
    }

    parse() {
      const blocks = [];
      while (this.at < this.all.length) {
        if (blank(this.all[this.at])) { ++this.at; continue; }
        const start = this.at;
        blocks.push({ start, ...this.block() });
      }
      return blocks;
    }

    block() {
      const line = this.all[this.at];
      const fence = fenceOf(line);
      if (fence) return this.code(fence);
      const heading = kHeading.exec(line);
      if (heading) return this.heading(heading);
      if (isRule(line)) { ++this.at; return { type: "rule" }; }
      if (this.depth < kMaxDepth) {
        if (kQuote.test(line)) return this.quote();
        if (markerOf(line)) return this.list();
      }
      const columns = tableAt(this.all, this.at);
      return columns ? this.table(columns) : this.paragraph();
    }

    code(fence) {
      const text = [];
      for (++this.at; this.at < this.all.length; ++this.at) {
        const line = this.all[this.at];
        const end = kFence.exec(line);
        if (end && end[2][0] === fence[2][0] && end[2].length >= fence[2].length && blank(end[3])) {
          ++this.at;
          break;
        }
        text.push(dedent(line, fence[1].length));
      }
      return { type: "code", language: fence[3].trim().split(/[\s{,]/, 1)[0].slice(0, 32), text: text.join("\n") };
    }

    heading(match) {
      ++this.at;
      let text = (match[2] || "").trim();
      let end = text.length;
      while (end > 0 && text[end - 1] === "#") --end;
      if (end === 0 || text[end - 1] === " ") text = text.slice(0, end).trimEnd();
      return { type: "heading", level: match[1].length, text };
    }

    quote() {
      const inner = [];
      for (; this.at < this.all.length && kQuote.test(this.all[this.at]); ++this.at) {
        inner.push(this.all[this.at].replace(/^ {0,3}> ?/, ""));
      }
      return { type: "quote", blocks: new Parser(inner, this.depth + 1).parse() };
    }

    list() {
      const first = markerOf(this.all[this.at]);
      const items = [];
      while (this.at < this.all.length) {
        const marker = markerOf(this.all[this.at]);
        if (!marker || !sameList(marker, first)) break;
        items.push(new Parser(this.itemLines(marker), this.depth + 1).parse());
      }
      return { type: "list", ordered: isOrdered(first), number: parseInt(first[2], 10), items };
    }

    // The lines of one item, without what indents them. Two columns are enough to belong to an item, as models write.
    itemLines(marker) {
      const spaces = marker[3].length;
      const width = marker[1].length + marker[2].length + (spaces >= 1 && spaces <= 4 ? spaces : 1);
      const needed = Math.min(width, marker[1].length + 2);
      const inner = [this.all[this.at].slice(width)];
      for (++this.at; this.at < this.all.length; ++this.at) {
        const line = this.all[this.at];
        const afterBlank = blank(inner[inner.length - 1]);
        if (blank(line)) inner.push("");
        else if (indent(line) >= needed) inner.push(dedent(line, width));
        else if (!afterBlank && !interrupts(line) && !markerOf(line)) inner.push(line);
        else break;
      }
      return inner;
    }

    table(columns) {
      const fill = (line) => {
        const row = cells(line).slice(0, columns.length);
        while (row.length < columns.length) row.push("");
        return row;
      };
      const head = fill(this.all[this.at]);
      const rows = [];
      for (this.at += 2; this.at < this.all.length && this.all[this.at].includes("|"); ++this.at) {
        rows.push(fill(this.all[this.at]));
      }
      return { type: "table", columns, head, rows };
    }

    paragraph() {
      const text = [this.all[this.at].trim()];
      for (++this.at; this.at < this.all.length; ++this.at) {
        const line = this.all[this.at];
        if (blank(line) || interrupts(line) || tableAt(this.all, this.at)) break;
        text.push(line.trim());
      }
      return { type: "paragraph", text: text.join("\n") };
    }
  }

  const parse = (all) => new Parser(all, 0).parse();

  return { lines, parse };
})();
