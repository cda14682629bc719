// The HTML of a panel's page.

export interface PageParts {
  /** webview.cspSource: the origin of the extension's files. */
  source: string;
  /** The URIs of the script and the style sheet in the webview. */
  script: string;
  style: string;
  /** New for each page. Only a script with this nonce runs. */
  nonce: string;
  title: string;
  /** The page keeps this in its state, so that VS Code can restore the panel. */
  place: string;
}

/** The page. Its script creates all of its content. */
export function pageHtml({ source, script, style, nonce, title, place }: PageParts): string {
  const policy = `default-src 'none'; img-src data: ${source}; style-src ${source}; script-src 'nonce-${nonce}'; font-src ${source}`;
  return page(policy, title, `<link rel="stylesheet" href="${escaped(style)}">`, `<div id="app" data-place="${escaped(place)}"></div>\n<script nonce="${nonce}" src="${escaped(script)}"></script>`);
}

/** A page with a message and without a script. */
export function messageHtml(title: string, message: string): string {
  return page("default-src 'none'", title, "", `<main><h1>${escaped(title)}</h1><p role="status">${escaped(message)}</p></main>`);
}

/** The page of the side bar without a session. Its links are commands. Its script removes the state of the session before. */
export function emptyHtml({ source, style, nonce, title }: Pick<PageParts, "source" | "style" | "nonce" | "title">): string {
  const link = (command: string, label: string): string => `<a class="primary" href="command:${command}">${label}</a>`;
  return page(`default-src 'none'; style-src ${source}; script-src 'nonce-${nonce}'`, title, `<link rel="stylesheet" href="${escaped(style)}">`, `<main class="no-session">
<p>No session is open here.</p>
${link("duet.newSession", "New Session")}
${link("duet.openSession", "Open a Session…")}
</main>
<script nonce="${nonce}">acquireVsCodeApi().setState(undefined);</script>`);
}

function page(policy: string, title: string, head: string, body: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
${head}
</head>
<body>
${body}
</body>
</html>
`;
}

/** Escapes a text for HTML, in an element or in an attribute. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
