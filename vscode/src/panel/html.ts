// The page of a panel as a webview takes it.

export interface PageParts {
  /** webview.cspSource: where the files of the extension come from. */
  source: string;
  /** The addresses of the script and the style sheet, as the webview has them. */
  script: string;
  style: string;
  /** Said anew for each page: only a script that has it runs. */
  nonce: string;
  title: string;
  /** What the page keeps in its state, so that the panel is found again. */
  place: string;
}

/** The page: all that it shows is made by its script. */
export function pageHtml({ source, script, style, nonce, title, place }: PageParts): string {
  const policy = `default-src 'none'; img-src data: ${source}; style-src ${source}; script-src 'nonce-${nonce}'; font-src ${source}`;
  return page(policy, title, `<link rel="stylesheet" href="${escaped(style)}">`, `<div id="app" data-place="${escaped(place)}"></div>\n<script nonce="${nonce}" src="${escaped(script)}"></script>`);
}

/** A page that says something, and does nothing. */
export function messageHtml(title: string, message: string): string {
  return page("default-src 'none'", title, "", `<main><h1>${escaped(title)}</h1><p role="status">${escaped(message)}</p></main>`);
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

/** A text for HTML, in an element or in an attribute. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
