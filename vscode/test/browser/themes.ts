// The colours of VS Code's own themes that the page uses, as a webview gets them.

export type Theme = "dark" | "light" | "high-contrast";

const shared = { "font-family": "system-ui, 'DejaVu Sans', sans-serif", "font-size": "13px", "editor-font-family": "'DejaVu Sans Mono', monospace", "editor-font-size": "12px" };

const terminal = (colours: string): Record<string, string> => {
  const names = ["Black", "Red", "Green", "Yellow", "Blue", "Magenta", "Cyan", "White"].flatMap((name) => [`terminal-ansi${name}`, `terminal-ansiBright${name}`]);
  return Object.fromEntries(colours.split(" ").map((colour, i) => [names[i]!, colour]));
};

const themes: Record<Theme, Record<string, string>> = {
  dark: {
    ...terminal("#000000 #666666 #cd3131 #f14c4c #0dbc79 #23d18b #e5e510 #f5f543 #2472c8 #3b8eea #bc3fbc #d670d6 #11a8cd #29b8db #e5e5e5 #e5e5e5"),
    "foreground": "#cccccc", "descriptionForeground": "#9d9d9d", "errorForeground": "#f85149", "focusBorder": "#0078d4", "icon-foreground": "#cccccc", "editor-background": "#1f1f1f", "editorWidget-background": "#202020",
    "widget-border": "#313131", "widget-shadow": "#0000005c", "panel-border": "#2b2b2b", "input-background": "#313131", "input-foreground": "#cccccc", "input-border": "#3c3c3c", "input-placeholderForeground": "#989898",
    "button-background": "#0078d4", "button-foreground": "#ffffff", "button-hoverBackground": "#026ec1", "button-secondaryBackground": "#313131", "button-secondaryForeground": "#cccccc", "button-secondaryHoverBackground": "#3c3c3c", "button-border": "#ffffff12",
    "dropdown-background": "#313131", "dropdown-foreground": "#cccccc", "dropdown-border": "#3c3c3c", "textLink-foreground": "#4daafc", "textLink-activeForeground": "#4daafc", "textCodeBlock-background": "#2b2b2b", "textPreformat-background": "#3c3c3c", "textPreformat-foreground": "#d0d0d0",
    "textBlockQuote-background": "#2b2b2b", "textBlockQuote-border": "#616161", "toolbar-hoverBackground": "#5a5d5e50", "list-hoverBackground": "#2a2d2e", "list-activeSelectionBackground": "#04395e", "list-activeSelectionForeground": "#ffffff",
    "editorSuggestWidget-background": "#202020", "editorSuggestWidget-border": "#454545", "editorSuggestWidget-selectedBackground": "#04395e", "editorSuggestWidget-selectedForeground": "#ffffff", "editorWarning-foreground": "#cca700", "progressBar-background": "#0078d4", "testing-iconPassed": "#73c991",
    "inputValidation-errorBackground": "#5a1d1d", "inputValidation-errorBorder": "#be1100", "diffEditor-insertedLineBackground": "#9bb95533", "diffEditor-removedLineBackground": "#ff000033", "gitDecoration-addedResourceForeground": "#81b88b", "gitDecoration-deletedResourceForeground": "#c74e39",
    "debugTokenExpression-name": "#c586c0", "debugTokenExpression-string": "#ce9178", "debugTokenExpression-number": "#b5cea8", "debugTokenExpression-boolean": "#4e94ce", "symbolIcon-functionForeground": "#b180d7", "symbolIcon-variableForeground": "#75beff",
    "badge-background": "#616161", "badge-foreground": "#f8f8f8",
  },
  light: {
    ...terminal("#000000 #666666 #cd3131 #cd3131 #107c10 #14ce14 #949800 #b5ba00 #0451a5 #0451a5 #bc05bc #bc05bc #0598bc #0598bc #555555 #a5a5a5"),
    "foreground": "#3b3b3b", "descriptionForeground": "#3b3b3b", "errorForeground": "#c72e0f", "focusBorder": "#005fb8", "icon-foreground": "#3b3b3b", "editor-background": "#ffffff", "editorWidget-background": "#f8f8f8",
    "widget-border": "#e5e5e5", "widget-shadow": "#00000029", "panel-border": "#e5e5e5", "input-background": "#ffffff", "input-foreground": "#3b3b3b", "input-border": "#cecece", "input-placeholderForeground": "#767676",
    "button-background": "#005fb8", "button-foreground": "#ffffff", "button-hoverBackground": "#0258a8", "button-secondaryBackground": "#e5e5e5", "button-secondaryForeground": "#3b3b3b", "button-secondaryHoverBackground": "#cccccc", "button-border": "#0000001a",
    "dropdown-background": "#ffffff", "dropdown-foreground": "#3b3b3b", "dropdown-border": "#cecece", "textLink-foreground": "#005fb8", "textLink-activeForeground": "#005fb8", "textCodeBlock-background": "#f8f8f8", "textPreformat-background": "#0000001f", "textPreformat-foreground": "#3b3b3b",
    "textBlockQuote-background": "#f8f8f8", "textBlockQuote-border": "#e5e5e5", "toolbar-hoverBackground": "#b8b8b850", "list-hoverBackground": "#f2f2f2", "list-activeSelectionBackground": "#e8e8e8", "list-activeSelectionForeground": "#000000",
    "editorSuggestWidget-background": "#f8f8f8", "editorSuggestWidget-border": "#c8c8c8", "editorSuggestWidget-selectedBackground": "#e8e8e8", "editorSuggestWidget-selectedForeground": "#000000", "editorWarning-foreground": "#bf8803", "progressBar-background": "#005fb8", "testing-iconPassed": "#388a34",
    "inputValidation-errorBackground": "#f2dede", "inputValidation-errorBorder": "#be1100", "diffEditor-insertedLineBackground": "#9bb95533", "diffEditor-removedLineBackground": "#ff000033", "gitDecoration-addedResourceForeground": "#587c0c", "gitDecoration-deletedResourceForeground": "#ad0707",
    "debugTokenExpression-name": "#9b46b0", "debugTokenExpression-string": "#a31515", "debugTokenExpression-number": "#098658", "debugTokenExpression-boolean": "#0000ff", "symbolIcon-functionForeground": "#652d90", "symbolIcon-variableForeground": "#007acc",
    "badge-background": "#cccccc", "badge-foreground": "#3b3b3b",
  },
  "high-contrast": {
    ...terminal("#000000 #7f7f7f #cd0000 #ff0000 #00cd00 #00ff00 #cdcd00 #ffff00 #0000ee #5c5cff #cd00cd #ff00ff #00cdcd #00ffff #e5e5e5 #ffffff"),
    "foreground": "#ffffff", "descriptionForeground": "#ffffffb3", "errorForeground": "#f48771", "focusBorder": "#f38518", "icon-foreground": "#ffffff", "editor-background": "#000000", "editorWidget-background": "#0c141f",
    "contrastBorder": "#6fc3df", "contrastActiveBorder": "#f38518", "widget-border": "#6fc3df", "panel-border": "#6fc3df", "input-background": "#000000", "input-foreground": "#ffffff", "input-border": "#6fc3df", "input-placeholderForeground": "#ffffffb3",
    "button-background": "#000000", "button-foreground": "#ffffff", "button-border": "#6fc3df", "button-secondaryBackground": "#000000", "button-secondaryForeground": "#ffffff", "dropdown-background": "#000000", "dropdown-foreground": "#ffffff", "dropdown-border": "#6fc3df",
    "textLink-foreground": "#21a6ff", "textLink-activeForeground": "#21a6ff", "textCodeBlock-background": "#000000", "textPreformat-background": "#ffffff", "textPreformat-foreground": "#000000", "textBlockQuote-border": "#ffffff",
    "editorSuggestWidget-background": "#0c141f", "editorSuggestWidget-border": "#6fc3df", "editorWarning-foreground": "#ffd370", "progressBar-background": "#6fc3df", "testing-iconPassed": "#73c991", "inputValidation-errorBackground": "#000000", "inputValidation-errorBorder": "#be1100",
    "debugTokenExpression-name": "#ffffff", "debugTokenExpression-string": "#f48771", "debugTokenExpression-number": "#89d185", "debugTokenExpression-boolean": "#75bdfe", "symbolIcon-functionForeground": "#b180d7", "symbolIcon-variableForeground": "#75beff",
    "diffEditor-insertedTextBackground": "#33ff2e33", "diffEditor-removedTextBackground": "#ff008f33", "gitDecoration-addedResourceForeground": "#a1e3ad", "gitDecoration-deletedResourceForeground": "#c74e39", "badge-background": "#000000", "badge-foreground": "#ffffff",
  },
};

/** A style sheet with the variables of a theme. */
export function themeStyle(theme: Theme): string {
  const variables = Object.entries({ ...shared, ...(themes[theme] ?? themes.dark) }).map(([name, value]) => `--vscode-${name}: ${value};`);
  return `:root { ${variables.join(" ")} color-scheme: ${theme === "light" ? "light" : "dark"}; }`;
}
