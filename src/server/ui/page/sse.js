// Server-sent events, from pieces of text cut anywhere: push() gives the data of the events that a piece completes.
const Sse = (() => {
  class Parser {
    constructor() {
      this.line = [];  // pieces of the line that is not ended yet
      this.data = [];  // data lines of the event that is not ended yet
      this.afterReturn = false;
    }

    push(text) {
      const done = [];
      let begin = 0;
      if (this.afterReturn && text.startsWith("\n")) begin = 1;
      if (text !== "") this.afterReturn = text.endsWith("\r");
      const ends = /\r\n|\n|\r/g;
      ends.lastIndex = begin;
      for (let end; (end = ends.exec(text)) !== null; begin = ends.lastIndex) {
        this.line.push(text.slice(begin, end.index));
        this.endLine(this.line.join(""), done);
        this.line = [];
      }
      if (begin < text.length) this.line.push(text.slice(begin));
      return done;
    }

    endLine(line, done) {
      if (line === "") {
        if (this.data.length > 0) done.push(this.data.join("\n"));
        this.data = [];
      } else if (line === "data" || line.startsWith("data:")) {
        this.data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
      }
    }
  }

  return { Parser };
})();
