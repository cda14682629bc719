import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "src/rpc/dist/", "out/", "node_modules/", "src/protocol.ts"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // A handler may or may not be asynchronous.
      "@typescript-eslint/no-confusing-void-expression": "off",
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: [{ from: "package", package: "node:test", name: ["test", "suite", "describe", "it"] }] }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // Where the type says that a value is there, and the wire may not have kept to it.
      "@typescript-eslint/no-unnecessary-condition": "off",
      "@typescript-eslint/no-non-null-assertion": "off",
      "@typescript-eslint/unbound-method": "off",
      "@typescript-eslint/no-unnecessary-type-parameters": "off",
      "@typescript-eslint/no-meaningless-void-operator": "off",
      "@typescript-eslint/prefer-promise-reject-errors": "off",
      eqeqeq: "error",
    },
  },
  {
    files: ["src/**/*.ts"],
    ignores: ["src/messages.ts"],
    rules: {
      "no-restricted-syntax": ["error", { selector: "MemberExpression[property.name=/^show(Information|Warning|Error)Message$/]", message: "Use src/messages.ts: VS Code makes links of [words](command:…) in a message." }],
    },
  },
  { files: ["*.mjs"], extends: [tseslint.configs.disableTypeChecked] },
);
