// Gives a test the class that shows Markdown as it comes.
import { MarkdownStream } from "../../../src/webview/stream";

Object.assign(window, { MarkdownStream });
