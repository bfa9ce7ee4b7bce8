// Markdown within a line of text: code, emphasis, links. One pass cuts the text into items, a second one pairs the
// marks of emphasis, a third one builds nodes. All of it takes time linear in the text; nothing throws.
const MarkdownInline = (() => {
  const kMaxUrl = 2048;
  const kMaxRun = 6;    // longer runs of * or _ are text
  const kMaxOpen = 24;  // marks open at once: bounds the depth of what is built
  const kPlain = /[^\\`*_~[\]!<h\n]+/y;
  const kRun = /\*+|_+|~+/y;
  const kBareUrl = new RegExp(`https?://[^\\s<>"\`]{1,${kMaxUrl}}`, "y");
  const kAngleUrl = new RegExp(`<((?:https?://|mailto:)[^\\s<>]{1,${kMaxUrl}})>`, "y");
  const kBreak = /<br ?\/?>/iy;
  // (address "title"), the title left out or ignored; brackets in the address come in pairs.
  const kInAddress = "[^\\s()<>]";
  const kAddress = `${kInAddress}{0,${kMaxUrl}}(?:\\(${kInAddress}{0,256}\\)${kInAddress}{0,256}){0,4}`;
  const kTarget = new RegExp(`\\((${kAddress})(?: {1,4}"[^"\\n]{0,512}")?\\)`, "y");
  const kSpace = /\s/;
  const kWord = /[\p{L}\p{N}_]/u;
  const kMark = /[\p{P}\p{S}]/u;
  const kEscapable = /[!-/:-@[-`{-~]/;

  function matchAt(pattern, text, at) {
    pattern.lastIndex = at;
    return pattern.exec(text);
  }

  // The address as it may be followed, or null: everything but these three kinds stays text.
  function safeUrl(text) {
    if (!/^(?:https?:\/\/|mailto:)/i.test(text)) return null;
    try {
      const url = new URL(text);
      return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
    } catch {
      return null;
    }
  }

  // Where every run of backticks of a length begins, in order: a code span ends at the next run as long as its first.
  function backtickRuns(text) {
    const runs = new Map();
    for (const match of text.matchAll(/`+/g)) {
      const length = match[0].length;
      if (!runs.has(length)) runs.set(length, { places: [], next: 0 });
      runs.get(length).places.push(match.index);
    }
    return runs;
  }

  function codeEnd(runs, at, length) {
    const run = runs.get(length);
    if (!run) return -1;
    while (run.next < run.places.length && run.places[run.next] < at + length) ++run.next;
    return run.next < run.places.length ? run.places[run.next] : -1;
  }

  function codeText(text) {
    const line = text.replaceAll("\n", " ");
    const padded = line.length > 2 && line.startsWith(" ") && line.endsWith(" ") && line.trim() !== "";
    return padded ? line.slice(1, -1) : line;
  }

  // CommonMark's flanking rules: a mark opens before a word and closes after one.
  function delimiter(text, at, run) {
    const before = at > 0 ? text[at - 1] : " ";
    const after = at + run.length < text.length ? text[at + run.length] : " ";
    const left = !kSpace.test(after) && (!kMark.test(after) || kSpace.test(before) || kMark.test(before));
    const right = !kSpace.test(before) && (!kMark.test(before) || kSpace.test(after) || kMark.test(after));
    const inWord = run[0] === "_" && kWord.test(before) && kWord.test(after);
    return { type: "mark", mark: run[0], count: run.length, opens: [], closes: [],
      canOpen: left && !inWord, canClose: right && !inWord };
  }

  // A bare address does not take the full stop or the closing bracket that ends its sentence.
  function trimUrl(url) {
    let end = url.length;
    let open = 0;
    for (const letter of url) open += letter === "(" ? 1 : letter === ")" ? -1 : 0;
    for (; end > 0; --end) {
      const last = url[end - 1];
      if (last === ")" && open < 0) ++open;
      else if (!/[.,;:!?'*_~\]]/.test(last)) break;
    }
    return url.slice(0, end);
  }

  class Scanner {
    constructor(text) {
      this.text = text;
      this.items = [];
      this.brackets = [];
      this.runs = null;
    }

    addText(text) {
      const last = this.items[this.items.length - 1];
      if (last && last.type === "text") last.text += text;
      else this.items.push({ type: "text", text });
    }

    // Each takes what begins at `at` and returns where it ends.
    escape(at) {
      const next = this.text[at + 1];
      if (next !== undefined && kEscapable.test(next)) {
        this.addText(next);
        return at + 2;
      }
      this.addText("\\");
      return at + 1;
    }

    code(at) {
      this.runs ??= backtickRuns(this.text);
      let length = 1;
      while (this.text[at + length] === "`") ++length;
      const end = codeEnd(this.runs, at, length);
      if (end < 0) {
        this.addText("`".repeat(length));
        return at + length;
      }
      this.items.push({ type: "code", text: codeText(this.text.slice(at + length, end)) });
      return end + length;
    }

    mark(at) {
      const run = matchAt(kRun, this.text, at)[0];
      if (run.length > kMaxRun || (run[0] === "~" && run.length !== 2)) this.addText(run);
      else this.items.push(delimiter(this.text, at, run));
      return at + run.length;
    }

    bracket(at, text) {
      const item = { type: "bracket", text, url: null };
      this.items.push(item);
      this.brackets.push(item);
      return at + text.length;
    }

    closeBracket(at) {
      const open = this.brackets.pop();
      const target = open && matchAt(kTarget, this.text, at + 1);
      const url = target && safeUrl(target[1]);
      if (!url) {
        this.addText("]");
        return at + 1;
      }
      open.url = url;
      this.items.push({ type: "linkEnd" });
      this.brackets.length = 0;  // a link holds no link
      return at + 1 + target[0].length;
    }

    angle(at) {
      const link = matchAt(kAngleUrl, this.text, at);
      const url = link && safeUrl(link[1]);
      if (url) {
        this.items.push({ type: "address", text: link[1], url });
        return at + link[0].length;
      }
      const lineBreak = matchAt(kBreak, this.text, at);
      if (lineBreak) this.items.push({ type: "break" });
      else this.addText("<");
      return at + (lineBreak ? lineBreak[0].length : 1);
    }

    bareUrl(at) {
      const inWord = at > 0 && kWord.test(this.text[at - 1]);
      const match = inWord ? null : matchAt(kBareUrl, this.text, at);
      const text = match && trimUrl(match[0]);
      const url = text && safeUrl(text);
      if (!url) {
        this.addText("h");
        return at + 1;
      }
      this.items.push({ type: "address", text, url });
      return at + text.length;
    }

    take(at) {
      const letter = this.text[at];
      switch (letter) {
        case "\\": return this.escape(at);
        case "`": return this.code(at);
        case "*": case "_": case "~": return this.mark(at);
        case "[": return this.bracket(at, "[");
        case "]": return this.closeBracket(at);
        case "<": return this.angle(at);
        case "h": return this.bareUrl(at);
        case "\n": this.items.push({ type: "break" }); return at + 1;
        case "!":  // an image is a link to it: nothing is fetched because a model said so
          if (this.text[at + 1] === "[") return this.bracket(at, "![");
      }
      const plain = matchAt(kPlain, this.text, at);
      this.addText(plain ? plain[0] : letter);
      return at + (plain ? plain[0].length : 1);
    }

    scan() {
      for (let at = 0; at < this.text.length;) at = this.take(at);
      return this.items;
    }
  }

  // Finds for each closing mark the latest opening one of its kind; what stands open between them stays text.
  // `latest` holds, per kind, places in `open` that may be out of date; the item tells.
  function pairMarks(items) {
    const open = [];
    const latest = { "*": [], "_": [], "~": [] };
    const floors = [0];

    function close(item) {
      const places = latest[item.mark];
      while (item.count > 0) {
        while (places.length > 0 && open[places[places.length - 1].place] !== places[places.length - 1].item) places.pop();
        const found = places[places.length - 1];
        if (!found || found.place < floors[floors.length - 1]) return;
        const taken = item.count >= 2 && found.item.count >= 2 ? 2 : 1;
        const tag = item.mark === "~" ? "s" : taken === 2 ? "strong" : "em";
        if (item.mark === "~") found.item.count = item.count = taken;
        found.item.count -= taken;
        item.count -= taken;
        found.item.opens.push(tag);
        item.closes.push(tag);
        open.length = found.place + (found.item.count > 0 ? 1 : 0);
      }
    }

    for (const item of items) {
      if (item.type === "bracket" && item.url) {
        floors.push(open.length);
      } else if (item.type === "linkEnd") {
        open.length = floors.pop();
      } else if (item.type === "mark") {
        if (item.canClose) close(item);
        if (item.canOpen && item.count > 0 && open.length < kMaxOpen) {
          latest[item.mark].push({ place: open.length, item });
          open.push(item);
        }
      }
    }
  }

  function anchor(url) {
    return Dom.el("a", { href: url, target: "_blank", rel: "noopener noreferrer" });
  }

  function build(items) {
    const parents = [document.createDocumentFragment()];
    let linked = false;
    const top = () => parents[parents.length - 1];
    const enter = (node) => { top().append(node); parents.push(node); };
    for (const item of items) {
      if (item.type === "text") top().append(item.text);
      else if (item.type === "code") top().append(Dom.el("code", {}, item.text));
      else if (item.type === "break") top().append(Dom.el("br"));
      else if (item.type === "bracket" && !item.url) top().append(item.text);
      else if (item.type === "bracket") { enter(anchor(item.url)); linked = true; }
      else if (item.type === "linkEnd") { parents.pop(); linked = false; }
      else if (item.type === "address" && linked) top().append(item.text);
      else if (item.type === "address") { enter(anchor(item.url)); top().append(item.text); parents.pop(); }
      else {
        for (let i = 0; i < item.closes.length; ++i) parents.pop();
        if (item.count > 0) top().append(item.mark.repeat(item.count));
        for (const tag of item.opens.reverse()) enter(Dom.el(tag));
      }
    }
    parents[0].normalize();
    return parents[0];
  }

  function render(text) {
    const items = new Scanner(text).scan();
    pairMarks(items);
    return build(items);
  }

  return { render };
})();
