// highlight.js with the languages that agents write. A browser loads them when it needs them (src/web/languages.ts).
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lisp from "highlight.js/lib/languages/lisp";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const languages = { bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, lisp, makefile, markdown, php, python, ruby, rust, sql, swift, typescript, xml, yaml };

/** Names that highlight.js does not know. */
const aliases = { bash: ["shell"], lisp: ["el", "elisp", "emacs-lisp"] };

/** highlight.js. undefined: it could not be loaded. */
export function engine(): typeof hljs | undefined {
  if (hljs.listLanguages().length > 0) return hljs;
  for (const [name, definition] of Object.entries(languages)) hljs.registerLanguage(name, definition);
  for (const [languageName, names] of Object.entries(aliases)) hljs.registerAliases(names, { languageName });
  return hljs;
}

/** Resolves when engine can be called, also if loading has failed. undefined: it can be called now. */
export function ready(): Promise<void> | undefined {
  return undefined;
}
