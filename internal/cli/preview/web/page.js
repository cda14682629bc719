// Tells Duet what a page says, and takes it where Duet wants it (duet-rpc preview --capture).
(() => {
  "use strict";
  // The tag of this script shifts what follows it in its line.
  const tag = document.currentScript;
  const [tagLine, tagLength] = [Number(tag.dataset.line), tag.outerHTML.length];
  const here = location.href.replace(/#.*/, "");
  const column = (file, line, shifted) => (file === here && line === tagLine && shifted > tagLength ? shifted - tagLength : shifted);
  const trueColumns = (stack) => stack.replace(/(https?:\/\/[^\s()]+?):(\d+):(\d+)/g, (_, file, line, shifted) =>
    `${file}:${line}:${column(file, Number(line), Number(shifted))}`);
  const post = window.fetch.bind(window);
  const most = 8000; // characters of a text
  const waiting = [];
  let sending = false;

  const send = (method, params) => {
    if (waiting.length < 500) waiting.push({ method, params });
    if (!sending) pump();
  };
  const pump = async () => {
    sending = true;
    await null; // what is said together goes together
    while (waiting.length > 0) {
      const body = JSON.stringify(waiting.splice(0, 20));
      try {
        await post("/.duet/report", { method: "POST", body, keepalive: body.length < 60000 });
      } catch {
        // The preview has ended, or the page is being left.
      }
    }
    sending = false;
  };

  const place = () => location.pathname + location.search + location.hash;
  const cut = (text) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
  const text = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return String(value);
    try {
      const json = typeof value === "object" ? JSON.stringify(value) : undefined;
      return json === undefined ? String(value) : json;
    } catch {
      return Object.prototype.toString.call(value);
    }
  };

  for (const level of ["log", "debug", "info", "warn", "error"]) {
    const write = console[level];
    console[level] = (...args) => {
      write.apply(console, args);
      send("console", { level, message: cut(args.map(text).join(" ")), url: place() });
    };
  }

  window.addEventListener("error", (e) => {
    if (e instanceof ErrorEvent) {
      const stack = e.error && e.error.stack ? cut(trueColumns(String(e.error.stack))) : "";
      send("error", { message: cut(e.message), stack, url: e.filename || place(), line: e.lineno, column: column(e.filename, e.lineno, e.colno) });
    } else if (e.target && (e.target.src || e.target.href)) {
      send("error", { message: cut("cannot load " + (e.target.src || e.target.href)), url: place() });
    }
  }, true);
  window.addEventListener("unhandledrejection", (e) => {
    const stack = e.reason && e.reason.stack ? cut(trueColumns(String(e.reason.stack))) : "";
    send("error", { message: cut("Unhandled rejection: " + text(e.reason)), stack, url: place() });
  });

  const moved = () => send("updateNavigationState", { url: place(), title: document.title });
  for (const name of ["pushState", "replaceState"]) {
    const change = history[name].bind(history);
    history[name] = (...args) => {
      change(...args);
      moved();
    };
  }
  window.addEventListener("popstate", moved);
  window.addEventListener("hashchange", moved);
  window.addEventListener("load", moved);

  const told = new EventSource("/.duet/told" + new URL(tag.src).search);
  told.addEventListener("navigate", (e) => location.assign(JSON.parse(e.data)));
  told.addEventListener("refresh", () => location.reload());
})();
