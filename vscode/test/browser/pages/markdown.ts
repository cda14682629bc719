// Exports the class that shows streaming Markdown to a test.
import { MarkdownStream } from "../../../src/webview/stream";

Object.assign(window, { MarkdownStream });
